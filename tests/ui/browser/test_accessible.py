"""A checker finds nothing serious in any view, light and dark, in wide and narrow windows."""

from itertools import product

import pytest

from holdfast import SyncClient
from tests.ui import stories
from tests.ui.browser.kit import NARROW, TABS, WIDE, Server, expect
from tests.ui.stories import AGENT, SESSION

SIZES = {"wide": WIDE, "narrow": NARROW}
SCHEMES = ("light", "dark")


@pytest.fixture(scope="session")
def views(told: Server) -> dict[str, tuple[str, dict[str, str]]]:
    """The views by name: their addresses."""
    with SyncClient.open(told.store) as client:
        old = stories.named(client, AGENT, SESSION, "read: completed")
        new = stories.named(client, AGENT, SESSION, "test: failed")
    session = {"agent": AGENT, "session": SESSION}
    return {
        "sessions": ("", {}),
        **{tab: ("session", {**session, "at": new, "tab": tab}) for tab in TABS},
        "file": ("session", {**session, "tab": "files", "path": "main.py"}),
        "hostile": ("session", {"agent": "hostile", "session": stories.HOSTILE}),
        "compare": ("compare", {"a": old, "b": new}),
        "compared files": ("compare", {"a": old, "b": new, "tab": "files"}),
        "exploration": ("compare", {"agent": "traveller", "exploration": "trip"}),
        "inbox": ("inbox", {}),
        "storage": ("storage", {}),
    }


COMPARED = ("compare", "compared files", "exploration")
NAMES = ("sessions", *TABS, "file", "hostile", *COMPARED, "inbox", "storage")


@pytest.mark.parametrize("name", NAMES)
def test_every_view_can_be_used_by_everybody(look, told: Server, views, name: str) -> None:
    where, query = views[name]
    viewer = look(told).go(where, **query)
    expect(viewer.page.locator("#main .view")).to_be_visible()

    for size, scheme in product(SIZES, SCHEMES):
        viewer.seen(SIZES[size], scheme)
        assert viewer.axe() == [], (size, scheme)
        assert not viewer.scrolls_sideways(), (size, scheme)


DIALOGS = {"r": "Roll back", "f": "Fork", "?": "Keys"}


@pytest.mark.parametrize("key", DIALOGS)
def test_every_dialog_can_be_used_by_everybody(look, told: Server, views, key: str) -> None:
    where, query = views["conversation"]
    viewer = look(told).go(where, **query)
    expect(viewer.find("message").first).to_be_visible()
    viewer.press(key)
    expect(viewer.find("dialog")).to_contain_text(DIALOGS[key])

    for size, scheme in product(SIZES, SCHEMES):
        viewer.seen(SIZES[size], scheme)
        assert viewer.axe() == [], (size, scheme)
    viewer.forgive("409")  # of what would be refused
