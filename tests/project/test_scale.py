"""The scale test can be run by anybody: in small, on every kind of store, it gives its tables."""

import shutil
from pathlib import Path

import pytest

from benchmarks.scale import tables
from benchmarks.scale.__main__ import main
from benchmarks.scale.places import PLACES
from benchmarks.scale.questions import QUESTIONS
from benchmarks.scale.shape import PROBED, Shape
from benchmarks.scale.upkeep import WHAT


@pytest.mark.parametrize("kind", PLACES)
def test_a_store_is_loaded_asked_and_looked_after(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    what = ["--stores", kind, "--sizes", "600", "--only", "questions,upkeep"]

    main(["--quick", *what, "--dir", str(tmp_path)])

    out = capsys.readouterr().out
    assert [
        name for name in (*(q.name for q in QUESTIONS), *WHAT) if f"| {name} |" not in out
    ] == []
    assert list(tmp_path.iterdir()) == []


def test_a_session_that_lives_for_long_is_opened_and_gone_on_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--quick", "--only", "session", "--dir", str(tmp_path)])

    out = capsys.readouterr().out
    for kind in ("calls", "checkpoints", "opens"):
        for operation in ("opening", "call", "checkpoint", "rollback"):
            assert f"| {operation}, after so many {kind} |" in out
        assert f"| memory after {kind} |" in out


@pytest.mark.parametrize("size", [600, 10_000, 1_000_000])
def test_the_sessions_of_a_store_are_about_as_many_checkpoints_as_it_is_large(size: int) -> None:
    shape = Shape(size, length=40 if size < 1000 else 200)

    planned = [shape.long, shape.probe, *shape.ordinary]

    assert sum(each.checkpoints for each in planned) == pytest.approx(size, rel=0.1)
    assert shape.probe.checkpoints == PROBED
    assert len({each.name for each in planned}) == len(planned)


@pytest.mark.parametrize("section", [*PLACES, "session"])
def test_every_table_has_its_place_on_the_page(
    section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = shutil.copy(tables.PAGE, tmp_path)
    monkeypatch.setattr(tables, "PAGE", Path(page))

    tables.write(section, "| measured |")

    assert f"<!-- {section}: start -->\n\n| measured |\n\n<!-- {section}: end -->" in Path(
        page
    ).read_text("utf-8")
