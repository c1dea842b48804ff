"""Leases: one process works on a session; one that is gone is followed at once; never two heads."""

# ruff: noqa: PT012, SIM117  (a run is a block, and some raise as it ends)

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client, SyncClient
from holdfast.errors import (
    CheckpointNotFoundError,
    SessionBusyError,
    SessionLostError,
    StoreClosedError,
    StoreConnectionError,
    UnknownEffectError,
)
from holdfast.runtime import steps
from holdfast.runtime.steps import Plan
from holdfast.session import lease as leases
from holdfast.system import processes
from holdfast.verbs import leases as held_leases
from holdfast.verbs import notes
from tests.clients import PERSISTENT, url_of
from tests.integration.fork_server import PATH, ROOT, ForkServer
from tests.session.conftest import Open
from tests.session.kit import AGENT, SESSION, PowerCut, Tools, cut_at, power_cut

JOBS = "tests.session.lease_jobs"


@pytest.fixture(params=PERSISTENT)
def kept_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request.param, tmp_path)


@contextmanager
def other_process(url: str) -> Iterator[subprocess.Popen[str]]:
    """A process that works on the session."""
    with subprocess.Popen(
        [sys.executable, "-m", JOBS, "hold", url],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": PATH},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
        yield child


class Clock:
    """A clock for leases that can be set."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self, tz: Any = None) -> datetime:
        return datetime.now(UTC) + self.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(held_leases, "datetime", clock)
    return clock


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever holds the session is on another machine: nobody can tell whether they live."""
    monkeypatch.setattr(leases, "is_dead", lambda owner: False)


def test_a_session_that_a_process_works_on_is_busy_until_it_ends(kept_url: str) -> None:
    with SyncClient.open(kept_url) as client, other_process(kept_url) as child:
        with pytest.raises(SessionBusyError, match=rf"is worked on by process {child.pid} on"):
            with client.session(AGENT, session_id=SESSION, takeover=True):
                pass
        child.communicate("go\n")
        with client.session(AGENT, session_id=SESSION) as run:
            assert run.state == {"by": "the other"}


def test_a_process_that_was_killed_here_is_followed_at_once(kept_url: str) -> None:
    with SyncClient.open(kept_url) as client, other_process(kept_url) as child:
        child.send_signal(signal.SIGKILL)
        child.wait()
        with client.session(AGENT, session_id=SESSION) as run:
            assert run.state == {"by": "the other"}
            assert run.follows_crash
        with client.session(AGENT, session_id=SESSION) as run:
            assert not run.follows_crash


def test_of_processes_that_open_a_session_at_once_each_has_it_alone(kept_url: str) -> None:
    with ForkServer(JOBS) as server:
        told = [
            each
            for round in range(4)
            for (each,) in server.at_once(*[(f"{JOBS}:open_and_count", kept_url)] * 4)
        ]

    with SyncClient.open(kept_url) as client, client.session(AGENT, session_id=SESSION) as run:
        assert told.count("wrote") >= 4
        assert run.state == {"n": told.count("wrote")}
        chain = [run.head, *(info.checkpoint_id for info in client.ancestors(run.head))]
        assert len(chain) == len(run.history(limit=None))  # one line of them, no branches


_LOOKS = """
import os, sys
from holdfast.system import processes
os.setgroups([]); os.setgid(65534); os.setuid(65534)
assert not os.path.exists("/proc/" + sys.argv[2]), "it can be seen"
print(processes.is_dead(sys.argv[1]), processes.is_dead(sys.argv[3]))
"""


def test_a_process_that_a_mount_hides_is_alive(tmp_path: Path) -> None:
    """With hidepid=2 nobody sees the processes of another user; dead ones are known all the same.

    Where the kernel lets us, in a mount of our own.
    """
    owner = processes.this_process()
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    gone = owner.rsplit(":", 2)[0] + f":{ended.pid}:1"
    script = tmp_path / "looks.py"
    script.write_text(_LOOKS)
    mount = 'mount -t proc -o hidepid=2 proc /proc && exec "$@"'
    command = [sys.executable, str(script), owner, str(os.getpid()), gone]
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", mount, "sh", *command],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": PATH},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode and ("unshare" in done.stderr or "mount" in done.stderr):
        return  # it is not for us to mount anything; see the next test
    assert done.stdout == "False True\n", done.stderr


def test_where_a_process_cannot_be_seen_a_signal_tells_whether_it_lives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    owner = processes.this_process()
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    gone = owner.rsplit(":", 2)[0] + f":{ended.pid}:1"
    monkeypatch.setattr(processes, "_started", lambda pid: None)

    assert not processes.is_dead(owner)
    assert processes.is_dead(gone)


def test_two_runs_of_one_process_do_not_share_a_session(session: Open) -> None:
    with session() as first:
        with pytest.raises(SessionBusyError, match=f"process {os.getpid()}"), session():
            pass
        first.state["n"] = 1
    with session() as second:
        assert second.state == {"n": 1}


def test_an_expired_lease_of_another_machine_needs_takeover(
    session: Open, clock: Clock, elsewhere: None
) -> None:
    first = session(lease_seconds=60)
    with pytest.raises(SessionLostError), first:
        clock.ahead = timedelta(seconds=61)
        with pytest.raises(SessionBusyError, match=r"not been heard of since.*takeover=True"):
            with session():
                pass
        with session(takeover=True) as second:
            second.state["by"] = "second"
    with session() as run:
        assert run.state == {"by": "second"}


@pytest.mark.parametrize("first_to_write", ["old", "new"])
def test_of_two_that_believe_they_hold_it_only_the_last_to_take_it_writes(
    session: Open, clock: Clock, elsewhere: None, first_to_write: str
) -> None:
    old, new = session(lease_seconds=60), session(takeover=True, lease_seconds=60)
    old.__enter__()
    clock.ahead = timedelta(seconds=61)
    new.__enter__()
    clock.ahead = timedelta()  # and the clock of the old one was wrong: it sees nothing wrong
    new.state["by"] = "new"
    if first_to_write == "new":
        new.checkpoint("second")
    old.state["by"] = "old"
    with pytest.raises(SessionLostError, match="another process took over"):
        old.checkpoint("first")
    with pytest.raises(SessionLostError):
        old.close()
    new.checkpoint("third")
    new.close()
    with session() as run:
        assert run.state == {"by": "new"}
        assert "first" not in [info.step_name for info in run.history()]


def test_who_lost_the_session_sends_nothing(
    session: Open, clock: Clock, elsewhere: None, tools: Tools
) -> None:
    def send(run: Any, name: str) -> Any:
        return run.call(tools.send, name, effect="irreversible")

    old, new = session(lease_seconds=60), session(takeover=True, lease_seconds=60)
    old.__enter__()
    send(old, "before")
    clock.ahead = timedelta(seconds=61)
    new.__enter__()
    with pytest.raises(SessionLostError):
        send(old, "by the old one")
    assert send(new, "before") == ["send", "before", 1]
    send(new, "by the new one")
    with power_cut(), new:
        raise PowerCut
    with session() as run:  # what the old one noted does not disturb
        send(run, "before")
        send(run, "by the new one")
        assert run.unknown_effects() == []
    assert [call[1] for call in tools.ran] == ["before", "by the new one"]
    with pytest.raises(SessionLostError):
        old.close()


def test_who_lost_the_session_does_not_disturb_the_journal(
    session: Open, clock: Clock, elsewhere: None, tools: Tools
) -> None:
    old, new = session(lease_seconds=60), session(takeover=True, lease_seconds=60)
    old.__enter__()
    clock.ahead = timedelta(seconds=61)
    new.__enter__()
    clock.ahead = timedelta()
    with pytest.raises(SessionLostError):  # it is told before anything is called
        old.call(tools.read, "by the old one")
    new.call(tools.read, "by the new one")
    with power_cut(), new:
        raise PowerCut
    with session() as run:
        assert run.call(tools.read, "by the new one") == ["read", "by the new one", 1]
    with pytest.raises(SessionLostError):
        old.close()


def test_what_was_begun_before_a_takeover_is_unknown(
    session: Open, clock: Clock, elsewhere: None, tools: Tools
) -> None:
    old = session(lease_seconds=60)
    old.__enter__()
    with cut_at("run:after_tool"):
        old.call(tools.send, effect="irreversible")
    clock.ahead = timedelta(seconds=61)

    with pytest.raises(UnknownEffectError), session(takeover=True) as new:
        new.call(tools.send, effect="irreversible")
    assert len(tools.ran) == 1
    with pytest.raises(SessionLostError), old:
        old.unknown_effects()[0].mark_done()


def test_a_clock_that_is_set_back_does_not_hide_the_newest_checkpoint(
    session: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids and times follow the clock; what was written last comes last."""
    from holdfast import ids

    with session() as run:
        run.state["n"] = 1
        run.checkpoint("old")
    earlier = ids._Clock()
    monkeypatch.setattr(ids, "_clock", earlier)
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() - 3_600 * 10**9)
    with session() as run:
        assert run.state == {"n": 1}
        run.state["n"] = 2
        run.checkpoint("new")

    with session() as run:
        assert run.state == {"n": 2}
        run.state["n"] = 3
    with session() as run:
        assert run.state == {"n": 3}


def test_an_async_run_ends_although_its_servers_client_takes_a_cancellation_for_a_timeout() -> None:
    async def work() -> None:
        begun = asyncio.Event()

        async def late() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise StoreConnectionError("no answer in time") from None

        def keep_lease() -> Plan[None]:
            yield from steps.call(late)

        async with Client.memory() as client, asyncio.timeout(60):
            async with client.session(AGENT, session_id=SESSION, lease_seconds=0.04) as run:
                run._session.checkpointer.keep_lease = keep_lease  # type: ignore[method-assign]
                await begun.wait()
                begun.clear()

    asyncio.run(work())


def test_a_lease_held_with_a_clock_set_back_is_still_held(session: Open, clock: Clock) -> None:
    with session() as run:
        clock.ahead = timedelta(hours=-1)
        with pytest.raises(SessionBusyError), session():
            pass
        run.checkpoint()


def test_the_lease_is_kept_during_a_long_call(kept_url: str) -> None:
    """Longer than the lease: another process finds it held all the same."""

    def long() -> list[str]:
        found: list[str] = []
        seen = threading.Event()
        with SyncClient.open(kept_url) as other:
            while len(found) < 4:
                seen.wait(0.2)
                try:
                    with other.session(AGENT, session_id=SESSION, takeover=True):
                        found.append("taken")
                except SessionBusyError as busy:
                    found.append("busy" if "is worked on" in str(busy) else str(busy))
        return found

    with SyncClient.open(kept_url) as client:
        with client.session(AGENT, session_id=SESSION, lease_seconds=0.4) as run:
            assert run.call(long) == ["busy"] * 4


async def test_the_lease_of_an_async_run_is_kept_while_sync_tools_run(tmp_path: Path) -> None:
    url = url_of("sqlite", tmp_path)

    def long() -> str:
        with SyncClient.open(url) as other:
            for _ in range(4):
                threading.Event().wait(0.2)
                with pytest.raises(SessionBusyError, match="is worked on"):
                    other.session(AGENT, session_id=SESSION, takeover=True).__enter__()
        return "held"

    async with Client.open(url) as client:
        async with client.session(AGENT, session_id=SESSION, lease_seconds=0.4) as run:
            assert await asyncio.gather(*(run.call(long) for _ in range(6))) == ["held"] * 6


@pytest.mark.parametrize("error", [ValueError, PowerCut, KeyboardInterrupt])
def test_every_way_out_lets_go_of_the_session(session: Open, error: type[BaseException]) -> None:
    with pytest.raises(error), session():
        raise error
    with session():
        pass


def test_a_failed_open_leaves_no_lease(session: Open, client: Any) -> None:
    for point in ("run:before_checkpoint", "run:after_checkpoint"):
        with cut_at(point), session():
            pass
    with session() as run:
        head = run.head
    client.expire(head)
    with pytest.raises(CheckpointNotFoundError), session() as run:
        run.adopt("nowhere")
    with session():
        pass


def test_a_client_that_is_closed_under_a_run_ends_quietly(tmp_path: Path) -> None:
    client = SyncClient.sqlite(tmp_path / "h.db")
    run = client.session(AGENT, session_id=SESSION, lease_seconds=0.04)
    run.__enter__()
    client.close()
    assert run._beat is not None
    run._beat.join(30)
    assert not run._beat.is_alive()
    with pytest.raises(StoreClosedError):
        run.close()


def test_leases_of_sessions_with_alike_names_are_kept_apart(client: Any) -> None:
    names = [("a", "b/c"), ("a/b", "c"), ("a", "b"), ("a", "b ")]
    runs = [client.session(agent, session_id=session) for agent, session in names]
    for run in runs:
        run.__enter__()
    for run in runs:
        run.close()


def test_a_client_that_is_closed_lets_go_of_its_sessions(kept_url: str) -> None:
    client = SyncClient.open(kept_url)
    run = client.session(AGENT, session_id=SESSION).__enter__()
    run.state["unsaved"] = True
    client.close()

    with SyncClient.open(kept_url) as other, other.session(AGENT, session_id=SESSION) as again:
        assert again.state == {}
    with pytest.raises(StoreClosedError):
        run.close()


async def test_an_async_client_that_is_closed_lets_go_of_its_sessions(kept_url: str) -> None:
    client = Client.open(kept_url)
    run = await client.session(AGENT, session_id=SESSION).__aenter__()
    await client.close()

    async with Client.open(kept_url) as other, other.session(AGENT, session_id=SESSION) as again:
        assert again.state == {}
    with pytest.raises(StoreClosedError):
        await run.close()


def test_what_opening_reads_does_not_grow_with_earlier_openings(
    client: Any, session: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened() -> int:
        read: list[int] = []
        decode = notes.with_values

        def counted(engine: Any, found: Any, *given: Any) -> Any:
            read.append(len(found))
            return decode(engine, found, *given)

        with monkeypatch.context() as patch:
            patch.setattr(notes, "with_values", counted)
            with session():
                pass
        return sum(read)

    for _ in range(5):
        opened()
    before = opened()
    for _ in range(20):
        opened()

    assert opened() == before


REPLACING = ["memory", "sqlite", "postgres"]


def lease_notes(client: SyncClient) -> list[str]:
    return [note.key for note in client.store.notes([leases.scope_of(AGENT, SESSION)])]


@pytest.mark.parametrize("store", REPLACING)
def test_a_lease_has_one_note_more_however_often_it_is_renewed(store: str, tmp_path: Path) -> None:
    with SyncClient.open(url_of(store, tmp_path)) as client:
        engine = client.runtime.engine
        lease = client.runtime.run(leases.acquire(engine, AGENT, SESSION, 30.0, False))
        for _ in range(5):
            lease = client.runtime.run(held_leases.renew(engine, lease))
            assert lease_notes(client) == ["lease/1", lease.renewal]
        client.runtime.run(leases.release(engine, lease, leases.CLEAN, 0))

        assert lease_notes(client) == ["lease/1", "lease/1/released"]


@pytest.mark.parametrize("store", REPLACING)
def test_of_earlier_openings_the_numbers_stay_and_how_the_last_ones_ended(
    store: str, tmp_path: Path
) -> None:
    with SyncClient.open(url_of(store, tmp_path)) as client:
        for _ in range(12):
            with client.session(AGENT, session_id=SESSION):
                pass

        found = lease_notes(client)

        assert [key for key in found if "released" not in key] == [
            f"lease/{n}" for n in range(1, 13)
        ]
        ended = [f"lease/{n}/released" for n in (10, 11, 12)]
        assert [key for key in found if "released" in key] == ended


@pytest.mark.parametrize("store", REPLACING)
def test_who_lost_the_session_long_ago_is_refused_whatever_was_noted_since(
    store: str, tmp_path: Path, elsewhere: None
) -> None:
    with SyncClient.open(url_of(store, tmp_path)) as client:
        engine = client.runtime.engine
        old = client.runtime.run(leases.acquire(engine, AGENT, SESSION, 0.0, False))
        for _ in range(12):
            now = client.runtime.run(leases.acquire(engine, AGENT, SESSION, 0.0, True))
            client.runtime.run(held_leases.renew(engine, now))

        with pytest.raises(SessionLostError):
            client.runtime.run(held_leases.renew(engine, old))
