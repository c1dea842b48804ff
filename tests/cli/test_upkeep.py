"""Looking after a store: stats, prune, gc, export, import, migrate, doctor."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from holdfast import SyncClient
from tests.cli.kit import Holdfast


def test_stats_tell_logical_and_stored_bytes(project: Holdfast) -> None:
    found = project.json("stats")

    assert (found["checkpoints"], found["sessions"]) == (15, 2)
    assert found["sharing"] == found["logical_bytes"] / found["stored_bytes"]
    assert "sharing " in project.ok("stats")


def test_a_dry_prune_removes_nothing(project: Holdfast) -> None:
    found = project.json("prune", "--last", "2", "--dry-run")

    assert found["dry_run"] is True
    assert len(found["removed"]) + found["kept"] == 15
    assert project.json("stats")["checkpoints"] == 15


def test_prune_keeps_what_a_policy_says(project: Holdfast) -> None:
    project.ok("prune", "--last", "0", "--named", "start", "--session", "fix-42", "--yes")

    names = {each["step_name"] for each in project.json("log", "--all")["checkpoints"]}
    assert "start" in names
    assert "test: failed" not in names
    assert "rewrite" in names


def test_gc_frees_what_prune_has_left(project: Holdfast) -> None:
    project.ok("prune", "--last", "1", "--yes")

    would = project.json("gc", "--grace", "0", "--dry-run")
    done = project.json("gc", "--grace", "0")

    assert would["chunks"] == done["chunks"] > 0
    assert project.ok("verify").endswith("all whole\n")


def test_no_store_is_made_for_what_is_no_bundle(holdfast: Holdfast) -> None:
    bundle = holdfast.directory / "torn.holdfast"
    bundle.write_bytes(b'{"format": "holdfast-bundle", "version": 1}\ntorn')

    refused = holdfast("import", "torn.holdfast")

    assert refused.code == 6
    assert list(holdfast.directory.iterdir()) == [bundle]


def test_a_bundle_goes_to_another_store(project: Holdfast, tmp_path: Path) -> None:
    written = project.json("export", "two.holdfast", "--session", "bolder")
    brought = project.json("import", "two.holdfast", "--store", "sqlite:///other.db")
    again = project.ok("import", "two.holdfast", "--store", "sqlite:///other.db")

    assert (written["checkpoints"], brought["checkpoints"]) == (2, 2)
    assert again.endswith("2 checkpoints there already\n")
    with SyncClient.sqlite(tmp_path / "other.db") as client:
        assert [each.session_id for each in client.sessions()] == ["bolder"]


def test_a_bundle_is_not_replaced_without_asking(project: Holdfast) -> None:
    file = project.directory / "mine.holdfast"
    file.write_text("precious")

    refused = project("export", "mine.holdfast")

    assert refused.code == 5
    assert file.read_text() == "precious"
    assert project("export", "mine.holdfast", "--yes", "--id", "bolder@").code == 0


def test_a_store_of_an_earlier_format_is_brought_up_to_date(tmp_path: Path) -> None:
    old = sorted((Path(__file__).parents[1] / "golden").rglob("*.db"))[0]
    shutil.copy(old, tmp_path / "old.db")
    with sqlite3.connect(tmp_path / "old.db") as db:
        (version,) = db.execute("PRAGMA user_version").fetchone()
    db.close()
    holdfast = Holdfast(tmp_path)

    told = holdfast("migrate", "--store", "old.db", "--json")
    first = json.loads(told.out)
    second = holdfast.json("migrate", "--store", "old.db")

    assert f"is brought from format {version} to {first['to']}" in told.err
    assert (first["from"], first["migrated"]) == (version, version != first["to"])
    assert (second["from"], second["migrated"]) == (first["to"], False)


def test_the_doctor_looks_at_everything(project: Holdfast) -> None:
    found = project.json("doctor")

    assert found["ok"] is True
    names = [check["name"] for check in found["checks"]]
    assert {"python", "ormsgpack", "store", "permissions", "reachable", "clock"} <= set(names)


def test_the_doctor_sees_a_clock_that_was_set_back(project: Holdfast) -> None:
    with sqlite3.connect(project.directory / ".holdfast" / "holdfast.db") as db:
        (newest,) = db.execute("SELECT max(seq) FROM checkpoints").fetchone()
        db.execute(
            "UPDATE checkpoints SET seq = seq + ? WHERE seq = ?", (3600 * 10**6 * 1024, newest)
        )
    db.close()

    clock = [c for c in project("doctor", "--json").json["checks"] if c["name"] == "clock"]

    assert clock[0]["verdict"] == "warning"
    assert "ahead of this machine's clock" in clock[0]["detail"]


def test_the_doctor_says_what_is_wrong_with_the_store(holdfast: Holdfast) -> None:
    done = holdfast("doctor")

    assert done.code == 3
    assert "failed   store        there is no store here" in done.out


@pytest.mark.parametrize("command", [["stats"], ["verify"], ["log"], ["sessions"]])
def test_a_store_that_is_only_looked_at_is_not_made(holdfast: Holdfast, command: list[str]) -> None:
    assert holdfast(*command, "--store", "sqlite:///nothing.db").code == 3
    assert list(holdfast.directory.iterdir()) == []
