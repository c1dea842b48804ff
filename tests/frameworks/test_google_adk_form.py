"""Conversations as ADK has them: what is written is what ADK takes, and what ADK writes is read."""

from typing import Any

from google.adk.events import Event, EventActions
from google.genai import types
from hypothesis import given

from holdfast import Client
from holdfast.adapters.google_adk import HoldfastSessionService
from holdfast.adapters.google_adk.messages import loaded
from holdfast.adapters.portable import Conversation, conversation, messages
from holdfast.core.conversation import FORMS, Lost, Native
from holdfast.core.conversation.reading import read
from tests.conversations import CONVERSATIONS
from tests.frameworks import reference

FORM = FORMS["google_adk"]


@given(conversation=CONVERSATIONS)
def test_adk_takes_what_is_written_and_keeps_all_of_it(conversation: Conversation) -> None:
    native = FORM.write(conversation, Lost())

    events = loaded(native)

    dumped = [event.model_dump(mode="json", exclude_none=True) for event in events]
    assert read(FORM, Native(dumped)).messages == read(FORM, Native(native)).messages
    by_alias = [event.model_dump(mode="json", by_alias=True) for event in events]
    assert read(FORM, Native(by_alias)).messages == read(FORM, Native(native)).messages


def content(role: str, *parts: types.Part) -> dict[str, Any]:
    event = Event(author="user", content=types.Content(role=role, parts=list(parts)))
    dumped: dict[str, Any] = event.model_dump(mode="json", exclude_none=True)
    return dumped


def test_what_gemini_adds_is_read_or_named() -> None:
    code = types.ExecutableCode(code="1+1", language=types.Language.PYTHON)
    call = types.FunctionCall(name="f", args={})
    events = [
        content(
            "model",
            types.Part(text="hm", thought=True, thought_signature=b"\xfb\xff"),
            types.Part(text="hm", thought=True),
            types.Part(executable_code=code),
            types.Part(function_call=call, thought_signature=b"\xfb\xff"),
        ),
        content("user", types.Part(function_response=types.FunctionResponse(name="f"))),
    ]

    found = read(FORM, Native(events))

    thought, plain, ran, called = found.messages[0]["parts"]
    assert (thought["signature"], thought["provider"]) == ("+/8=", "google")
    assert plain == {"type": "reasoning", "content": "hm"}
    assert ran["type"] == "google_executable_code"
    assert (called["name"], called["id"]) == ("f", "call_1")  # Gemini gives none
    assert found.messages[1]["parts"][0]["id"] == "call_1"
    assert found.lost == [
        "$.messages[0].content.parts[3].thought_signature: what a model signed beside its words"
    ]


def test_errors_and_bare_values_of_tools_come_back() -> None:
    for said, is_error in (
        ("x", False),
        ({"result": 1}, False),
        ({"error": 1}, False),
        ("no", True),
    ):
        call = {"type": "tool_call", "id": "c", "name": "f", "arguments": {}}
        answer: dict[str, Any] = {
            "type": "tool_call_response",
            "id": "c",
            "response": said,
            "name": "f",
        }
        answer |= {"is_error": True} if is_error else {}
        one = Conversation.of(
            [{"role": "assistant", "parts": [call]}, {"role": "tool", "parts": [answer]}]
        )
        assert read(FORM, Native(FORM.write(one, Lost()))).messages == one.messages


async def test_messages_of_another_framework_can_be_appended() -> None:
    image = {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "iVBO+/8="}
    text = {"type": "text", "content": reference.PROMPT}
    given = Conversation.of(
        [
            {"role": "user", "parts": [text, image]},
            {"role": "assistant", "parts": [{"type": "text", "content": "hi"}]},
        ]
    )
    async with Client.memory() as client:
        service = HoldfastSessionService(client)
        session = await service.create_session(app_name="a", user_id="u", session_id="s")
        for event in messages(given, "google_adk"):
            await service.append_event(session, event)

        found = conversation("s", service.client)
        assert found is not None
        assert found.messages == given.messages
        kept = await service.get_session(app_name="a", user_id="u", session_id="s")
        assert kept is not None
        assert kept.events[0].content.parts[1].inline_data.data == b"\x89PN\xfb\xff"


def test_what_was_rewound_is_not_said() -> None:
    first, second = content("user", types.Part(text="a")), content("user", types.Part(text="b"))
    first["invocation_id"], second["invocation_id"] = "e-1", "e-2"
    actions = EventActions(rewind_before_invocation_id="e-2")
    back = Event(author="user", actions=actions).model_dump(mode="json", by_alias=True)
    found = FORM.extract({"events": [first, second, back], "last_update_time": 1.0})

    assert found is not None
    assert list(found.messages) == [first]
