"""Rollouts of Codex that a hook recorded are read as a conversation."""

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.conversation.reading import conversation_in
from holdfast.core.conversation.said import messages_in

ROLLOUTS = Path(__file__).parent / "transcripts" / "codex"


def state(entries: Any) -> dict[str, Any]:
    return {"event": "Stop", "conversation": {"format": "codex/1", "entries": entries}}


def recorded(name: str) -> list[Any]:
    return [json.loads(line) for line in (ROLLOUTS / f"{name}.jsonl").read_text().splitlines()]


def test_calls_of_both_kinds_are_read_with_what_came_of_them() -> None:
    said = messages_in("custom", state(recorded("calls")))

    assert (said[0].role, said[0].text) == ("user", "Make it")
    assert (said[-1].role, said[-1].text) == ("assistant", "All done.")
    calls = [call for message in said for call in message.calls]
    assert [call.name for call in calls[:3]] == ["apply_patch", "exec_command", "exec_command"]
    results = [message.text for message in said if message.role == "tool"]
    assert len(results) == len(calls) == 9
    assert "Updated the following files" in results[0]
    assert "Process exited with code 3" in results[2]


def test_what_codex_itself_put_in_is_left_out() -> None:
    said = messages_in("custom", state(recorded("turns")))

    texts = [message.text for message in said if message.role == "user"]
    assert texts == ["first", "do yield", "hang", "after compact"]
    assert all(message.role != "system" for message in said)


def said_by_user(text: str, **more: Any) -> list[str]:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    entry = {"type": "response_item", "payload": {**item, **more}}
    return [message.text for message in messages_in("custom", state([entry]))]


def test_markup_that_a_user_wrote_stays() -> None:
    by_user = {"content_item_metadata": [{"provenance": {"type": "user"}}]}
    marked = "<environment_context>what is that?</environment_context>"

    assert said_by_user("<div> is broken") == ["<div> is broken"]
    assert said_by_user(marked) == []
    assert said_by_user(marked, internal_chat_message_metadata_passthrough=by_user) == [marked]


_ODD: st.SearchStrategy[Any] = st.sampled_from([None, "", "x", 0, [], {}, ["x"], {"id": "m"}, True])
_FIELDS = (
    "internal_chat_message_metadata_passthrough",
    "role",
    "content",
    "call_id",
    "name",
    "arguments",
    "input",
    "output",
    "summary",
)
_ITEM: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            [
                *("message", "function_call", "function_call_output", "custom_tool_call"),
                *("custom_tool_call_output", "reasoning", "web_search_call", None, 3),
            ]
        )
    },
    optional=dict.fromkeys(_FIELDS, _ODD),
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"type": st.sampled_from(["response_item", "event_msg", None])},
            optional={"payload": _ITEM | _ODD},
        )
        | _ODD,
        max_size=8,
    )
    | _ODD
)
def test_entries_of_any_shape_are_read_or_left_out(entries: Any) -> None:
    conversation_in("custom", state(entries))
