"""Ids mean the same to the command line and to the library: what one prints the other finds."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import AmbiguousIdError, CheckpointNotFoundError, Client, SyncClient
from holdfast.cli import main
from holdfast.cli.access.short_ids import ShortIds
from holdfast.stores.base import Store
from holdfast.stores.memory import MemoryStore
from holdfast.testing.samples import make_commit
from holdfast.workspace import Workspace

Run = Callable[..., str]


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delenv("HOLDFAST_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    with SyncClient.open() as opened:
        yield opened


@pytest.fixture
def holdfast(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in this process and gives what it printed."""

    def run(*arguments: str) -> str:
        capsys.readouterr()
        assert main([*arguments]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return run


@pytest.fixture
def ids(client: SyncClient) -> list[str]:
    """Three checkpoints of a session, the oldest first."""
    saved = []
    with client.session("coder", session_id="fix-42") as run:
        for name in ("plan", "work", "test"):
            run.state[name] = True
            saved.append(run.checkpoint(name))
    return saved


def shown_for(line: str) -> str:
    """The id in a line of a listing."""
    (found,) = re.findall(r"\b[0-9a-f]{12,32}\b", line)
    return str(found)


@pytest.fixture
def shown(ids: list[str], holdfast: Run) -> list[str]:
    """How ``holdfast log`` shows these three."""
    lines = holdfast("log").splitlines()
    return [next(shown_for(line) for line in lines if f"  {n} " in line) for n in NAMES]


NAMES = ("plan", "work", "test")


def test_every_verb_takes_the_ids_that_log_prints(
    client: SyncClient, ids: list[str], shown: list[str], tmp_path: Path
) -> None:
    plan, work, test = shown

    assert client.restore(plan).checkpoint_id == ids[0]
    assert client.restore(client.fork(work, session_id="fork")).parent_id == ids[1]
    assert "$.test" in str(client.diff(plan, test))
    assert client.ancestors(work)[0].checkpoint_id == ids[0]
    assert client.restore(client.handoff(test, "reviewer")).parent_id == ids[2]
    assert client.find(parent_id=plan)[0].checkpoint_id == ids[1]
    assert client.timeline("coder", "fix-42", before=work)[0].checkpoint_id == ids[0]
    client.publish("channel", plan)
    client.export(tmp_path / "bundle", ids=[plan])
    assert client.explore(work, {"a": lambda run: 1}).base_id == ids[1]
    assert client.save("coder", execution_state={}, parent_id=work)
    with client.session("coder", session_id="fix-42") as run:
        run.rollback(to=plan)
        assert "work" not in run.state
    with client.session("coder", session_id="other") as run:
        run.adopt(work)
        assert run.state["work"]
    assert client.expire(test) is True


async def test_the_async_client_takes_them_too(shown: list[str], ids: list[str]) -> None:
    async with Client.open() as client:
        assert (await client.restore(shown[0])).checkpoint_id == ids[0]
        assert (await client.ancestors(shown[1]))[0].checkpoint_id == ids[0]


def test_a_workspace_takes_the_ids_of_checkpoints_that_log_prints(
    client: SyncClient, tmp_path: Path, holdfast: Run
) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "main.py").write_text("one")
    with Workspace(repo, client) as workspace:
        client.save("coder", execution_state={}, session_id="s", workspace=workspace)
        (repo / "main.py").write_text("two")

        printed = shown_for(holdfast("log").splitlines()[1])

        assert workspace.read(printed, "main.py") == b"one"
        workspace.restore(printed)
    assert (repo / "main.py").read_text() == "one"
    client.restore_workspace(printed, tmp_path / "copy").close()
    assert (tmp_path / "copy" / "main.py").read_text() == "one"


@pytest.mark.parametrize(
    ("command", "line", "at"),
    [
        (["sessions"], "fix-42", 3),
        (["replay", "fix-42"], "plan", 0),
        (["watch", "--timeout", "0"], "plan", 0),
        (["bisect", "fix-42", "--python", "'work' not in state"], "bad   ", 1),
        (["rollback", "plan", "--dry-run"], "goes back", None),
    ],
)
def test_other_commands_print_ids_in_the_same_way(
    client: SyncClient,
    ids: list[str],
    holdfast: Run,
    command: list[str],
    line: str,
    at: int | None,
) -> None:
    head = client.sessions()[0].head.checkpoint_id
    every = [*ids, head]

    lines = [each for each in holdfast(*command).splitlines() if line in each]
    printed = [short for each in lines for short in re.findall(r"\b[0-9a-f]{12,32}\b", each)]

    found = [client.restore(each).checkpoint_id for each in printed]
    assert found[-1] == (ids[0] if at is None else every[at])


def test_what_is_ambiguous_to_one_is_ambiguous_to_the_other(
    client: SyncClient, ids: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AmbiguousIdError) as raised:
        client.restore(ids[0][:6])
    capsys.readouterr()

    assert main(["show", ids[0][:6]]) == 4
    assert str(raised.value) in capsys.readouterr().err


def test_less_than_six_characters_name_nothing(
    client: SyncClient, ids: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CheckpointNotFoundError, match="at least 6 characters"):
        client.restore(ids[0][:5])

    assert main(["show", ids[0][:5]]) == 3


def test_an_id_is_found_with_its_dashes_and_without(client: SyncClient, ids: list[str]) -> None:
    bare = ids[0].replace("-", "")
    for given in (ids[0], bare, ids[0][:18], bare[:16]):
        assert client.restore(given).checkpoint_id == ids[0]


def test_an_own_id_that_begins_as_another_without_dashes_makes_it_ambiguous(
    client: SyncClient, ids: list[str]
) -> None:
    own = ids[0].replace("-", "")[:16]
    client.store.commit(make_commit(checkpoint_id=own + "x"))

    with pytest.raises(AmbiguousIdError):
        client.restore(own)

    client.store.commit(make_commit(checkpoint_id=own))
    assert client.restore(own).checkpoint_id == own


class Counting(MemoryStore):
    """Counts what is asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []

    def match(self, prefix: str, limit: int, after: str = "") -> list[str]:
        found = super().match(prefix, limit, after)
        self.asked.append(len(found))
        return found


def keep(store: Store, *checkpoint_ids: str) -> None:
    for each in checkpoint_ids:
        store.commit(make_commit(checkpoint_id=each))


def numbered(milliseconds: int, rest: int = 0) -> str:
    text = f"{milliseconds << 80 | 0x7 << 76 | rest:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def short_forms(store: Store, *checkpoint_ids: str) -> list[str]:
    infos = [make_commit(checkpoint_id=each).info for each in checkpoint_ids]
    short = ShortIds(store, infos)
    return [short(each) for each in checkpoint_ids]


def test_an_id_is_shown_with_all_of_its_time_so_that_later_ones_do_not_take_its_name() -> None:
    store = Counting()
    keep(store, numbered(1_700_000_000_000))
    (printed,) = short_forms(store, numbered(1_700_000_000_000))

    keep(store, *(numbered(1_700_000_000_000 + later) for later in range(1, 20)))

    assert len(printed) == 12
    assert SyncClient(store).restore(printed).checkpoint_id == numbered(1_700_000_000_000)


def test_ids_of_one_millisecond_are_shown_as_long_as_it_takes() -> None:
    store = Counting()
    crowd = [numbered(1_700_000_000_000, rest) for rest in (5, 6, 1 << 40)]
    keep(store, *crowd, numbered(1_700_000_000_001))

    printed = short_forms(store, crowd[0], crowd[2])

    client = SyncClient(store)
    assert [client.restore(each).checkpoint_id for each in printed] == [crowd[0], crowd[2]]


def test_more_of_one_millisecond_than_a_page_are_shown_whole() -> None:
    store = Counting()
    crowd = [numbered(1_700_000_000_000, rest << 4) for rest in range(1100)]
    keep(store, *crowd)

    (printed,) = short_forms(store, crowd[1050])

    assert SyncClient(store).restore(printed).checkpoint_id == crowd[1050]


def test_what_somebody_named_himself_is_shown_as_he_named_it() -> None:
    store = Counting()
    keep(store, "plan-of-monday", "plan-of-monday-2")

    assert short_forms(store, "plan-of-monday") == ["plan-of-monday"]


def test_shortening_reads_few_of_many_ids() -> None:
    store = Counting()
    every = [numbered(1_700_000_000_000 + 7 * n) for n in range(5000)]
    keep(store, *every)

    printed = short_forms(store, every[10], every[2500], every[-1])

    assert printed == [each.replace("-", "")[:12] for each in (every[10], every[2500], every[-1])]
    assert len(store.asked) <= 3


def test_shortening_ids_with_many_of_others_between_reads_few_and_tells_them_apart() -> None:
    store = Counting()
    every = [numbered(1_700_000_000_000 + n) for n in range(9000)]
    beside = [numbered(1_700_000_000_000 + n, 1 << 60) for n in (4000, 8000)]
    keep(store, *every, *beside)
    shown = [*every[::500], *beside]

    printed = short_forms(store, *shown)

    client = SyncClient(store)
    assert [client.restore(each).checkpoint_id for each in printed] == shown
    assert len({*map(len, printed)}) == 1
    assert sum(store.asked) < 2000


def test_finding_reads_few_of_many_ids() -> None:
    store = Counting()
    every = [numbered(1_700_000_000_000 + 7 * n) for n in range(2000)]
    keep(store, *every)
    client = SyncClient(store)

    client.restore(every[77].replace("-", "")[:12])
    with pytest.raises(AmbiguousIdError):
        client.restore(every[77][:8])
    with pytest.raises(CheckpointNotFoundError):
        client.restore("abcdef012345")

    assert sum(store.asked) <= 7
