"""What the page can do: said before, done by the verbs of the command line, and refused by them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import ApprovalDeniedError, StillWaitingError, SyncClient
from tests.ui import stories
from tests.ui.kit import Api

WALK = {"agent": "walker", "session": "walk"}


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SyncClient]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with SyncClient.sqlite(tmp_path / "holdfast.db") as client:
        yield client


@pytest.fixture
def api(client: SyncClient) -> Api:
    return Api(client)


@pytest.fixture
def walk(client: SyncClient) -> list[str]:
    """The checkpoints of a session of five steps."""
    return stories.steps(client, "walker", "walk", 5)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    made.mkdir()
    return made


@pytest.fixture
def filed(client: SyncClient, folder: Path) -> list[str]:
    """Two checkpoints of a session with files: one and one more."""
    (folder / "one.txt").write_text("1")
    with client.session("filer", "files", workspace=folder, state={"n": 0}) as run:
        first = run.checkpoint("first")
        (folder / "two.txt").write_text("2")
        run.state["n"] = 1
        return [first, run.checkpoint("second")]


def count_of(client: SyncClient, session: str = "walk", agent: str = "walker") -> Any:
    head = client.latest(agent, session)
    assert head is not None
    return head.execution_state["count"]


def test_a_rollback_is_previewed_done_and_undone(api: Api, client: SyncClient, walk: list) -> None:
    planned = api.post("rollback", id=walk[1], **WALK, dry_run=True)
    assert (planned["dry_run"], planned["checkpoint_id"], count_of(client)) == (True, None, 4)
    assert planned["changes"] > 0

    done = api.post("rollback", id=walk[1], **WALK)
    assert done["changes"] == planned["changes"]
    assert (done["target"], count_of(client)) == (walk[1], 1)

    api.post("undo", **WALK)
    assert count_of(client) == 4


@pytest.mark.parametrize(
    ("scope", "left", "n"), [("all", ["one.txt"], 0), ("files", ["one.txt"], 1), ("state", None, 0)]
)
def test_state_and_files_go_back_alone_too(
    api: Api, client: SyncClient, folder: Path, filed: list, scope: str, left: Any, n: int
) -> None:
    planned = api.post("rollback", id=filed[0], scope=scope, dry_run=True)
    assert sorted(each.name for each in folder.iterdir()) == ["one.txt", "two.txt"]
    assert (planned["files"] is None) == (left is None)

    api.post("rollback", id=filed[0], scope=scope)

    assert sorted(each.name for each in folder.iterdir()) == (left or ["one.txt", "two.txt"])
    head = client.latest("filer", "files")
    assert head is not None
    assert head.execution_state == {"n": n}


def test_what_cannot_be_undone_refuses_until_it_is_accepted(api: Api, client: SyncClient) -> None:
    with client.session("mailer", "sent", state={"n": 0}) as run:
        before = run.checkpoint("before")
        run.call(stories.mail, "ann", effect="irreversible")

    for dry_run in (True, False):
        said = api.refused("rollback", 409, "POST", id=before, dry_run=dry_run)
        assert "mail('ann')" in said["message"]

    done = api.post("rollback", id=before, accept_irreversible=True)
    assert [done["calls"][each] for each in done["remaining"]] == ["mail('ann')"]


def test_a_session_in_use_is_refused_with_who_holds_it(api: Api, client: SyncClient) -> None:
    with client.session("walker", "busy", state={"n": 0}) as run:
        first = run.checkpoint("first")
        run.checkpoint("second")

        said = api.refused("rollback", 409, "POST", id=first)

        assert "is worked on by process" in said["message"]
        assert api.get("session", session="busy")["session"]["holder"].startswith("process")


def test_a_checkpoint_of_another_session_is_no_target(
    api: Api, client: SyncClient, walk: list
) -> None:
    other = stories.steps(client, "walker", "other", 1)[0]

    said = api.refused("rollback", 400, "POST", id=other, **WALK)

    assert "fork it instead" in said["message"]

    assert count_of(client) == 4


def test_nothing_to_undo_is_said(api: Api, walk: list) -> None:
    assert "no rollback" in api.refused("undo", 409, "POST", **WALK)["message"]


def test_a_fork_has_the_name_that_is_given_or_a_free_one(
    api: Api, client: SyncClient, walk: list
) -> None:
    named = api.post("fork", id=walk[1], name="side")
    free = api.post("fork", id=walk[2])

    assert (named["session_id"], count_of(client, "side")) == ("side", 1)
    assert count_of(client, free["session_id"]) == 2
    assert "'to'" in api.refused("fork", 400, "POST", id=walk[1], to="/tmp")["message"]


def test_files_are_put_into_a_directory_that_is_named_whole(
    api: Api, filed: list, tmp_path: Path
) -> None:
    target = tmp_path / "elsewhere"
    planned = api.post("restore", id=filed[0], directory=str(target), dry_run=True)
    assert planned["written"] is None  # all of them
    assert not target.exists()

    api.post("restore", id=filed[0], directory=str(target))

    assert [each.name for each in target.iterdir()] == ["one.txt"]


def test_a_directory_that_holdfast_knows_nothing_of_loses_no_file(
    api: Api, filed: list, folder: Path, tmp_path: Path
) -> None:
    strange = tmp_path / "strange"
    strange.mkdir()
    (strange / "own.txt").write_text("mine")

    said = api.refused("restore", 409, "POST", id=filed[0], directory=str(strange), dry_run=True)
    known = api.post("restore", id=filed[0], directory=str(folder), dry_run=True)

    assert "is not empty" in said["message"]
    assert known["removed"] == ["two.txt"]


@pytest.mark.parametrize(
    "directory", ["~nobody-at-all/x", f"/tmp/{'x' * 300}", "/tmp/" + "y/" * 5000]
)
def test_a_directory_that_cannot_be_is_no_fault(api: Api, filed: list, directory: str) -> None:
    said = api.refused("restore", 400, "POST", id=filed[0], directory=directory, dry_run=True)

    assert "cannot be used" in said["message"]


def test_what_is_refused_says_with_what_it_is_done_all_the_same(
    api: Api, client: SyncClient
) -> None:
    with client.session("mailer", "sent", state={"count": 0}) as run:
        before = run.checkpoint("before")
        run.call(stories.mail, "ann", effect="irreversible")

    assert api.refused("rollback", 409, "POST", id=before)["unless"] == "accept_irreversible"


def test_calls_are_undone_by_the_functions_that_the_server_was_given(client: SyncClient) -> None:
    with client.session("shop", "order", state={"count": 0}) as run:
        before = run.checkpoint("before")
        run.call(stories.charge, 5, effect="reversible", compensate=stories.refund)

    assert "--import" in Api(client).refused("rollback", 409, "POST", id=before)["message"]
    done = Api(client, tools=[stories.refund]).post("rollback", id=before)

    assert (len(done["undone"]), done["remaining"]) == (1, [])


@pytest.mark.parametrize("directory", ["", "here", "../up", "a\0b", "{file}"])
def test_what_is_no_whole_path_of_a_directory_is_refused(
    api: Api, filed: list, folder: Path, directory: str
) -> None:
    said = directory.replace("{file}", str(folder / "one.txt"))

    api.refused("restore", 400, "POST", id=filed[0], directory=said)


def test_a_fork_is_adopted_by_where_it_came_from(api: Api, client: SyncClient, walk: list) -> None:
    client.fork(walk[1], session_id="side")
    client.save("walker", execution_state={"count": 99}, session_id="side")
    given = {**WALK, "from_session": "side"}

    assert api.post("adopt", **given, dry_run=True)["checkpoint_id"] is None
    assert count_of(client) == 4
    api.post("adopt", **given)

    assert count_of(client) == 99


def test_a_checkpoint_expires_when_it_is_told_to(api: Api, client: SyncClient, walk: list) -> None:
    assert api.post("expire", id=walk[4], dry_run=True)["removed"] is False
    assert count_of(client) == 4

    assert api.post("expire", id=walk[4])["removed"] is True

    assert count_of(client) == 3
    assert api.get("session", **WALK)["session"]["checkpoints"] == 4


def asked(api: Api) -> str:
    (question,) = api.get("inbox")["approvals"]
    return str(question["id"])


def go_on(client: SyncClient) -> Any:
    with client.session("mailer", "news", approval="wait", approval_timeout=0.05) as run:
        return run.call(stories.mail, "everybody", effect="irreversible")


def test_a_call_is_approved(api: Api, client: SyncClient) -> None:
    stories.ask(client, "news")

    decided = api.post("approve", id=asked(api), reason="it is fine")

    assert decided["reason"] == "it is fine"
    assert go_on(client) == "sent to everybody"


def test_a_call_is_approved_with_other_arguments(api: Api, client: SyncClient) -> None:
    stories.ask(client, "news")

    api.post("approve", id=asked(api), args=["ann"], kwargs={})

    assert go_on(client) == "sent to ann"


@pytest.mark.parametrize(
    "given",
    [{"args": {"to": "ann"}}, {"args": "ann"}, {"kwargs": ["ann"]}, {"kwargs": 1}, {"reason": 1}],
)
def test_arguments_that_are_none_are_refused(
    api: Api, client: SyncClient, given: dict[str, Any]
) -> None:
    stories.ask(client, "news")

    api.refused("approve", 400, "POST", id=asked(api), **given)

    assert len(client.pending()) == 1


def test_a_call_is_denied_with_a_reason(api: Api, client: SyncClient) -> None:
    stories.ask(client, "news")

    api.post("deny", id=asked(api), reason="too many")

    with pytest.raises(ApprovalDeniedError, match="too many"):
        go_on(client)


def test_a_question_that_was_decided_is_not_decided_twice(api: Api, client: SyncClient) -> None:
    stories.ask(client, "news")
    question = asked(api)
    api.post("deny", id=question)

    assert "was decided of" in api.refused("approve", 409, "POST", id=question)["message"]


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"outcome": "done", "value": "receipt 5"}, "done"),
        ({"outcome": "done"}, "done"),
        ({"outcome": "failed", "reason": "the bank said so"}, "failed"),
    ],
)
def test_a_call_of_unknown_end_is_decided(
    api: Api, client: SyncClient, given: dict[str, Any], status: str
) -> None:
    stories.lose(client, "order-7")
    (unknown,) = api.get("inbox")["unknown"]

    assert api.post("resolve", id=unknown["id"], **given)["outcome"] == status

    assert client.unknown_effects() == []
    (call,) = api.get("effects", id="order-7@")["effects"]
    assert (call["status"], call["unknown"]) == (status, False)


def test_an_outcome_that_there_is_not_is_refused(api: Api, client: SyncClient) -> None:
    stories.lose(client, "order-7")
    (unknown,) = api.get("inbox")["unknown"]

    for outcome in ("", "maybe", None):
        api.refused("resolve", 400, "POST", id=unknown["id"], outcome=outcome)


def test_an_offer_is_taken_or_turned_down(api: Api, client: SyncClient, walk: list) -> None:
    for to in ("reviewer", "tester"):
        client.handoff(walk[4], to)
    offers = {each["to_agent"]: each["checkpoint_id"] for each in api.get("inbox")["offers"]}

    api.post("accept-offer", id=offers["reviewer"])
    turned = api.post("reject-offer", id=offers["tester"], reason="not now")

    assert (turned["offer"]["open"], turned["offer"]["reason"]) == (False, "not now")
    assert api.get("inbox")["offers"] == []
    api.refused("accept-offer", 409, "POST", id=offers["tester"])


NEEDED = {"resolve": {"outcome": "retry"}, "restore": {"directory": "/nowhere/at/all"}}


@pytest.mark.parametrize(
    "verb", ["rollback", "fork", "restore", "expire", "approve", "deny", "resolve", "accept-offer"]
)
@pytest.mark.parametrize("forged", ["0" * 32, "01a1f053-0000-7000-8000-000000000000", "../x", "é"])
def test_a_forged_id_is_nobodys(api: Api, walk: list, verb: str, forged: str) -> None:
    is_short = verb in ("approve", "deny", "resolve") and len(forged) < 6

    said = api.refused(verb, 400 if is_short else 404, "POST", id=forged, **NEEDED.get(verb, {}))

    assert said["kind"] == ("usage" if is_short else "not_found")


@pytest.mark.parametrize("verb", ["rollback", "fork", "approve", "resolve", "expire"])
def test_an_id_is_needed(api: Api, walk: list, verb: str) -> None:
    for given in ({}, {"id": None}, {"id": 1}, {"id": ["x"]}):
        api.refused(verb, 400, "POST", **NEEDED.get(verb, {}), **given)


@pytest.mark.parametrize("verb", ["rollback", "fork", "prune", "gc", "expire", "approve"])
def test_what_is_misspelt_does_nothing(api: Api, client: SyncClient, walk: list, verb: str) -> None:
    before = client.stats()

    for others in ({"dryrun": True}, {"dry-run": True}, {"sesion": "walk"}, {"": 1}):
        said = api.refused(verb, 400, "POST", id=walk[1], last=1, **others)
        assert "there is no" in said["message"]

    assert client.stats() == before


def test_a_flag_that_is_null_does_nothing(api: Api, client: SyncClient, walk: list) -> None:
    api.refused("rollback", 400, "POST", id=walk[1], dry_run=None)

    assert count_of(client) == 4


def test_numbers_that_a_browser_would_alter_come_back_as_they_were(
    api: Api, client: SyncClient
) -> None:
    paid: list[Any] = []

    def pay(account: int, amount: float, note: str, limit: int = 0) -> str:
        paid.append((account, amount, note, limit))
        return "paid"

    def run() -> Any:
        with client.session("bank", "pay", approval="wait", approval_timeout=0.05) as run:
            return run.call(pay, 2**60 + 1, 1.0, "\u202e<b>", limit=2**70, effect="irreversible")

    with pytest.raises(StillWaitingError):
        run()
    (asked,) = api.get("inbox")["approvals"]
    assert asked["args"][0] == {"$type": "int", "value": str(2**60 + 1)}
    assert asked["text"].startswith(f"pay({2**60 + 1}, 1.0, ")

    api.post(
        "approve",
        id=asked["id"],
        args_text=asked["args_text"],
        kwargs_text=asked["kwargs_text"],
    )

    assert run() == "paid"
    assert paid == [(2**60 + 1, 1.0, "\u202e<b>", 2**70)]
    assert type(paid[0][1]) is float
    (call,) = api.get("effects", id="pay@")["effects"]
    assert call["args"]["value"][1] == {"$type": "float", "value": "1.0"}


@pytest.mark.parametrize("text", ["", "[1", "nothing", "[NaN]", "{}", "1", "[" * 100_000])
def test_a_text_of_arguments_that_is_none_is_refused(
    api: Api, client: SyncClient, text: str
) -> None:
    stories.ask(client, "news")

    if text:
        api.refused("approve", 400, "POST", id=asked(api), args_text=text)

    assert len(client.pending()) == 1


def test_the_output_of_a_call_may_be_given_as_a_text(api: Api, client: SyncClient) -> None:
    stories.lose(client, "order-7")
    (unknown,) = api.get("inbox")["unknown"]

    api.post("resolve", id=unknown["id"], outcome="done", value_text=f"[{2**60 + 1}, 1.0]")

    (call,) = api.get("effects", id="order-7@")["effects"]
    assert [each["value"] for each in call["output"]] == [str(2**60 + 1), "1.0"]


def test_an_undo_of_one_rollback_takes_no_other_back(
    api: Api, client: SyncClient, walk: list
) -> None:
    first = api.post("rollback", id=walk[1], **WALK)
    second = api.post("rollback", id=walk[3], **WALK)

    said = api.refused("undo", 409, "POST", **WALK, head=first["checkpoint_id"])

    assert "has gone on since" in said["message"]
    assert count_of(client) == 3
    api.post("undo", **WALK, head=second["checkpoint_id"])
    assert count_of(client) == 1


@pytest.mark.parametrize("directory", ["/", "~", "/../"])
def test_nothing_is_restored_into_a_home_or_a_disk(api: Api, filed: list, directory: str) -> None:
    for dry_run in (True, False):
        said = api.refused(
            "restore", 400, "POST", id=filed[0], directory=directory, dry_run=dry_run
        )
        assert "home or a disk" in said["message"]
