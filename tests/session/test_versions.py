"""Programs change: sessions saved by an older version go on under a newer one, or say why not."""

# ruff: noqa: SIM117  (a run is a block, and some raise as it ends)

from typing import Any

import pytest

from holdfast import register_migration
from holdfast.errors import SchemaMigrationError
from tests.session.conftest import Open
from tests.session.kit import PowerCut, Tools, power_cut


@pytest.fixture(autouse=True)
def _own_migrations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.core.state_migrations._steps", {})


def renamed(state: dict[str, Any]) -> dict[str, Any]:
    return {"count": state["n"]}


def listed(state: dict[str, Any]) -> dict[str, Any]:
    return {"counts": [state["count"]]}


def test_a_state_is_brought_up_step_by_step(session: Open) -> None:
    with session(version=1, state={"n": 5}):
        pass
    register_migration("coder", 1, renamed)
    register_migration("coder", 2, listed)

    with session(version=3) as run:
        assert run.state == {"counts": [5]}
        run.state["counts"].append(6)
    with session(version=3) as run:
        assert run.state == {"counts": [5, 6]}
        assert run.history(limit=1)[0].metadata == {"program_version": 3}


def test_a_missing_path_is_said_before_anything_is_run_or_written(
    session: Open, client: Any
) -> None:
    with session(version=1, state={"n": 5}) as run:
        pass
    before = client.latest("coder", "fix-42").checkpoint_id

    for _ in range(2):  # no lease is left behind
        with pytest.raises(
            SchemaMigrationError, match=r"version 1 of coder to 2.*register_migration\('coder', 1"
        ):
            with session(version=2):
                raise AssertionError("it must not run")
    assert client.latest("coder", "fix-42").checkpoint_id == before
    with session(version=1) as run:
        assert run.state == {"n": 5}


def test_a_newer_state_is_not_opened_by_an_older_program(session: Open) -> None:
    with session(version=2):
        pass
    with pytest.raises(SchemaMigrationError, match="newer than the program's 1"):
        with session(version=1):
            pass


def test_a_migration_that_fails_is_named_and_changes_nothing(session: Open) -> None:
    with session(version=1, state={"m": 5}):
        pass
    register_migration("coder", 1, renamed)
    with pytest.raises(SchemaMigrationError, match=r"renamed.*failed: KeyError\('n'\)"):
        with session(version=2):
            pass
    with session(version=1) as run:
        assert run.state == {"m": 5}


def test_a_program_without_a_version_counts_as_version_0(session: Open) -> None:
    with session(state={"n": 5}):
        pass
    with pytest.raises(SchemaMigrationError, match="from version 0"), session(version=1):
        pass
    register_migration("coder", 0, renamed)
    with session(version=1) as run:
        assert run.state == {"count": 5}
    with session() as run:  # and one without keeps the version that the state has
        pass
    with session(version=1) as run:
        assert run.state == {"count": 5}


def test_only_dicts_are_migrated(session: Open) -> None:
    with session(version=1, state=[5]):
        pass
    with pytest.raises(SchemaMigrationError, match="list is not a dict"), session(version=2):
        pass
    with session(version=1) as run:
        assert run.state == [5]


def test_a_rollback_to_an_older_version_is_brought_up_too(session: Open) -> None:
    with session(version=1, state={"n": 5}) as run:
        run.checkpoint("old")
    register_migration("coder", 1, renamed)
    with session(version=2) as run:
        run.state["count"] = 6
        run.checkpoint()
        run.rollback(to="old")
        assert run.state == {"count": 5}


def test_a_run_in_flight_goes_on_under_the_new_version(session: Open, tools: Tools) -> None:
    def program(run: Any, name: str) -> None:
        for task in run.tasks.plan("a", "b").remaining():
            with task:
                run.state[name] += run.call(tools.read, task.name)[-1]
                if name == "n" and task.name == "b":
                    raise PowerCut

    with power_cut(), session(version=1, state={"n": 0}) as run:
        program(run, "n")
    register_migration("coder", 1, renamed)
    with session(version=2) as run:
        program(run, "count")
        assert run.state == {"count": 3}
    assert len(tools.ran) == 2


def test_keys_of_a_state_that_are_called_as_tags_are_survive_a_migration(session: Open) -> None:
    mine = {"__class__": "Widget", "__version__": "9"}
    with session(version=1, state={"n": 5, **mine}):
        pass
    register_migration("coder", 1, renamed)

    with session(version=2) as run:
        assert run.state == {"count": 5, **mine}
