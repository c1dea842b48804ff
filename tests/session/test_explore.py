"""Explore: strategies on equal state, compared, wherever they run."""

# ruff: noqa: SIM117  (a run is a block, and some raise as it ends)

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client, SyncClient
from holdfast.errors import CheckpointNotFoundError, InvalidArgumentError
from holdfast.session.exploration import _COLUMNS
from tests.session.conftest import Open
from tests.session.kit import AGENT, SESSION, Tools


def careful(run: Any) -> str:
    run.state["way"] = "careful"
    run.call(sum, [1, 2])
    run.call(sum, [3, 4])
    return "slow"


def quick(run: Any) -> str:
    run.state["way"] = "quick"
    run.state["extra"] = 1
    return "fast"


def failing(run: Any) -> None:
    run.state["way"] = "failing"
    raise OSError("no luck")


def by_length(run: Any) -> float:
    return len(run.state["way"])


def one(_: Any) -> int:
    return 1


def two(_: Any) -> int:
    return 2


@pytest.fixture
def base(session: Open) -> str:
    with session(state={"n": [1, 2, 3]}) as run:
        return run.head


# Async programs explore with async strategies too, so both faces are given sync ones here.


def test_strategies_are_compared_by_score(client: Any, base: str) -> None:
    found = client.explore(base, {"careful": careful, "quick": quick}, score=by_length)

    assert found.winner.name == "careful"
    assert [(each.name, each.status, each.score, each.result) for each in found] == [
        ("careful", "done", 7.0, "slow"),
        ("quick", "done", 5.0, "fast"),
    ]
    assert [each.calls for each in found] == [2, 0]
    assert str(found["quick"].changes).splitlines() == ["+ $.way: 'quick'", "+ $.extra: 1"]
    assert client.restore(found["quick"].checkpoint_id).execution_state["way"] == "quick"
    with pytest.raises(KeyError):
        _ = found["other"]


def test_the_source_is_not_touched_and_the_winner_is_adopted(
    client: Any, base: str, session: Open
) -> None:
    found = client.explore(base, {"a": careful, "b": quick}, score=by_length)

    with session() as run:
        assert run.state == {"n": [1, 2, 3]}
        run.adopt(found.winner.session_id)
        assert run.state == {"n": [1, 2, 3], "way": "careful"}
        run.adopt(found["b"])
        assert run.state["way"] == "quick"
        run.adopt(client.restore(found.winner.checkpoint_id))
        assert run.state["way"] == "careful"
        run.adopt(client.timeline(AGENT, found["b"].session_id)[0])
        assert run.state["way"] == "quick"
        for nothing in (None, 5, ""):
            with pytest.raises(InvalidArgumentError, match="what is adopted"):
                run.adopt(nothing)


def test_a_score_may_look_at_the_result_or_be_it(client: Any, base: str) -> None:
    ways = {"a": one, "b": two}

    assert client.explore(base, ways).winner.name == "b"
    assert client.explore(base, ways, score=lambda run, result: -result).winner.name == "a"
    assert client.explore(base, {"a": careful}).winner is None
    nan = client.explore(base, ways, score=lambda run, result: [float("nan"), 1][result - 1])
    assert nan.winner.name == "b"


def test_a_checkpoint_does_as_well_as_its_id(client: Any, base: str) -> None:
    whole = client.restore(base)

    assert client.explore(whole, {"a": one}).base_id == base
    assert client.explore(client.timeline(whole.agent_id, whole.session_id)[0], {"a": one})


def test_a_failure_is_a_result(client: Any, base: str) -> None:
    found = client.explore(base, {"bad": failing, "good": two})

    assert (found["bad"].status, found["bad"].error) == ("failed", "OSError: no luck")
    assert found["bad"].score is None
    assert client.restore(found["bad"].checkpoint_id).metadata["failed"] is True
    assert found.winner.name == "good"
    none = client.explore(base, {"a": one}, score=lambda run: run.state["no such key"])
    assert (none["a"].status, none["a"].error) == ("failed", "KeyError: 'no such key'")


def test_a_strategy_that_takes_too_long_is_left_behind(client: Any, base: str) -> None:
    go = threading.Event()

    def hang(_: Any) -> int:
        go.wait(60)
        return 9

    found = client.explore(base, {"hang": hang, "b": two}, timeout=1)
    go.set()

    assert (found["hang"].status, found["hang"].error) == ("timed out", "not done in 1 s")
    assert found.winner.name == "b"


def test_exploring_stops_early_when_it_is_good_enough(client: Any, base: str) -> None:
    seen = []
    found = client.explore(
        base,
        {"a": one, "b": two, "c": one},
        stop_when=lambda outcome: outcome.score == 2,
        progress=lambda outcome: seen.append((outcome.name, outcome.status)),
    )

    assert [each.status for each in found] == ["done", "done", "stopped"]
    assert seen == [("a", "done"), ("b", "done"), ("c", "stopped")]
    assert found.winner.name == "b"


def test_a_comparison_is_a_table_and_json(client: Any, base: str) -> None:
    found = client.explore(base, {"a": careful, "bad": failing}, score=by_length)

    head, first, second = str(found).splitlines()
    assert head.split() == [*_COLUMNS]
    assert first.split()[:4] == ["*", "a", "done", "7"]
    assert second.endswith("OSError: no luck")
    data = json.loads(found.to_json())
    assert (data["base_id"], data["winner"]) == (base, "a")
    assert data["outcomes"][0] | {"seconds": 0, "checkpoint_id": ""} == {
        "name": "a",
        "session_id": found["a"].session_id,
        "status": "done",
        "score": 7.0,
        "error": None,
        "seconds": 0,
        "calls": 2,
        "checkpoint_id": "",
        "state_changes": 1,
        "file_changes": 0,
    }


@pytest.mark.parametrize("bad", [{}, {1: one}, {"a": "one"}, [one]])
def test_strategies_that_make_no_sense_are_refused(client: Any, base: str, bad: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        client.explore(base, bad)
    assert len(client.sessions()) == 1


def test_a_checkpoint_that_is_not_there_and_a_wrong_timeout_are_refused(
    client: Any, base: str
) -> None:
    with pytest.raises(CheckpointNotFoundError):
        client.explore("nowhere", {"a": one})
    with pytest.raises(InvalidArgumentError, match="timeout"):
        client.explore(base, {"a": one}, timeout=0)


def test_what_the_source_sent_is_not_sent_by_a_strategy(
    client: Any, session: Open, tools: Tools
) -> None:
    def again(run: Any) -> Any:
        return run.call(tools.send, "x", effect="irreversible")

    def aagain(run: Any) -> Any:
        return run.call(tools.send, "x", effect="irreversible")

    with session() as run:
        base = run.head
        run.call(tools.send, "x", effect="irreversible")
        found = client.explore(base, {"a": again, "b": aagain})
    assert [each.result for each in found] == [["send", "x", 1]] * 2
    assert len(tools.ran) == 1


# Executors


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[tuple[SyncClient, str]]:
    with SyncClient.sqlite(tmp_path / "h.db") as client:
        with client.session(AGENT, session_id=SESSION) as run:
            base = run.head
        yield client, base


def test_threads_share_the_client(base: str, client: Any) -> None:
    with ThreadPoolExecutor(2) as pool:
        found = client.explore(base, {"a": careful, "b": quick}, score=by_length, executor=pool)
    assert found.winner.name == "a"


def test_processes_open_the_store_themselves(kept: tuple[SyncClient, str]) -> None:
    client, base = kept
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        found = client.explore(
            base,
            {"a": careful, "b": quick, "bad": failing, "unsendable": lambda run: 1},
            score=by_length,
            executor=pool,
        )

    assert [each.status for each in found] == ["done", "done", "failed", "failed"]
    assert "<lambda>" in (found["unsendable"].error or "")
    assert found.winner is not None
    with client.session(AGENT, session_id=SESSION) as run:
        run.adopt(found.winner.session_id)
        assert run.state["way"] == "careful"


def test_a_store_in_memory_cannot_be_reached_from_processes(session: Open) -> None:
    with SyncClient.memory() as client:
        with client.session(AGENT, session_id=SESSION) as run:
            base = run.head
        with ProcessPoolExecutor(1) as pool:
            with pytest.raises(InvalidArgumentError, match="cannot be reached from another"):
                client.explore(base, {"a": one}, executor=pool)
        assert len(client.sessions()) == 1


@pytest.mark.filterwarnings("default")
def test_a_dask_cluster_explores(kept: tuple[SyncClient, str]) -> None:
    from distributed import Client as Dask
    from distributed import LocalCluster

    client, base = kept
    seen: list[str] = []
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Dask(cluster) as dask,
    ):
        found = client.explore(
            base,
            {"careful": careful, "quick": quick, "failing": failing},
            score=by_length,
            executor=dask.get_executor(),
            progress=lambda outcome: seen.append(outcome.name),
        )
    assert [each.status for each in found] == ["done", "done", "failed"]
    assert found.winner is not None
    assert found.winner.name == "careful"
    assert sorted(seen) == ["careful", "failing", "quick"]


# Async strategies


async def test_async_strategies_run_together() -> None:
    both = asyncio.Barrier(2)

    async def strategy(run: Any) -> int:
        await both.wait()
        run.state["n"] = await run.call(len, "four")
        return run.state["n"]

    async def score(run: Any, result: int) -> int:
        return result + len(run.session_id)

    async with Client.memory() as client:
        async with client.session(AGENT, session_id=SESSION) as run:
            base = run.head
        found = await client.explore(base, {"a": strategy, "long": strategy}, score=score)
        assert found.winner is not None
        assert found.winner.name == "long"


async def test_async_strategies_fail_time_out_and_are_stopped() -> None:
    async def hang(run: Any) -> None:
        run.state["hang"] = True
        await asyncio.Event().wait()

    async def bad(_: Any) -> None:
        raise TimeoutError("its own")

    async def good(_: Any) -> int:
        return 1

    async with Client.memory() as client:
        async with client.session(AGENT, session_id=SESSION) as run:
            base = run.head
        found = await client.explore(base, {"hang": hang, "bad": bad}, timeout=1)
        assert [each.status for each in found] == ["timed out", "failed"]
        assert found["bad"].error == "TimeoutError: its own"
        found = await client.explore(
            base, {"hang": hang, "good": good}, stop_when=lambda each: each.score == 1
        )
        assert [each.status for each in found] == ["stopped", "done"]
        async with client.session(AGENT, session_id=found["hang"].session_id) as run:
            assert run.state == {}  # its lease was given back


async def test_files_that_cannot_be_copied_are_an_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "file").write_text("one")

    async def strategy(run: Any) -> int:
        return 1

    async with Client.sqlite(tmp_path / "agent.db") as client:
        async with client.session(AGENT, session_id=SESSION, workspace=tmp_path / "repo") as run:
            base = run.head
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
        found = await client.explore(base, {"a": strategy})
    assert [each.status for each in found] == ["failed"]
    assert "nowhere" in str(found["a"].error)


def with_large_values(run: Any) -> None:
    run.state["text"] = "line\n" * 4000
    run.state["tuple"] = ("line\n" * 4000,)
    run.state["table"] = dict.fromkeys(range(900), "value" * 9)


def test_strategies_that_leave_large_values_are_compared(client: SyncClient, base: str) -> None:
    found = client.explore(base, {"large": with_large_values}, score=one)

    assert found["large"].changes is not None
    assert found["large"].changes.added["tuple"] == ("line\n" * 4000,)
    assert found["large"].as_dict()["state_changes"] == 3
    assert "large" in str(found)
