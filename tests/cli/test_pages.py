"""The pages about the commands are what the program says of itself."""

from pathlib import Path

from holdfast.cli.commands.pages import written
from tests.cli.kit import Holdfast

PAGES = Path(__file__).parents[2] / "docs" / "cli"


def test_the_pages_are_up_to_date() -> None:
    kept = {
        str(path.relative_to(PAGES)): path.read_text("utf-8")
        for path in PAGES.rglob("*")
        if path.is_file()
    }

    assert kept == written(), "run: holdfast __pages docs/cli"


def test_the_pages_can_be_written(holdfast: Holdfast) -> None:
    holdfast.ok("__pages", "pages")

    page = (holdfast.directory / "pages" / "log.md").read_text()
    assert "| `--graph` |" in page
    assert "[this shape](schemas/log.json)" in page
