"""Content made to do harm is shown, and does none."""

import re

import pytest

from tests.ui.browser.kit import TABS, Server, Viewer, expect, wait_for
from tests.ui.stories import BIDI, BRANCHES, HOSTILE

MOST_DRAWN = 20_000
"""Elements that a page has at most, whatever it shows."""
MOST_TEXT = 300_000
"""Characters that it has at most before anybody asks for more."""


def harmless(viewer: Viewer) -> None:
    """Nothing of a checkpoint became a part of the page."""
    viewer.rest()
    for made in ("script:not([src])", "img[onerror]", "[onclick]", "[onload]", "iframe", "b"):
        expect(viewer.page.locator(made)).to_have_count(0)
    assert viewer.page.locator('a[href^="javascript:"]').count() == 0
    assert viewer.page.evaluate("() => window.broken") is None


@pytest.mark.parametrize("tab", TABS)
def test_scripts_in_every_field_are_shown_as_text(viewer: Viewer, tab: str) -> None:
    viewer.session("hostile", HOSTILE, tab=tab)

    expect(viewer.find(f"tab-{tab}")).to_have_attribute("aria-selected", "true")
    viewer.shows("<script>alert(2)")
    harmless(viewer)


@pytest.mark.parametrize("path", ["page.html", "drawing.svg", "<b onclick=alert(6)>bold.txt"])
def test_files_with_scripts_are_shown_as_source(viewer: Viewer, path: str) -> None:
    viewer.session("hostile", HOSTILE, tab="files", path=path)

    expect(viewer.find("file-view")).to_contain_text("<script>")
    harmless(viewer)


def test_a_file_opened_by_its_own_address_runs_nothing(viewer: Viewer) -> None:
    viewer.session("hostile", HOSTILE)
    at = viewer.find("checkpoint-row").first.get_attribute("data-id")
    for path in ("page.html", "drawing.svg"):
        answer = viewer.context.request.get(
            f"{viewer.server.origin}/api/v1/raw", params={"id": str(at), "path": path}
        )
        assert answer.ok
        assert answer.headers["content-type"].split(";")[0] in (
            "text/plain",
            "application/octet-stream",
        )
        assert "sandbox" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_characters_that_turn_text_around_are_not_obeyed(viewer: Viewer) -> None:
    viewer.session("hostile", HOSTILE, tab="files")

    expect(viewer.find("file-row", "gnp.exe")).to_be_visible()
    shown = viewer.page.evaluate("() => document.body.innerText")
    assert BIDI not in shown


def test_the_list_and_the_inbox_show_hostile_names_as_text(viewer: Viewer) -> None:
    viewer.go()
    expect(viewer.find("session-row", "<script>alert(2)")).to_be_visible()
    harmless(viewer)
    viewer.go("inbox")
    harmless(viewer)


@pytest.mark.parametrize(
    ("tab", "shown"),
    [("conversation", "mmm"), ("state", "sss"), ("files", "qqq"), ("about", "nnn")],
)
def test_lines_of_ten_million_characters_are_cut(
    look, crowded: Server, tab: str, shown: str
) -> None:
    path = {"path": "long.txt"} if tab == "files" else {}
    viewer = look(crowded).session("crowd", "long", tab=tab, **path)

    expect(viewer.find(f"tab-{tab}")).to_have_attribute("aria-selected", "true")
    viewer.shows(shown)
    viewer.rest()
    is_bounded(viewer)
    assert not viewer.scrolls_sideways()


def test_more_of_a_long_line_is_shown_a_piece_at_a_time(look, crowded: Server) -> None:
    viewer = look(crowded).session("crowd", "long")
    message = viewer.find("message").first
    message.locator("[data-test=show-all]").click()

    expect(message).to_contain_text("m" * 100_000)
    is_bounded(viewer)


def test_a_file_of_a_million_lines_is_shown_a_piece_at_a_time(look, crowded: Server) -> None:
    viewer = look(crowded).session("crowd", "long", tab="files", path="lines.txt")

    expect(viewer.find("file-view").locator(".line").first).to_be_visible()
    viewer.rest()
    is_bounded(viewer)


def test_thousands_of_branches_are_counted_and_some_drawn(look, crowded: Server) -> None:
    viewer = look(crowded).session("crowd", "root")

    viewer.shows(f"{BRANCHES - 20:,} more forks")
    viewer.rest()
    is_bounded(viewer)


def test_thousands_of_sessions_are_drawn_as_far_as_they_are_seen(look, crowded: Server) -> None:
    viewer = look(crowded).go()

    expect(viewer.find("summary")).to_have_text(f"{BRANCHES + 2:,} sessions")
    listed = viewer.find("sessions")

    def scrolled() -> bool:
        listed.evaluate("list => list.scrollTo(0, list.scrollHeight)")
        rows = listed.locator("[aria-setsize]").last.get_attribute("aria-setsize")
        return int(rows or 0) > 1000

    wait_for(scrolled, "more than a thousand sessions to be read")
    is_bounded(viewer)


def test_a_list_is_read_on_though_its_beginning_is_read_anew_meanwhile(
    look, crowded: Server
) -> None:
    viewer: Viewer = look(crowded)
    viewer.page.goto("about:blank")  # it may have signed in just now, and asked for events
    told, behind = re.compile(r"/events$"), re.compile(r"/sessions\?.*cursor=")
    events = viewer.hold(told)
    more = viewer.hold(behind)
    with viewer.page.expect_request(told):
        viewer.go()
    with viewer.page.expect_request(behind):
        viewer.find("sessions").evaluate("list => list.scrollTo(0, list.scrollHeight)")

    with viewer.page.expect_response(lambda answer: answer.url.endswith("/sessions?limit=100")):
        events[0].continue_()
    viewer.quiet(but=more[0].request)
    more[0].continue_()

    expect(viewer.find("sessions").locator("[aria-setsize='300']").first).to_be_visible()


def is_bounded(viewer: Viewer) -> None:
    """See that the page has not become so large that a browser would stop."""
    drawn = viewer.page.evaluate("() => document.getElementsByTagName('*').length")
    text = viewer.page.evaluate("() => document.body.textContent.length")
    assert drawn < MOST_DRAWN
    assert text < MOST_TEXT
