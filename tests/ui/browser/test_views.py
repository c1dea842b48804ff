"""Every view opens with what the store holds, at an address of its own."""

import re

import pytest

from holdfast import SyncClient
from tests.ui import stories
from tests.ui.browser.kit import TABS, Server, Viewer, expect
from tests.ui.stories import AGENT, SESSION


def test_the_sessions_are_listed_newest_first_with_their_conditions(viewer: Viewer) -> None:
    viewer.go()

    expect(viewer.find("session-row")).to_have_count(8)
    expect(viewer.find("session-row").first).to_contain_text(SESSION)
    expect(viewer.find("session-row", "news")).to_contain_text("waiting")
    expect(viewer.find("session-row", "order-7")).to_contain_text("unknown")
    viewer.picture("sessions")


def test_a_search_finds_sessions_agents_steps_and_tags(viewer: Viewer) -> None:
    for search, found in {"ORDER": "order-7", "traveller": "trip", "rewrite": "bolder"}.items():
        viewer.go()
        viewer.find("search").fill(search)
        expect(viewer.find("session-row", SESSION)).to_have_count(0)
        expect(viewer.find("session-row", found).first).to_be_visible()
    viewer.find("search").fill("core")
    expect(viewer.find("session-row", SESSION)).to_be_visible()
    expect(viewer.find("session-row")).to_have_count(1)


def test_filters_are_part_of_the_address(viewer: Viewer) -> None:
    viewer.go()
    viewer.find("filter-agent").select_option("mailer")
    expect(viewer.find("session-row")).to_have_count(1)
    viewer.page.wait_for_url(re.compile("agent=mailer"))

    viewer.page.reload()

    expect(viewer.find("session-row")).to_have_count(1)
    expect(viewer.find("session-row")).to_contain_text("news")


def test_a_condition_filters(viewer: Viewer) -> None:
    viewer.go()
    viewer.find("filter-condition").select_option("unknown")

    expect(viewer.find("session-row")).to_have_count(1)
    expect(viewer.find("session-row")).to_contain_text("order-7")


def test_a_session_shows_its_checkpoints_with_forks_and_markers(viewer: Viewer) -> None:
    viewer.go()
    viewer.find("session-row", SESSION).click()

    expect(viewer.find("checkpoint-row", "fix: completed").first).to_be_visible()
    expect(viewer.find("checkpoint-row", "rewrite")).to_contain_text("bolder")
    expect(viewer.find("checkpoint-row").first).to_contain_text("handoff_to_reviewer")


def test_a_conversation_is_shown_as_people_read_it(viewer: Viewer) -> None:
    viewer.session(AGENT, SESSION)

    expect(viewer.find("message", "You fix bugs.")).to_be_visible()
    expect(viewer.find("message", "It has to add.")).to_be_visible()
    expect(viewer.find("message", "It has to multiply.")).to_have_count(0)
    expect(viewer.find("tool-call", "look").first).to_be_visible()


def test_a_state_opens_by_path(viewer: Viewer) -> None:
    viewer.session(AGENT, SESSION, tab="state")

    viewer.find("state-node", "budget").click()

    expect(viewer.page.locator('[data-path="$.budget.spent"]')).to_contain_text("3")
    viewer.page.reload()
    expect(viewer.page.locator('[data-path="$.budget.limit"]')).to_contain_text("10")


def test_files_are_shown_with_what_changed(viewer: Viewer) -> None:
    viewer.session(AGENT, SESSION, tab="files")
    expect(viewer.find("file-row", "docs")).to_be_visible()

    viewer.find("file-row", "main.py").click()

    expect(viewer.find("file-view")).to_contain_text("return a + b")


def test_an_image_is_shown(viewer: Viewer) -> None:
    viewer.session(AGENT, SESSION, tab="files", path="logo.png")

    image = viewer.find("file-view").locator("img")
    expect(image).to_be_visible()
    assert image.evaluate("async i => { await i.decode(); return i.naturalWidth; }") == 24


def test_tasks_and_effects_are_shown(viewer: Viewer) -> None:
    viewer.session(AGENT, SESSION, tab="tasks")
    for task in ("read", "fix", "test", "publish"):
        expect(viewer.page.locator("#panel")).to_contain_text(task)
    viewer.go("session", agent="shop", session="order-7", tab="effects")
    expect(viewer.page.locator("#panel")).to_contain_text("cut")
    expect(viewer.page.locator("#panel")).to_contain_text("unknown")


@pytest.mark.parametrize("tab", TABS)
def test_a_tab_is_part_of_the_address(viewer: Viewer, tab: str) -> None:
    viewer.session(AGENT, SESSION)
    viewer.tab(tab)
    expect(viewer.find(f"tab-{tab}")).to_have_attribute("aria-selected", "true")

    viewer.page.reload()

    expect(viewer.find(f"tab-{tab}")).to_have_attribute("aria-selected", "true")


@pytest.fixture
def compared(viewer: Viewer) -> Viewer:
    """Somebody who compares the end with what was before the work."""
    with SyncClient.open(viewer.server.store) as client:
        old = stories.named(client, AGENT, SESSION, "read: completed")
        new = stories.named(client, AGENT, SESSION, "test: failed")
    viewer.go("compare", a=old, b=new)
    expect(viewer.find("side-b")).to_contain_text("test: failed")
    return viewer


def test_messages_are_compared(compared: Viewer) -> None:
    expect(compared.find("message", "It has to add.")).to_contain_text("added")


def test_states_are_compared_by_path(compared: Viewer) -> None:
    compared.find("compare-tab-state").click()

    expect(compared.find("state-change", "budget")).to_contain_text("added")


def test_files_are_compared_line_by_line_with_the_words_marked(compared: Viewer) -> None:
    compared.find("compare-tab-files").click()
    compared.find("file-row", "main.py").click()
    view = compared.find("file-view")
    expect(view.locator(".minus b")).to_have_text("-")
    expect(view.locator(".plus b")).to_have_text("+")
    expect(view.locator(".side")).to_have_count(0)

    compared.find("side-by-side").click()

    expect(view.locator(".side").first).to_be_visible()
    expect(view.locator(".side .plus b")).to_have_text("+")
    compared.picture("compare")


def test_two_heads_are_compared_by_their_sessions(viewer: Viewer) -> None:
    viewer.go("compare")
    viewer.find("compare-a").fill(f"{SESSION}@")
    viewer.find("compare-b").fill("bolder@")
    viewer.find("compare-go").click()

    expect(viewer.find("side-b")).to_contain_text("rewrite")
    expect(viewer.find("message", "Be bold.")).to_contain_text("added")


def test_strategies_are_compared_by_their_scores(viewer: Viewer) -> None:
    viewer.go()
    viewer.find("session-row", "trip.plane").click()
    viewer.find("exploration").click()

    expect(viewer.find("strategy")).to_have_count(2)
    expect(viewer.find("strategy", "plane")).to_contain_text("winner")
    expect(viewer.find("strategy", "train")).to_contain_text("-9")
    viewer.picture("exploration")


def test_the_inbox_lists_all_that_waits_for_a_person(viewer: Viewer) -> None:
    viewer.go("inbox")

    viewer.shows("everybody")
    viewer.shows("order-7")
    viewer.shows("reviewer")
    expect(viewer.find("inbox-approve")).to_have_count(1)
    expect(viewer.find("inbox-done")).to_have_count(1)
    viewer.picture("inbox")


def test_storage_tells_what_is_kept_and_what_a_prune_would_free(viewer: Viewer) -> None:
    viewer.go("storage")

    expect(viewer.find("growth")).to_be_visible()
    viewer.find("prune-last").fill("1")
    viewer.find("prune-preview").click()
    expect(viewer.find("prune-answer")).to_contain_text("would be removed")
    expect(viewer.find("prune")).to_be_visible()
    viewer.picture("storage", written={"store": "the SQLite store .holdfast/holdfast.db"})


def test_what_is_not_there_is_said(viewer: Viewer) -> None:
    viewer.go("session", agent="nobody", session="nothing")

    expect(viewer.find("error")).to_be_visible()
    viewer.forgive("404")


def test_the_token_works_once_and_is_in_no_address(told: Server, viewer: Viewer) -> None:
    assert "token" not in viewer.go().page.url
    viewer.context.clear_cookies()

    answer = viewer.page.goto(told.address)

    assert answer is not None
    assert answer.status == 401
    viewer.shows("holdfast ui")
    viewer.forgive("401")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_of_a_session(look, told: Server, scheme: str) -> None:
    viewer = look(told, scheme=scheme)
    with SyncClient.open(told.store) as client:
        at = stories.named(client, AGENT, SESSION, "fix: completed")

    viewer.session(AGENT, SESSION, at=at)

    expect(viewer.find("message").first).to_be_visible()
    viewer.picture(f"session-{scheme}")
