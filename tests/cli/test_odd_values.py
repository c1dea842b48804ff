"""Values that are large, have odd keys or more digits than Python writes, in every command."""

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast import SyncClient
from holdfast.core.json_form import from_json
from tests.cli.kit import Holdfast

HUGE = 7 * 10**6000
TEXT = "a line of text\n" * 800
LARGE: dict[str, Any] = {
    "text": TEXT,
    "tuple": (TEXT, 1),
    "set": {f"{n} {TEXT[:40]}" for n in range(300)},
    "table": dict.fromkeys(range(300), TEXT[:40]),
    "list": [f"{n} {TEXT[:40]}" for n in range(300)],
    "bytes": TEXT.encode(),
    "number": HUGE,
    "keys": {HUGE: HUGE, (1, HUGE): [HUGE]},
}


def add(one: int, other: int) -> int:
    return one + other


@pytest.fixture
def odd(tmp_path: Path) -> Holdfast:
    """The command where a session was given large values, had them replaced and taken away."""
    with SyncClient.sqlite(tmp_path / ".holdfast" / "holdfast.db") as client:  # noqa: SIM117
        with client.session("coder", session_id="odd", state={"n": 0}) as run:
            run.checkpoint("empty")
            run.state.update(LARGE)
            run.call(add, HUGE, 1)
            run.checkpoint("added")
            run.state.update(dict.fromkeys(LARGE, "replaced"))
            run.checkpoint("replaced")
            run.state.update(LARGE)
            run.checkpoint("again")
            for name in LARGE:
                del run.state[name]
            run.checkpoint("removed")
    return Holdfast(tmp_path)


def test_large_values_are_shown_in_a_diff_as_they_are(odd: Holdfast) -> None:
    said = odd.json("diff", "empty", "added", "--state")

    assert {path: from_json(value) for path, value in said["added"].items()} == {
        f"$.{name}": value for name, value in LARGE.items()
    }


def test_large_values_that_were_replaced_have_their_old_and_new_value(odd: Holdfast) -> None:
    said = odd.json("diff", "added", "replaced", "--state")

    assert {path: from_json(pair["old"]) for path, pair in said["changed"].items()} == {
        f"$.{name}": value for name, value in LARGE.items()
    }


def test_a_replay_shows_large_values(odd: Holdfast) -> None:
    steps = odd.json("replay", "odd")["steps"]
    removed = [step["changes"]["removed"] for step in steps if step["changes"]]

    assert {f"$.{name}": value for name, value in LARGE.items()} in [
        {path: from_json(value) for path, value in each.items()} for each in removed
    ]


@pytest.mark.parametrize(
    "command",
    [
        ("show", "added"),
        ("show", "added", "--state", "keys"),
        ("diff", "empty", "added"),
        ("diff", "added", "replaced"),
        ("diff", "again", "removed"),
        ("replay", "odd"),
        ("log", "odd"),
        ("effects", "odd"),
        ("rollback", "--dry-run", "added", "--session", "odd"),
        ("sessions",),
    ],
    ids=" ".join,
)
def test_every_command_shows_odd_values(odd: Holdfast, command: tuple[str, ...]) -> None:
    text = odd.ok(*command)
    assert "'code': 68" not in text
    assert "damaged" not in text
    json.loads(odd.ok(*command, "--json"))
