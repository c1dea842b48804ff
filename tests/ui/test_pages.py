"""The document and the files of the page: small, their own, and asked for once."""

import re

from holdfast.ui import app
from holdfast.ui.pages import ADDRESSES, STATIC
from tests.ui.kit import Http

LARGEST = 200_000


def preloaded(http: Http, address: str) -> list[str]:
    text = http.get(address).text
    return re.findall(r'<link rel="modulepreload" href="static/\w+/([\w.]+)" />', text)


def test_all_files_together_are_small() -> None:
    assert sum(path.stat().st_size for path in STATIC.iterdir()) < LARGEST


def test_nothing_is_loaded_from_elsewhere() -> None:
    for path in STATIC.iterdir():
        addresses = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"']*", path.read_text()))
        assert addresses <= {"http://www.w3.org/2000/svg"}, path


def test_a_browser_keeps_the_files_of_an_edition_for_good() -> None:
    http = Http(app("memory://"))
    (style,) = re.findall(r'href="(static/\w+/style.css)"', http.get("/").text)

    kept, asked = http.get(f"/{style}"), http.get("/static/style.css")

    assert kept.content == asked.content == (STATIC / "style.css").read_bytes()
    assert "immutable" in kept.headers["cache-control"]
    assert asked.headers["cache-control"] == "no-cache"
    assert http.get("/static/0123456789abcdef/style.css").status_code == 404


def test_a_view_is_told_of_the_modules_that_it_needs_and_no_others() -> None:
    http = Http(app("memory://"))

    found = {address: preloaded(http, address) for address in ADDRESSES}

    assert {"main.js", "api.js", "sessions.js", "virtual.js"} <= set(found["/"])
    assert "session.js" not in found["/"]
    assert {"main.js", "session.js", "graph.js", "pane.js"} <= set(found["/session"])
    for names in found.values():
        assert len(names) == len(set(names))
        assert all((STATIC / name).is_file() for name in names)
