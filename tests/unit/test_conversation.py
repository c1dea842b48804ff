"""The portable form: normal form, settling, the envelope; for conversations no framework makes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.conversation import Conversation, Lost, ToolCall, normal
from holdfast.core.conversation.parts import (
    arguments_of,
    blob,
    from_data_url,
    reasoning,
    text,
    tool_call,
    tool_call_response,
    uri,
)
from holdfast.core.conversation.plain import DEEPEST, plain
from holdfast.errors import AdapterError, InvalidArgumentError
from tests.conversations import ANYTHING, CONVERSATIONS, JSON, MESSAGES, TEXT


def said(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def unanswered(conversation: Conversation) -> list[str]:
    return [each for each in conversation.problems() if not each.startswith("call ")]


# The normal form


@given(MESSAGES, st.lists(TEXT, max_size=2))
def test_messages_in_any_order_have_a_normal_form(messages: list[Any], system: list[Any]) -> None:
    assert unanswered(Conversation.of(messages, system)) == []


@given(CONVERSATIONS)
def test_the_normal_form_of_the_normal_form_is_itself(conversation: Conversation) -> None:
    again = Conversation.of(conversation.messages, conversation.system_instructions)

    assert again.messages == conversation.messages
    assert again.system_instructions == conversation.system_instructions
    assert again.lost == []


@given(st.lists(ANYTHING, max_size=5), st.lists(ANYTHING, max_size=2))
def test_whatever_is_given_for_messages_is_lost_or_normal(
    messages: list[Any], system: list[Any]
) -> None:
    assert unanswered(Conversation.of(messages, system)) == []


@given(MESSAGES)
def test_nothing_is_left_out_in_silence(messages: list[Any]) -> None:
    lost = Lost()
    system, ordered = normal(messages, (), lost)

    given_parts = [part for message in messages for part in message["parts"]]
    empty = [part for part in given_parts if _says_nothing(part)]
    kept = len(system) + sum(len(message["parts"]) for message in ordered)
    named = {each.partition(": ")[0] for each in lost.found}
    gone = [path for path in named if path.count("[") == 2 and path.endswith("]")]
    assert kept + len(empty) + len(gone) >= len(given_parts)


def _says_nothing(part: dict[str, Any]) -> bool:
    return part["type"] == "text" and not part["content"]


def test_leading_system_prompts_are_apart_and_later_ones_stay() -> None:
    system, messages = normal(
        [said("system", text("a")), said("user", text("b")), said("system", text("c"))],
        [text("first")],
    )

    assert system == [text("first"), text("a")]
    assert [message["role"] for message in messages] == ["user", "system"]


def test_answers_stand_behind_their_calls_in_the_order_of_the_calls() -> None:
    _, messages = normal(
        [
            said("assistant", tool_call("a", "x", {}), tool_call("b", "y", {})),
            said("user", text("meanwhile"), tool_call_response("b", 2)),
            said("tool", tool_call_response("a", 1)),
        ]
    )

    assert [message["role"] for message in messages] == ["assistant", "tool", "user"]
    assert [part["id"] for part in messages[1]["parts"]] == ["a", "b"]


def test_calls_come_last_and_answers_within_a_message_cut_it() -> None:
    _, messages = normal(
        [
            said(
                "assistant",
                tool_call("a", "x", {}),
                text("one"),
                tool_call_response("a", 1),
                text("two"),
            )
        ]
    )

    assert [message["role"] for message in messages] == ["assistant", "tool", "assistant"]
    assert [part["type"] for part in messages[0]["parts"]] == ["text", "tool_call"]


def test_ids_are_made_where_they_are_missing_and_renamed_where_they_repeat() -> None:
    _, messages = normal(
        [
            said("assistant", tool_call(None, "x", {}), tool_call(None, "y", {})),
            said("tool", tool_call_response(None, 2, name="y")),
            said("tool", tool_call_response(None, 1, name="x")),
            said("assistant", tool_call("call_1", "x", {})),
            said("tool", tool_call_response("call_1", 3)),
            said("assistant", tool_call("call_1", "x", {})),
            said("tool", tool_call_response("call_1", 4)),
        ]
    )
    ids = [part["id"] for m in messages for part in m["parts"] if part["type"] == "tool_call"]
    answers = {part["id"]: part["response"] for m in messages[1::2] for part in m["parts"]}

    assert len(set(ids)) == 4
    assert [answers[each] for each in ids] == [1, 2, 3, 4]


def test_an_answer_without_its_call_is_lost_and_said() -> None:
    lost = Lost()

    assert normal([said("tool", tool_call_response("a", 1))], (), lost) == ([], [])
    assert lost.found == [
        "$.messages[0].parts[0]: is an answer to a call that is not there, or has one already"
    ]


@pytest.mark.parametrize(
    ("given_arguments", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ({"a": 1}, {"a": 1}),
        ("", {}),
        (None, {}),
        ("{", "{"),
        ("[1]", "[1]"),
        ([1], "[1]"),
        ('{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
        ('{"a": NaN}', '{"a": NaN}'),
        ('{"a": 1e999}', '{"a": 1e999}'),
        ("[" * 100_000, "[" * 100_000),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_arguments_are_an_object_and_text_only_where_they_are_no_json(
    given_arguments: Any, found: Any
) -> None:
    assert arguments_of(given_arguments) == found


def test_inline_media_are_blobs_in_standard_base64() -> None:
    assert uri("data:image/png;base64,-_8")["content"] == "+/8="
    assert uri("data:,a%20b") == blob(b"a b", "text/plain")
    assert uri("https://h/x")["type"] == "uri"
    assert from_data_url("https://h/x") is None
    made = Conversation.of([said("user", {"type": "uri", "uri": "data:image/png;base64,AAAA"})])
    assert made.messages[0]["parts"] == [blob("AAAA", "image/png")]


def test_media_that_are_no_base64_are_lost() -> None:
    made = Conversation.of([said("user", {"type": "blob", "content": "!!", "modality": "image"})])

    assert made.messages == []
    assert "not standard base64" in made.lost[0]


def test_fields_that_a_part_does_not_have_are_named() -> None:
    made = Conversation.of([said("user", {**text("a"), "cache": True})])

    assert made.lost == [
        "$.messages[0].parts[0].cache: a field that this kind of part does not have"
    ]


# Calls without an answer


CUT = Conversation.of(
    [
        said("user", text("go")),
        said("assistant", text("I"), tool_call("a", "read", {}), tool_call("b", "send", {"n": 1})),
    ],
    interrupts=[{"id": "1", "tool_call_id": "b"}, {"id": "2", "tool_call_id": None}],
)


def test_calls_at_the_end_without_an_answer_are_pending() -> None:
    assert CUT.pending == [ToolCall("a", "read", {}), ToolCall("b", "send", {"n": 1})]
    assert CUT.problems() == ["call a (read) has no answer", "call b (send) has no answer"]
    assert Conversation().pending == []


def test_known_outputs_are_filled_in_and_the_rest_is_kept() -> None:
    settled = CUT.settle({"a": {"n": 2}})

    assert [call.id for call in settled.pending] == ["b"]
    assert settled.messages[-1]["parts"] == [tool_call_response("a", {"n": 2}, name="read")]
    assert settled.interrupts == CUT.interrupts


def test_a_whole_answer_is_taken_as_it_is() -> None:
    settled = CUT.settle({"a": tool_call_response(None, "no", is_error=True)}, "answer")

    assert settled.messages[-1]["parts"][0]["is_error"] is True


def test_calls_that_nothing_of_their_message_answers_are_dropped() -> None:
    settled = CUT.settle(rest="drop")

    assert settled.messages[-1]["parts"] == [text("I")]
    assert settled.interrupts == [{"id": "2", "tool_call_id": None}]
    assert [each.split(": ")[1] for each in settled.lost] == [
        "call a (read) had no answer and is left out",
        "call b (send) had no answer and is left out",
    ]


def test_where_others_have_an_answer_the_rest_is_answered_as_interrupted() -> None:
    last = CUT.settle({"a": "done"}, "drop").messages[-1]["parts"]

    assert last[0]["response"] == "done"
    assert last[1]["is_error"] is True
    assert "interrupted" in last[1]["response"]


@pytest.mark.parametrize("rest", ["keep", "drop", "answer"])
@pytest.mark.parametrize("which", ["b", "send"])
def test_an_irreversible_call_without_an_end_is_never_kept(rest: Any, which: str) -> None:
    settled = CUT.settle(rest=rest, irreversible={which})
    answers = {p["id"]: p for m in settled.messages if m["role"] == "tool" for p in m["parts"]}

    assert "b" not in [call.id for call in settled.pending]
    assert "nobody knows" in answers["b"]["response"]
    assert answers["b"]["is_error"] is True


@given(CONVERSATIONS, st.dictionaries(st.sampled_from("abc"), JSON), st.booleans())
def test_a_settled_conversation_has_no_problems(
    conversation: Conversation, outputs: dict[str, Any], drops: bool
) -> None:
    settled = conversation.settle(outputs, "drop" if drops else "answer")

    assert settled.problems() == []
    assert settled.pending == []


@given(CONVERSATIONS, st.dictionaries(st.sampled_from("abc"), JSON))
def test_what_is_kept_waits_at_the_very_end_only(
    conversation: Conversation, outputs: dict[str, Any]
) -> None:
    kept = conversation.settle(outputs, irreversible=["c"])

    assert kept.problems() == [f"call {c.id} ({c.name[:60]}) has no answer" for c in kept.pending]
    assert not {call.id for call in kept.pending} & {*outputs, "c"}
    assert kept.settle() == kept


@given(ANYTHING)
def test_conversations_made_by_hand_of_anything_can_be_settled(junk: Any) -> None:
    by_hand = Conversation(messages=junk if isinstance(junk, list) else [junk])

    by_hand.problems()
    assert all(isinstance(call, ToolCall) for call in by_hand.pending)
    assert by_hand.settle(rest="answer").problems() == []


def test_what_settle_does_not_know_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="rest is one of"):
        CUT.settle(rest="forget")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="collection"):
        CUT.settle(irreversible="b")


# Tools of other names


def test_tools_are_renamed_in_calls_and_answers() -> None:
    renamed = CUT.settle({"a": 1}, "answer").with_tool_names({"read": "mcp__files__read"})
    names = [p["name"] for m in renamed.messages[1:] for p in m["parts"] if "name" in p]

    assert names == ["mcp__files__read", "send", "mcp__files__read", "send"]
    with pytest.raises(InvalidArgumentError, match="tool names"):
        CUT.with_tool_names({"read": 1})  # type: ignore[dict-item]


# The envelope


@given(CONVERSATIONS)
def test_a_conversation_comes_back_from_its_envelope(conversation: Conversation) -> None:
    data = json.loads(json.dumps(conversation.as_dict()))

    assert data["format"] == "holdfast.conversation/1"
    assert Conversation.from_dict(data) == conversation


@given(
    ANYTHING
    | st.fixed_dictionaries(
        {"format": st.just("holdfast.conversation/1")},
        optional=dict.fromkeys(("messages", "lost", "plan", "context"), ANYTHING),
    )
)
def test_what_is_no_envelope_is_refused(junk: Any) -> None:
    try:
        found = Conversation.from_dict(junk)
    except InvalidArgumentError:
        return
    assert unanswered(found) == []


# Data of an enemy


def test_data_that_leads_to_itself_or_is_too_deep_is_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)
    deep: Any = "x"
    for _ in range(DEEPEST + 2):
        deep = [deep]
    for value in (circle, deep):
        with pytest.raises(AdapterError, match="nests deeper"):
            plain(value, Lost())


def test_data_that_names_a_part_of_itself_again_and_again_comes_to_an_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.core.conversation.plain.MOST", 1000)
    many: Any = "x"
    for _ in range(60):
        many = [many, many]
    with pytest.raises(AdapterError, match="holds more"):
        plain(many, Lost())


def test_values_that_json_does_not_have_are_lost_and_named() -> None:
    lost = Lost()

    assert plain({"a": float("nan"), "b": {1}, 2: 3, "c": (b"x",), "d": 10**9000}, lost) == {
        "a": None,
        "b": None,
        "c": ["eA=="],
        "d": None,
    }
    assert len(lost.found) == 4


def test_reasoning_keeps_what_its_provider_wants_back() -> None:
    part = reasoning("I think", signature="s", encrypted="e", provider="anthropic")

    assert Conversation.of([said("assistant", part)]).messages == [said("assistant", part)]
