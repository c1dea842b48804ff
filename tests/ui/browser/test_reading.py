"""Who reads or works with the keyboard is not disturbed by what agents write meanwhile."""

import re
from pathlib import Path

import pytest

from holdfast import SyncClient
from tests.ui import stories
from tests.ui.browser.kit import Server, Viewer, expect
from tests.ui.stories import AGENT, SESSION

MARKDOWN = """## What is wrong

The sum is **wrong**, see `add()`:

```python
return a - b
```

- first
- second

| name | value |
|------|-------|
| a    | 1     |

[the docs](https://example.invalid/x) and <script>alert(1)</script>
"""


def talk(client: SyncClient, count: int, session: str = "talk") -> str:
    """A conversation with calls, of so many steps; the next step goes on from the last."""
    latest = client.latest("talker", session)
    said = [] if latest is None else latest.execution_state["messages"]
    saved = ""
    for _ in range(count):
        number = len(said) // 3
        call = {"id": f"c{number}", "type": "function"}
        call["function"] = {"name": "look", "arguments": '{"path": "x"}'}  # type: ignore[assignment]
        said = [
            *said,
            {"role": "user", "content": f"question {number}\n\n" + "more words\n" * 6},
            {"role": "assistant", "content": f"answer {number}", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"result {number}"},
        ]
        saved = client.save(
            "talker",
            execution_state={"messages": said},
            session_id=session,
            step_index=number,
            step_name=f"step {number}",
        )
    return saved


@pytest.fixture
def talked(client: SyncClient, server: Server, look) -> Viewer:
    """A conversation of some steps, at its newest."""
    talk(client, 8)
    viewer = look(server).session("talker", "talk")
    expect(viewer.find("message", "answer 7")).to_be_in_viewport()
    return viewer


def test_a_conversation_opens_at_what_is_new(talked: Viewer) -> None:
    expect(talked.find("message", "question 0")).not_to_be_in_viewport()

    talked.press("j")

    expect(talked.find("message", "answer 7")).to_have_count(0)
    expect(talked.find("message", "answer 6")).to_be_in_viewport()


def test_the_newest_is_followed_until_somebody_reads(talked: Viewer, client: SyncClient) -> None:
    talk(client, 1)
    expect(talked.find("message", "answer 8")).to_be_in_viewport()
    talked.find("tool-call").last.locator("summary").click()
    expect(talked.find("message", "result 8")).to_be_visible()

    talk(client, 2)

    expect(talked.find("newer")).to_contain_text("2 newer checkpoints")
    expect(talked.find("message", "result 8")).to_be_visible()
    talked.find("newer").click()
    expect(talked.find("message", "answer 10")).to_be_in_viewport()
    expect(talked.find("newer")).to_have_count(0)


def test_a_text_that_is_selected_stays_selected(talked: Viewer, client: SyncClient) -> None:
    talked.find("message", "answer 7").get_by_text("answer 7").dblclick()
    chosen = talked.page.evaluate("() => String(getSelection())")
    assert chosen

    talk(client, 1)

    expect(talked.find("newer")).to_be_visible()
    assert talked.page.evaluate("() => String(getSelection())") == chosen


@pytest.mark.parametrize("name", ["action-fork", "tab-tasks", "back", "checkpoint-row"])
def test_the_focus_stays_where_it_is_while_others_write(
    talked: Viewer, client: SyncClient, name: str
) -> None:
    talked.find(name).first.focus()
    before = talked.find(name).first.get_attribute("data-id")

    talk(client, 1)

    expect(talked.find("checkpoint-row", "step 8")).to_be_visible()
    focused = talked.page.locator(f'[data-test="{name}"]:focus')
    expect(focused).to_have_count(1)
    assert focused.get_attribute("data-id") == before


def test_earlier_messages_come_above_what_is_read(client: SyncClient, server: Server, look) -> None:
    talk(client, 50)
    viewer = look(server).session("talker", "talk")
    expect(viewer.find("more")).to_be_visible()
    here = viewer.find("message", "question 18")
    viewer.find("more").scroll_into_view_if_needed()
    before = here.bounding_box()

    viewer.find("more").click()

    expect(viewer.find("message", "question 0")).to_have_count(1)
    after = here.bounding_box()
    assert before is not None
    assert after is not None
    assert abs(after["y"] - before["y"]) < 100  # but for a result that is told with its call now


def test_messages_are_laid_out_and_shown_as_written_on_request(
    client: SyncClient, server: Server, look
) -> None:
    state = {"messages": [{"role": "assistant", "content": MARKDOWN}]}
    client.save("talker", execution_state=state, session_id="laid")
    viewer = look(server).session("talker", "laid")
    message = viewer.find("message")

    expect(message.locator("strong")).to_have_text("wrong")
    expect(message.locator("pre")).to_have_text("return a - b")
    expect(message.locator("li")).to_have_count(2)
    expect(message.locator("td")).to_have_text(["a", "1"])
    expect(message.locator("a, script")).to_have_count(0)
    viewer.shows("<script>alert(1)</script>")
    assert viewer.axe() == []

    viewer.find("as-written").click()

    expect(message).to_contain_text("## What is wrong")
    expect(message.locator("strong, pre")).to_have_count(0)


def test_a_card_that_is_decided_leaves_its_place_to_no_other_at_once(
    client: SyncClient, server: Server, look
) -> None:
    for name in ("one", "two"):
        stories.ask(client, name, to=name)
    viewer = look(server).go("inbox")
    expect(viewer.find("inbox-approve")).to_have_count(2)
    viewer.find("approval", "two").locator("summary").click()
    place = viewer.find("inbox-approve").first.bounding_box()
    assert place is not None
    where = (place["x"] + 5, place["y"] + 5)

    viewer.page.mouse.click(*where)
    expect(viewer.find("decided")).to_contain_text("one")
    viewer.page.mouse.click(*where)

    expect(viewer.find("inbox-approve")).to_have_count(1)
    expect(viewer.find("approval", "two").locator("details")).to_have_attribute("open", "")
    assert [each.session_id for each in client.pending()] == ["two"]


def test_a_session_shows_what_it_waits_for(client: SyncClient, server: Server, look) -> None:
    stories.ask(client, "news")
    viewer = look(server).session("mailer", "news")

    viewer.find("inbox-approve").click()

    expect(viewer.find("inbox-approve")).to_have_count(0)
    assert not client.pending()


def test_a_file_in_a_directory_has_an_address(viewer: Viewer) -> None:
    viewer.session(AGENT, SESSION, tab="files", path="docs/guide.md")
    expect(viewer.find("file-view")).to_contain_text("How to add.")

    viewer.page.reload()

    expect(viewer.find("file-view")).to_contain_text("How to add.")


def test_the_beginning_of_an_id_is_the_checkpoint_that_it_names(
    client: SyncClient, server: Server, look
) -> None:
    ids = stories.steps(client, "walker", "walk", 3)
    viewer = look(server).session("walker", "walk", at=ids[1][:-2])

    expect(viewer.page.locator(f'[data-id="{ids[1]}"]')).to_have_attribute("aria-current", "true")
    viewer.page.wait_for_url(re.compile(ids[1]))
    viewer.press("j")
    expect(viewer.find("message")).to_have_count(1)


def test_the_way_back_leads_to_the_list_as_it_was_left(viewer: Viewer) -> None:
    viewer.go(agent="coder")
    expect(viewer.find("session-row")).to_have_count(2)
    viewer.find("session-row", SESSION).click()
    expect(viewer.find("checkpoint-row").first).to_be_visible()

    viewer.find("back").click()

    expect(viewer.find("filter-agent")).to_have_value("coder")
    expect(viewer.find("session-row")).to_have_count(2)
    expect(viewer.find("session-row", SESSION)).to_be_focused()


def test_a_session_whose_last_checkpoint_is_removed_says_so(
    client: SyncClient, server: Server, look
) -> None:
    (only,) = stories.steps(client, "walker", "walk", 1)
    viewer = look(server).session("walker", "walk")

    client.expire(only)

    expect(viewer.find("error")).to_contain_text("walk")
    viewer.page.get_by_role("link", name="Back to the sessions").click()
    expect(viewer.find("search")).to_be_visible()
    viewer.forgive("404")


def test_a_server_that_was_started_anew_asks_for_its_link(
    client: SyncClient, server: Server, look
) -> None:
    stories.steps(client, "walker", "walk", 1)
    viewer = look(server).go()
    expect(viewer.find("session-row", "walk")).to_be_visible()

    server.stop()
    server.start()

    expect(viewer.page.locator("#banner")).to_contain_text("open the link")
    viewer.forgive("ERR_", "401")


def test_an_explored_session_leads_to_its_strategies(viewer: Viewer) -> None:
    viewer.session("traveller", "trip").find("exploration").click()

    expect(viewer.find("strategy").first).to_contain_text("winner")


def test_what_only_looks_typed_is_shown_as_what_it_is(
    client: SyncClient, server: Server, look, tmp_path: Path
) -> None:
    stories.forge(client)
    viewer = look(server).go("inbox")
    expect(viewer.find("inbox-approve")).to_have_count(2)
    for summary in viewer.page.locator("summary").all():
        summary.click()
    shown = viewer.page.locator(".waits").inner_text()
    assert '"value": "1,\\n    \\"to\\": \\"somebody else"' in shown
    assert '"$type": "datetime"' in shown

    for session in ("constructor", "proto"):
        viewer.session("forger", session)
        expect(viewer.find("message", "Who says this?")).to_be_visible()
        viewer.find("tool-call").locator("summary").click()
        expect(viewer.find("tool-call")).to_contain_text("datetime")
