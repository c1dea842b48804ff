"""A conversation begun in any framework and killed goes on in any other, and comes back.

What is lost is what the table in docs/frameworks.md says.
"""

import base64
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from holdfast import SyncClient
from holdfast.adapters.portable import Conversation, conversation
from holdfast.model import CheckpointInfo
from holdfast.verbs.conversations import held
from tests.frameworks import pairs, reference
from tests.frameworks.losses import losses_of, words_of

TEN = (
    "langgraph",
    "openai_agents",
    "pydantic_ai",
    "autogen",
    "crewai",
    "google_adk",
    "strands",
    "claude_agent_sdk",
    "agent_framework",
    "agentscope",
)
PAIRS = [(one, other) for one in TEN for other in TEN if one != other]
IN_B, BACK = "00000000-0000-4000-8000-0000000000b2", "00000000-0000-4000-8000-0000000000a3"
PROMPT, REPLY = "Und morgen? 明日は？", "Morgen auch. ✓"
LATER, LAST = "Danke – und übermorgen?", "Übermorgen nicht."


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pairs.Workers]:
    with pairs.Workers(tmp_path_factory.mktemp("workers")) as started:
        yield started


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = tmp_path_factory.mktemp("begun")
    return cache(lambda framework: pairs.begun(framework, directory / framework))


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=[f"{a}-{b}" for a, b in PAIRS])
def test_a_conversation_goes_on_in_another_framework_and_comes_back(
    one: str, other: str, workers: pairs.Workers, begun: Any, tmp_path: Path
) -> None:
    url = pairs.copied(begun(one), tmp_path)
    with SyncClient.open(url) as client:
        start = head_of(client, pairs.SESSION, one)
        first = conversation(pairs.SESSION, client)
        assert first is not None
        check_reference(first, one)
        there = client.continue_in(start.checkpoint_id, other, session_id=IN_B)
        assert client.ancestors(there.checkpoint_id)[0].checkpoint_id == start.checkpoint_id
    workers.go_on(other, url, IN_B, PROMPT, REPLY)
    with SyncClient.open(url) as client:
        second = conversation(IN_B, client, agent_id=there.agent_id)
        assert second is not None
        check_went_on(first, second, PROMPT, REPLY, there.lost)
        end = head_of(client, IN_B, other)
        back = client.continue_in(end.checkpoint_id, one, session_id=BACK)
        check_originals(client, start, back.checkpoint_id)
    workers.go_on(one, url, BACK, LATER, LAST)
    with SyncClient.open(url) as client:
        third = conversation(BACK, client, agent_id=back.agent_id)
        assert third is not None
        since = second.messages[len(first.messages) :]
        whole = replace(second, messages=[*first.messages, *since])
        check_went_on(whole, third, LATER, LAST, [])
    assert words_of(there.lost) == losses_of(one, other)
    assert words_of(back.lost) <= losses_of(other, one)


def head_of(client: SyncClient, session_id: str, agent_id: str) -> CheckpointInfo:
    """Return the head of a session, by the id that its framework knows it by."""
    found = [
        session.head
        for session in client.sessions(agent_id)
        if session_id in (session.session_id, session.head.metadata.get("native_session_id"))
    ]
    assert len(found) == 1, [session.session_id for session in client.sessions()]
    return found[0]


def check_reference(found: Conversation, framework: str) -> None:
    """Check that what was begun is the reference conversation, as far as its table says so."""
    assert [message["role"] for message in found.messages] == ["user", "assistant", "tool"]
    user, assistant, tool = (message["parts"] for message in found.messages)
    picture = base64.b64encode(reference.PNG).decode()
    assert reference.PROMPT in [part.get("content") for part in user]
    if framework != "autogen":  # which makes another PNG of the same pixels
        assert picture in [part.get("content") for part in user]
    calls = [part for part in assistant if part["type"] == "tool_call"]
    assert [(c["id"], c["name"], c["arguments"]) for c in calls] == [
        (c["id"], c["name"], c["arguments"]) for c in reference.CALLS
    ]
    assert {part["id"]: part["response"] for part in tool} == reference.RESULTS


def check_went_on(
    before: Conversation, after: Conversation, prompt: str, reply: str, lost: list[str]
) -> None:
    """Check that a conversation is the one before, and one turn more."""
    assert [p for m in after.messages[-2:] for p in m["parts"] if p["type"] == "text"] == [
        {"type": "text", "content": prompt},
        {"type": "text", "content": reply},
    ]
    said = after.messages[:-2]
    assert [message["role"] for message in said] == [m["role"] for m in before.messages]
    named = [each.partition(": ")[0] for each in lost]
    for i, (old, new) in enumerate(zip(before.messages, said, strict=True)):
        if not any(path.startswith(f"$.messages[{i}]") for path in named):
            assert new == old


def check_originals(client: SyncClient, start: CheckpointInfo, back: str) -> None:
    """Check that who comes back has the messages that it had, as they were."""
    run, engine = client.runtime.run, client.runtime.engine
    had = run(held(engine, start.checkpoint_id)).native
    has = run(held(engine, back)).native
    assert had is not None
    assert has is not None
    assert list(has.messages)[: len(had.messages)] == list(had.messages)
