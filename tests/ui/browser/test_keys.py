"""The page is used with the keyboard alone."""

import re

import pytest

from holdfast import SyncClient
from tests.ui import stories
from tests.ui.browser.kit import Server, Viewer, expect
from tests.ui.stories import AGENT, SESSION


@pytest.fixture
def stepped(client: SyncClient, server: Server, look) -> Viewer:
    """A session of five steps, at its newest."""
    stories.steps(client, "walker", "walk", 5)
    viewer = look(server).session("walker", "walk")
    expect(viewer.find("message", "message 4")).to_be_visible()
    return viewer


def test_j_and_k_step_through_the_checkpoints(stepped: Viewer) -> None:
    stepped.press("j")
    expect(stepped.find("message", "message 4")).to_have_count(0)
    expect(stepped.find("message", "message 3")).to_be_visible()
    stepped.press("k")
    expect(stepped.find("message", "message 4")).to_be_visible()


def test_the_scrubber_goes_to_any_checkpoint(stepped: Viewer) -> None:
    stepped.find("scrubber").focus()
    stepped.press("Home")

    expect(stepped.find("message", "message 0")).to_be_visible()
    expect(stepped.find("message")).to_have_count(1)


def test_a_film_goes_from_the_first_to_the_last(stepped: Viewer) -> None:
    stepped.press("Space")

    expect(stepped.find("message")).to_have_count(1)
    expect(stepped.find("message")).to_have_count(2)
    expect(stepped.find("message")).to_have_count(5)
    expect(stepped.find("play")).to_have_attribute("aria-label", re.compile("Play"))


def test_views_are_reached_by_g_and_a_letter(viewer: Viewer) -> None:
    viewer.go()
    expect(viewer.find("session-row").first).to_be_visible()
    for letter, where in {"i": "inbox", "d": "storage"}.items():
        viewer.press("g", letter)
        viewer.page.wait_for_url(f"**/{where}")
        viewer.rest()
    viewer.press("g", "s")
    expect(viewer.find("session-row").first).to_be_visible()


def test_a_session_is_searched_chosen_and_opened_by_keys(viewer: Viewer) -> None:
    viewer.go()
    expect(viewer.find("session-row").first).to_be_visible()
    viewer.press("/")
    viewer.page.keyboard.type("42")
    expect(viewer.find("session-row")).to_have_count(1)
    viewer.press("Escape", "j", "Enter")

    viewer.page.wait_for_url(re.compile(f"session={SESSION}"))
    expect(viewer.find("checkpoint-row").first).to_be_visible()


def test_what_is_shown_is_opened_by_keys_while_a_search_is_not_answered(viewer: Viewer) -> None:
    viewer.go()
    expect(viewer.find("session-row").first).to_be_visible()
    asked = re.compile(r"/api/v1/sessions\?.*search=42")
    held = viewer.hold(asked)

    viewer.press("/")
    with viewer.page.expect_request(asked):
        viewer.page.keyboard.type("42")
    viewer.press("Escape", "j", "Enter")

    viewer.page.wait_for_url(re.compile("session="))
    expect(viewer.find("checkpoint-row").first).to_be_visible()
    held[0].continue_()


def test_help_lists_the_keys_and_goes_away(viewer: Viewer) -> None:
    viewer.go()
    expect(viewer.find("session-row").first).to_be_visible()
    viewer.press("?")
    expect(viewer.find("dialog")).to_contain_text("film")
    viewer.press("Escape")
    expect(viewer.find("dialog")).to_have_count(0)


def test_the_theme_is_switched_and_kept(viewer: Viewer) -> None:
    viewer.go()
    before = viewer.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    viewer.find("theme").click()
    viewer.page.reload()
    expect(viewer.find("session-row").first).to_be_visible()

    after = viewer.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert after != before


def test_back_and_forward_of_the_browser_follow_the_views(viewer: Viewer) -> None:
    viewer.session(AGENT, SESSION)
    viewer.press("g", "i")
    viewer.page.wait_for_url("**/inbox")
    viewer.page.go_back()
    expect(viewer.find("checkpoint-row").first).to_be_visible()
    viewer.page.go_forward()
    expect(viewer.find("inbox-approve")).to_be_visible()
