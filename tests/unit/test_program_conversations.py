"""What hooks recorded of coding agents is read as a conversation, by the format that it names."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.conversation.reading import conversation_in, found_in
from holdfast.core.conversation.said import messages_in

_TALK = [
    {"type": "queue-operation", "operation": "enqueue", "content": "hello"},
    {
        "type": "user",
        "uuid": "u1",
        "parentUuid": None,
        "message": {"role": "user", "content": "hello"},
    },
    {
        "type": "attachment",
        "uuid": "a1",
        "parentUuid": "u1",
        "attachment": {"type": "prompt_snapshot", "systemPrompt": ["You are an agent."]},
    },
    {
        "type": "assistant",
        "uuid": "b1",
        "parentUuid": "a1",
        "message": {
            "id": "m1",
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls"}}
            ],
        },
    },
    {
        "type": "user",
        "uuid": "r1",
        "parentUuid": "b1",
        "message": {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "page.html"}],
        },
    },
]


def _state(entries: Any, named: Any = "claude-code/1") -> dict[str, Any]:
    return {"event": "Stop", "conversation": {"format": named, "entries": entries}}


def test_a_transcript_of_claude_code_is_read_without_the_program_s_own_prompt() -> None:
    said = messages_in("custom", _state(_TALK))

    assert [(each.role, each.text) for each in said] == [
        ("user", "hello"),
        ("assistant", ""),
        ("tool", "page.html"),
    ]
    assert [call.name for call in said[1].calls] == ["Bash"]


def test_what_a_tool_was_given_is_no_conversation_where_the_format_is_known() -> None:
    state = _state([]) | {"input": {"messages": [{"role": "user", "content": "of the tool"}]}}

    assert messages_in("custom", state) == []


def test_a_format_that_is_not_known_is_read_by_its_shape() -> None:
    form, native = found_in("custom", _state(_TALK, "claude-code/99"))

    assert form.framework == "custom"
    assert native is not None


_ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, "", "u1", "b1", "c1", "m1", 0, [], {}, ["u1"], {"id": "m1"}, True]
)
_BLOCK: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"type": st.sampled_from(["tool_use", "tool_result", "text", "thinking", 3])},
    optional={"id": _ODD, "tool_use_id": _ODD, "content": _ODD, "text": _ODD, "input": _ODD},
)
_ENTRY: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"type": st.sampled_from(["user", "assistant", "attachment", "system", "summary", None, []])},
    optional={
        "uuid": _ODD,
        "parentUuid": _ODD,
        "isSidechain": _ODD,
        "attachment": _ODD,
        "message": _ODD
        | st.fixed_dictionaries({"content": _ODD | st.lists(_BLOCK)}, optional={"id": _ODD}),
    },
)


@given(st.lists(_ENTRY | _ODD, max_size=8))
def test_entries_of_any_shape_are_read_or_left_out(entries: list[Any]) -> None:
    found = conversation_in("custom", _state(entries))

    assert found is not None
