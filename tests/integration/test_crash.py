"""An acknowledged save is whole and stays, whenever the process is killed; none is ever half there.

Real processes save to real stores and are killed with SIGKILL: at every named point of a commit,
and at random moments, from the opening of a new store on. HOLDFAST_CRASHES says how many times.
"""

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import SyncClient
from holdfast.testing import crash_points
from holdfast.verbs import notes
from tests.integration.crash_jobs import AGENT, LOG, NOTED, noted_at, state_at
from tests.integration.fork_server import Ended, ForkServer

pytestmark = pytest.mark.crash

STORES = {"sqlite": "sqlite:///{}/holdfast.db", "file": "file://{}/checkpoints"}
POINTS = [(store, point) for store in STORES for point in crash_points.POINTS[store]]

CRASHES = int(os.environ.get("HOLDFAST_CRASHES", "60"))
AT_EACH_POINT = max(2, CRASHES // 40)
AT_RANDOM = max(2, (CRASHES - 2 * AT_EACH_POINT * len(POINTS)) // len(STORES))
KILLS_OF_ONE_STORE = 20

SAVE = "tests.integration.crash_jobs:save_until_killed"
SAVE_WITH_NOTES = "tests.integration.crash_jobs:save_with_notes_until_killed"
SAVE_IN_TASKS = "tests.integration.crash_jobs:save_in_tasks_until_killed"


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer(
        "tests.integration.crash_jobs", "holdfast.stores.file.store", "holdfast.stores.sqlite.store"
    ) as server:
        yield server


class Survivor:
    """A store whose writers are killed, and what they were told is kept in it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._acknowledged: set[str] = set()
        self._seen: set[str] = set()
        self._notes: set[tuple[str, str]] = set()

    def check(self, ended: Ended) -> None:
        """After a kill: what was acknowledged is there, nothing is half there, saving goes on."""
        assert ended.signal == signal.SIGKILL, ended.error
        self._acknowledged |= {saved for saved, _, _ in ended.told}
        for saved, when, step in ended.told:
            self._notes |= notes_told(saved, when, step)
        told = [step for step in ended.told if step[1] not in ("after", "alone")]
        with SyncClient.open(self.url) as client:
            verified = client.verify()
            assert verified.ok, verified.damaged
            self._check_notes(client)
            steps = {saved: (session, step) for saved, session, step in told}
            listed = self._check_sessions(client)
            assert self._acknowledged <= listed
            for saved, (session, step) in steps.items():
                checkpoint = client.restore(saved)
                assert (checkpoint.session_id, checkpoint.step_index) == (session, step)
            after = client.save("after", execution_state={"after": len(ended.told)})
            assert client.restore(after).execution_state == {"after": len(ended.told)}

    def _check_sessions(self, client: SyncClient) -> set[str]:
        listed: set[str] = set()
        for session in client.sessions(AGENT):
            chain = client.timeline(AGENT, session.session_id, limit=None)
            # Every step once, each the child of the one before: nothing lost, nothing twice.
            assert [info.step_index for info in chain] == [*range(len(chain) - 1, -1, -1)]
            parents = [info.checkpoint_id for info in chain[1:]]
            assert [info.parent_id for info in chain] == [*parents, None]
            for info in chain:
                if info.checkpoint_id not in self._seen:
                    state = client.restore(info.checkpoint_id).execution_state
                    assert state == state_at(session.session_id, info.step_index)
            listed |= {info.checkpoint_id for info in chain}
        self._seen |= listed
        return listed

    def _check_notes(self, client: SyncClient) -> None:
        """Every note that was acknowledged is there, and none without those it came with."""
        found = client.runtime.run(notes.read(client.runtime.engine, None))
        there = {(note.scope, note.key) for note, _ in found}
        assert len(there) == len(found)
        assert self._notes <= there
        for note, value in found:
            when, _, number = note.key.partition(" ")
            assert value == noted_at(value["of"], value["step"])
            assert note.scope == (LOG if number else value["of"])
            assert notes_told(value["of"], when, value["step"]) <= there
        with_record = {note.scope for note, _ in found if note.key == "with"}
        saved = client.timeline(AGENT, NOTED, limit=None)
        assert with_record == {info.checkpoint_id for info in saved}

    def check_all_again(self) -> None:
        """At the end: everything is still what it was."""
        self._seen.clear()
        with SyncClient.open(self.url) as client:
            assert self._acknowledged <= self._check_sessions(client)
            self._check_notes(client)


def notes_told(checkpoint_id: str, when: str, step: int) -> set[tuple[str, str]]:
    """The notes that came together, with the record or without."""
    if when == "alone":
        return {(LOG, f"alone {step}")}
    if when in (NOTED, "with"):
        return {(checkpoint_id, "with"), (LOG, f"with {step}")}
    return {(checkpoint_id, "after"), (LOG, f"after {step}")} if when == "after" else set()


def survivors(store: str, directory: Path, kills: int) -> Iterator[Survivor]:
    """For each kill the store it happens in; a new one from time to time."""
    survivor: Survivor | None = None
    for kill in range(kills):
        if survivor is None or kill % KILLS_OF_ONE_STORE == 0:
            if survivor is not None:
                survivor.check_all_again()
            place = directory / str(kill)
            place.mkdir()
            survivor = Survivor(STORES[store].format(place))
        yield survivor
    assert survivor is not None
    survivor.check_all_again()


@pytest.mark.parametrize(("store", "point"), POINTS)
def test_a_save_killed_at_a_named_point_is_whole_or_absent(
    store: str, point: str, server: ForkServer, tmp_path: Path
) -> None:
    chance = random.Random(point)

    for survivor in survivors(store, tmp_path, AT_EACH_POINT):
        survivor.check(server.killed(SAVE, survivor.url, point, chance.randint(1, 8)))


@pytest.mark.parametrize(("store", "point"), POINTS)
def test_a_save_with_notes_killed_at_a_named_point_is_whole_or_absent(
    store: str, point: str, server: ForkServer, tmp_path: Path
) -> None:
    chance = random.Random(point)

    for survivor in survivors(store, tmp_path, AT_EACH_POINT):
        survivor.check(server.killed(SAVE_WITH_NOTES, survivor.url, point, chance.randint(1, 24)))


@pytest.mark.parametrize("store", STORES)
def test_a_save_killed_at_any_moment_is_whole_or_absent(
    store: str, server: ForkServer, tmp_path: Path
) -> None:
    chance = random.Random(store)

    for survivor in survivors(store, tmp_path, AT_RANDOM):
        job = chance.choice([SAVE, SAVE_WITH_NOTES, SAVE_WITH_NOTES, SAVE_IN_TASKS])
        acknowledged = chance.randint(0, 12)
        # With nothing acknowledged yet, the kill falls into the opening of the store.
        spin = chance.randrange(30_000 if acknowledged else 300_000)
        survivor.check(server.killed(job, survivor.url, told=acknowledged, spin=spin))


@pytest.mark.parametrize("store", STORES)
def test_every_save_passes_the_points_of_its_store_in_order(store: str, tmp_path: Path) -> None:
    reached: list[str] = []

    with SyncClient.open(STORES[store].format(tmp_path)) as client:
        client.save("agent", execution_state={"step": 1})
        with crash_points.listening(reached.append):
            client.save("agent", execution_state={"step": 2})

    assert tuple(reached) == crash_points.POINTS[store]
