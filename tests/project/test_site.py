"""The documentation builds as a site: whole, with a reference of every public name, on its own."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.project.names_page import MODULES, names

ROOT = Path(__file__).parents[2]
LOADED = {"img": "src", "link": "href", "script": "src", "iframe": "src", "source": "src"}


class Page(HTMLParser):
    """What a page loads, names and shows."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: set[str] = set()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if found.get("id"):
            self.ids.add(str(found["id"]))
        if tag in LOADED:
            self.loads.add(found.get(LOADED[tag]) or "")
        if tag == "a":
            self.links.add(found.get("href") or "")


# Not --quiet: what is not printed does not count, and strictness is lost.
@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", directory],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


def pages(site: Path) -> dict[str, Page]:
    return {
        str(path.relative_to(site)): Page(path.read_text("utf-8")) for path in site.rglob("*.html")
    }


def test_every_page_is_in_the_menu(site: Path) -> None:
    sources = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    names = {
        str(path.with_name("index.html" if path.name == "README.md" else f"{path.stem}.html"))
        for path in sources
    }

    assert names <= Page((site / "index.html").read_text("utf-8")).links


def test_the_reference_has_every_public_name(site: Path) -> None:
    found = {each for name, page in pages(site).items() if "reference" in name for each in page.ids}
    of_holdfast = {*names("holdfast")} - {"__version__"}
    wanted = {f"holdfast.{name}" for name in of_holdfast}
    for module in MODULES.keys() - {"holdfast"}:
        wanted |= {
            module,
            *(f"{module}.{name}" for name in names(module) if name not in of_holdfast),
        }

    assert not wanted - found


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loads = {each for page in pages(site).values() for each in page.loads}
    styles = "".join(path.read_text("utf-8") for path in site.rglob("*.css"))
    urls = re.findall(r"""(?:url\(|@import )["']?((?:https?:)?//[^"')]*)""", styles)

    assert not [each for each in loads if "//" in each]
    assert not urls
