"""Conversations for tests: such as frameworks make, such as none would, and no conversations."""

import base64
from typing import Any

from hypothesis import strategies as st

from holdfast.core.conversation import Conversation

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
WORDS = st.text("abcXYZ_-019|. é", min_size=1, max_size=10)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(TEXTS, JSON, max_size=3) | st.sampled_from(
    ["", "{", "[1]", '{"a": 1}', '{"a": 1, "a": 2}', "NaN", '{"a": 1e999}', "no json", "null"]
)
BYTES = st.binary(min_size=1, max_size=6)
MIME_TYPES = st.sampled_from(
    ["image/png", "image/jpeg", "audio/wav", "video/mp4", "application/pdf", "text/plain"]
)
_IDS = st.sampled_from(["a", "b", "c", "call_0", "call_1", "x|y", "ü", "z" * 70])


def _part(kind: str, **fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"type": st.just(kind), **fields})


TEXT = _part("text", content=TEXTS)
BLOB = st.builds(
    lambda data, mime: {
        "type": "blob",
        "mime_type": mime,
        "content": base64.b64encode(data).decode(),
    },
    BYTES,
    MIME_TYPES,
)
URI = _part("uri", uri=st.sampled_from(["https://h/x.png", "gs://b/y"]), mime_type=MIME_TYPES)
FILE = _part("file", file_id=WORDS, mime_type=MIME_TYPES)
REASONING = st.fixed_dictionaries(
    {"type": st.just("reasoning"), "content": TEXTS},
    optional={
        "signature": WORDS,
        "encrypted": WORDS,
        "redacted": st.just(True),
        "id": WORDS,
        "provider": st.sampled_from(["anthropic", "openai", "google"]),
    },
)
FOREIGN = st.fixed_dictionaries(
    {"type": st.sampled_from(["openai_web_search_call", "anthropic_server_tool_use", "x_y"])},
    optional={"data": JSON, "id": WORDS},
)
CALL = st.fixed_dictionaries(
    {"type": st.just("tool_call"), "name": WORDS, "arguments": ARGUMENTS}, optional={"id": _IDS}
)
MEDIA = BLOB | URI | FILE
ANSWER = st.fixed_dictionaries(
    {"type": st.just("tool_call_response"), "response": TEXTS | JSON},
    optional={
        "id": _IDS,
        "is_error": st.booleans(),
        "parts": st.lists(MEDIA, max_size=2),
        "name": WORDS,
    },
)
USER = st.lists(TEXT | MEDIA, min_size=1, max_size=3)
ASSISTANT = st.lists(TEXT | CALL | REASONING | FOREIGN | MEDIA, min_size=1, max_size=4)


def _message(role: str, parts: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"role": st.just(role), "parts": parts})


MESSAGES = st.lists(
    _message("user", USER)
    | _message("assistant", ASSISTANT)
    | _message("tool", st.lists(ANSWER, max_size=3))
    | _message("system", st.lists(TEXT, max_size=2)),
    max_size=7,
)
"""Messages in any order, with answers to calls that are not there and calls without answers."""

CONVERSATIONS = st.builds(
    lambda messages, system: Conversation.of(messages, system),
    MESSAGES,
    st.lists(TEXT, max_size=2),
)
"""In the normal form, also such as no framework would make."""


@st.composite
def usual_conversations(draw: st.DrawFn) -> Conversation:
    """Draw what agents do: a user asks, the assistant calls, every call is answered in text."""
    messages: list[dict[str, Any]] = []
    words = TEXTS.filter(str.strip)
    for turn in range(draw(st.integers(1, 3))):
        asked = [{"type": "text", "content": draw(words)}]
        if draw(st.booleans()):
            asked.append({**draw(BLOB), "mime_type": "image/png"})
        messages.append({"role": "user", "parts": asked})
        for step in range(draw(st.integers(0, 2))):
            calls = [
                {
                    "type": "tool_call",
                    "id": f"call_{turn}_{step}_{number}",
                    "name": draw(st.sampled_from(["search", "read_file"])),
                    "arguments": draw(st.dictionaries(st.sampled_from("abc"), words, max_size=2)),
                }
                for number in range(draw(st.integers(1, 3)))
            ]
            said = [{"type": "text", "content": draw(words)}] if draw(st.booleans()) else []
            messages.append({"role": "assistant", "parts": [*said, *calls]})
            answers = [
                {"type": "tool_call_response", "id": call["id"], "response": draw(words)}
                for call in calls
            ]
            messages.append({"role": "tool", "parts": answers})
        said = [{"type": "text", "content": draw(words)}]
        messages.append({"role": "assistant", "parts": said})
    if draw(st.booleans()):
        messages.pop()
    return Conversation.of(messages)


_NAMES = [
    "role",
    "type",
    "kind",
    "content",
    "parts",
    "text",
    "messages",
    "values",
    "checkpoint",
    "tool_calls",
    "id",
    "name",
    "arguments",
    "args",
    "input",
    "output",
    "data",
    "source",
    "part_kind",
    "events",
    "state",
    "items",
    "llm_context",
    "message",
    "author",
    "function_call",
    "functionCall",
    "tool_call_id",
    "contents",
    "llm_messages",
    "uuid",
    "inline_data",
    "toolUse",
    "toolResult",
    "blocks",
    "steps",
    "memory",
    "context",
    "call_id",
    "response",
    "image",
    "image_url",
    "url",
    "base64",
    "mime_type",
    "summary",
    "thinking",
    "is_error",
    "status",
]

ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=12)
    | st.binary(max_size=4)
    | st.sampled_from(
        ["user", "assistant", "tool", "system", "text", "tool_call", "human", "ai", "request"]
    ),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(
            st.sampled_from(_NAMES) | st.text(max_size=3),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)
"""Data as an enemy would write it: the names are right and all else is wrong."""
