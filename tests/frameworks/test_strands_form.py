"""Conversations as Strands has them: what is written is what Strands takes and keeps."""

from itertools import pairwise
from typing import Any

from hypothesis import given
from strands import Agent
from strands.types.session import encode_bytes_values

from holdfast.adapters.portable import Conversation, messages
from holdfast.adapters.strands.messages import loaded
from holdfast.core.conversation import FORMS, Lost, Native
from holdfast.core.conversation.frameworks.strands import answer_of, tool_result
from holdfast.core.conversation.reading import read
from tests.conversations import CONVERSATIONS

FORM = FORMS["strands"]


@given(conversation=CONVERSATIONS)
def test_strands_takes_what_is_written_and_keeps_all_of_it(conversation: Conversation) -> None:
    native = FORM.write(conversation, Lost())
    agent = Agent(messages=loaded(native), callback_handler=None)

    kept = encode_bytes_values(agent.take_snapshot(preset="session").data["messages"])

    assert read(FORM, Native(kept)).messages == read(FORM, Native(native)).messages


@given(conversation=CONVERSATIONS)
def test_roles_take_turns_and_results_come_first(conversation: Conversation) -> None:
    native = FORM.write(conversation, Lost())

    roles = [message["role"] for message in native]
    assert all(one != "user" or other != "user" for one, other in pairwise(roles))
    for message in native:
        kinds = ["toolResult" in block for block in message["content"]]
        assert kinds == sorted(kinds, reverse=True)


def test_bytes_of_media_are_bytes_for_strands() -> None:
    image = {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "iVBO+/8="}
    given = Conversation.of([{"role": "user", "parts": [image]}])

    (message,) = messages(given, "strands")

    assert message["content"][0]["image"] == {
        "format": "png",
        "source": {"bytes": b"\x89PN\xfb\xff"},
    }


def test_results_of_tools_come_back_as_they_were() -> None:
    image: dict[str, Any] = {"image": {"format": "png", "source": {"bytes": {}}}}
    image["image"]["source"]["bytes"] = {"__bytes_encoded__": True, "data": "iVBO+/8="}
    for content in ([{"text": "x"}], [{"json": {"a": 1}}], [], [{"text": "x"}, image], [image]):
        for status in ("success", "error"):
            result = {"status": status, "content": content}
            assert tool_result(answer_of(result)) == result
