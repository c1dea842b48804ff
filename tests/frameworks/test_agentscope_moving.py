"""What was said to an AgentScope agent is read without it, and goes on elsewhere and back."""

import base64
from pathlib import Path
from typing import Any

import pytest
from agentscope.agent import Agent
from agentscope.message import Base64Source, DataBlock, Msg, TextBlock, UserMsg
from agentscope.state import AgentState
from agentscope.tool import FunctionTool, ToolChunk, Toolkit

from holdfast import SyncClient
from holdfast.adapters.agentscope import HoldfastMiddleware
from holdfast.adapters.agentscope.messages import loaded
from holdfast.adapters.portable import conversation, messages
from holdfast.core.conversation import Conversation, Lost
from holdfast.core.conversation.frameworks.agentscope import FORM
from holdfast.errors import AdapterError
from tests.frameworks import reference
from tests.frameworks.jobs.agentscope import ALLOWED, ScriptedModel, call, say


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


def agent_on(url: str, session_id: str, *answers: list[Any], ran: list[str] | None = None) -> Agent:
    left = list(answers)

    async def depth(harbour: str, unit: str = "m") -> ToolChunk:
        """Tell how deep a harbour is."""
        if ran is not None:
            ran.append("depth")
        return ToolChunk(content=say(reference.depth(harbour, unit)))

    async def tide(harbour: str) -> ToolChunk:
        """Tell whether the water rises."""
        if ran is not None:
            ran.append("tide")
        return ToolChunk(content=say(reference.tide(harbour)))

    middleware = HoldfastMiddleware(session_id=session_id, url=url)
    return Agent(
        name="clerk",
        system_prompt=reference.SYSTEM,
        model=ScriptedModel(lambda asked: left.pop(0)),
        toolkit=Toolkit(tools=[FunctionTool(each, permission=ALLOWED) for each in (depth, tide)]),
        middlewares=[middleware],
        state=middleware.state(),
    )


def calls() -> list[Any]:
    return [
        TextBlock(text=reference.SAID),
        call("depth", "call_depth", '{"harbour": "Süd", "unit": "m"}'),
        call("tide", "call_tide", '{"harbour": "Süd"}'),
    ]


def prompt() -> Msg:
    picture = Base64Source(data=base64.b64encode(reference.PNG).decode(), media_type="image/png")
    return UserMsg("user", [TextBlock(text=reference.PROMPT), DataBlock(source=picture)])


def said() -> list[dict[str, Any]]:
    """Return the reference conversation in the normal form."""
    picture = {
        "type": "blob",
        "modality": "image",
        "mime_type": "image/png",
        "content": base64.b64encode(reference.PNG).decode(),
    }
    asked = [{"type": "tool_call", **each} for each in reference.CALLS]
    answers = [
        {
            "type": "tool_call_response",
            "id": each["id"],
            "response": reference.RESULTS[each["id"]],
            "name": each["name"],
        }
        for each in reference.CALLS
    ]
    return [
        {"role": "user", "parts": [{"type": "text", "content": reference.PROMPT}, picture]},
        {"role": "assistant", "parts": [{"type": "text", "content": reference.SAID}, *asked]},
        {"role": "tool", "parts": answers},
        {"role": "assistant", "parts": [{"type": "text", "content": reference.ANSWER}]},
    ]


async def test_what_was_said_is_read_as_it_was(url: str) -> None:
    await agent_on(url, "s", calls(), say(reference.ANSWER)).reply(prompt())
    found = conversation("s", url=url)

    assert found is not None
    assert found.messages == said()
    assert found.problems() == []
    assert [each.partition(": ")[2] for each in found.lost] == ["a hint of AgentScope's own"]


async def test_an_agent_goes_on_with_what_was_said_elsewhere(url: str) -> None:
    with SyncClient.open(url) as client:
        elsewhere = client.save("bot", execution_state={"messages": _plain()}, session_id="p")
        moved = client.continue_in(elsewhere, "agentscope", session_id="s")
    agent = agent_on(url, "s", say("Gern."))
    reply = await agent.reply(UserMsg("user", "Danke"))
    found = conversation("s", url=url)

    assert reply.get_text_content() == "Gern."
    assert moved.framework.value == "agentscope"
    assert found is not None
    assert found.messages[:3] == _normal()[:3]
    assert [message["role"] for message in found.messages] == [
        *[message["role"] for message in _normal()],
        "user",
        "assistant",
    ]


async def test_calls_that_waited_elsewhere_are_run_by_the_agent_that_goes_on(url: str) -> None:
    with SyncClient.open(url) as client:
        cut = _plain()[:2]
        elsewhere = client.save("bot", execution_state={"messages": cut}, session_id="p")
        client.continue_in(elsewhere, "agentscope", session_id="s")
    ran: list[str] = []
    agent = agent_on(url, "s", say(reference.ANSWER), ran=ran)
    reply = await agent.reply(None)
    found = conversation("s", url=url)

    assert reply.get_text_content() == reference.ANSWER
    assert sorted(ran) == ["depth", "tide"]
    assert found is not None
    assert found.messages == _normal()
    assert len(agent.state.context) == 2


@pytest.mark.parametrize(
    ("kept", "runs"), [(1, ["depth", "tide"]), (2, ["depth", "tide"]), (3, ["tide"]), (4, [])]
)
async def test_the_same_prompt_goes_on_with_a_reply_that_was_cut_short_elsewhere(
    url: str, kept: int, runs: list[str]
) -> None:
    with SyncClient.open(url) as client:
        cut = _plain()[:kept]
        elsewhere = client.save("bot", execution_state={"messages": cut}, session_id="p")
        client.continue_in(elsewhere, "agentscope", session_id="s")
    ran: list[str] = []
    answers = [calls(), say(reference.ANSWER)] if kept == 1 else [say(reference.ANSWER)]
    agent = agent_on(url, "s", *answers, ran=ran)
    reply = await agent.reply(UserMsg("ann", reference.PROMPT))
    found = conversation("s", url=url)

    assert reply.get_text_content() == reference.ANSWER
    assert sorted(ran) == runs
    assert found is not None
    assert found.messages == _normal()


@pytest.mark.parametrize("kept", [1, 2, 3, 4])
async def test_another_prompt_leaves_a_reply_that_was_cut_short_elsewhere(
    url: str, kept: int
) -> None:
    with SyncClient.open(url) as client:
        cut = _plain()[:kept]
        elsewhere = client.save("bot", execution_state={"messages": cut}, session_id="p")
        client.continue_in(elsewhere, "agentscope", session_id="s")
    ran: list[str] = []
    reply = await agent_on(url, "s", say("Gern."), ran=ran).reply(UserMsg("user", "Danke"))
    found = conversation("s", url=url)

    assert reply.get_text_content() == "Gern."
    assert ran == []
    assert found is not None
    assert [part["content"] for each in found.messages[-2:] for part in each["parts"]][-2:] == [
        "Danke",
        "Gern.",
    ]


class PowerCut(BaseException):
    """Ends a reply as a kill would."""


async def test_what_a_tool_gave_before_the_cut_is_its_answer_elsewhere(url: str) -> None:
    agent = agent_on(url, "s", calls())

    async def cut(harbour: str) -> ToolChunk:
        """Tell whether the water rises."""
        raise PowerCut

    await agent.toolkit.remove_tool("depth")
    await agent.toolkit.remove_tool("tide")
    for tool in (reference_depth, FunctionTool(cut, name="tide", permission=ALLOWED)):
        tool.is_concurrency_safe = False
        await agent.toolkit.add_tool(tool)
    with pytest.raises(PowerCut):
        await agent.reply(prompt())
    with SyncClient.open(url) as client:
        head = client.latest("agentscope", "s")
        assert head is not None
        moved = client.continue_in(
            head.checkpoint_id, "langgraph", session_id="there", rest="answer"
        )
        found = conversation("there", client)

    assert found is not None
    answers = found.messages[2]["parts"]
    assert answers[0]["response"] == reference.RESULTS["call_depth"]
    assert answers[1]["is_error"]
    assert moved.unknown == []


async def _depth(harbour: str, unit: str = "m") -> ToolChunk:
    """Tell how deep a harbour is."""
    return ToolChunk(content=say(reference.depth(harbour, unit)))


reference_depth = FunctionTool(_depth, name="depth", permission=ALLOWED)


async def test_going_back_takes_the_messages_that_it_had(url: str) -> None:
    await agent_on(url, "s", calls(), say(reference.ANSWER)).reply(prompt())
    with SyncClient.open(url) as client:
        head = client.latest("agentscope", "s")
        assert head is not None
        own = head.execution_state["agent"]["context"]
        there = client.continue_in(head.checkpoint_id, "langgraph")
        back = client.continue_in(there.checkpoint_id, "agentscope", session_id="back")
        again = client.restore(back.checkpoint_id).execution_state["agent"]["context"]

    assert again == own  # with ids, times and hints


async def test_a_summary_tasks_and_questions_are_part_of_it(url: str) -> None:
    task = {"subject": "measure", "description": "d", "metadata": {}, "state": "in_progress"}
    asking = {"type": "tool_call", "id": "c", "name": "send", "input": "{}", "state": "asking"}
    state = AgentState.model_validate(
        {
            "summary": "They spoke of tides.",
            "context": [{"name": "clerk", "role": "assistant", "content": [asking]}],
            "tasks_context": {"tasks": [task]},
        }
    )
    with SyncClient.open(url) as client:
        kept = {"agent": state.model_dump(mode="json"), "reply": {"stage": "waiting"}}
        client.save("agentscope", framework="agentscope", session_id="s", execution_state=kept)
    found = conversation("s", url=url)

    assert found is not None
    assert found.messages[0]["parts"][0]["content"] == "They spoke of tides."
    assert [(each["content"], each["status"]) for each in found.plan] == [
        ("measure", "in_progress")
    ]
    assert [each["tool_call_id"] for each in found.interrupts] == ["c"]
    assert [each.id for each in found.pending] == ["c"]


def test_messages_are_objects_of_agentscope() -> None:
    native = messages(Conversation.of(said()), "agentscope")
    found = loaded(native)

    assert [type(each) for each in found] == [Msg, Msg]
    assert found[1].get_text_content() == f"{reference.SAID}\n{reference.ANSWER}"
    with pytest.raises(AdapterError, match=r"messages\[0\]"):
        loaded([{"role": "nobody"}])


def test_all_that_is_written_is_read_by_agentscope() -> None:
    odd = [
        {
            "role": "user",
            "parts": [
                {"type": "uri", "modality": "image", "uri": "https://example.org/a.png"},
                {"type": "file", "modality": "image", "file_id": "f1"},
                {"type": "blob", "modality": "audio", "content": "AAAA"},
            ],
        },
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "hm", "signature": "x", "provider": "anthropic"},
                {"type": "tool_call", "id": "a", "name": "n", "arguments": "not json"},
            ],
        },
        {
            "role": "tool",
            "parts": [
                {
                    "type": "tool_call_response",
                    "id": "a",
                    "name": "n",
                    "response": {"a": [1]},
                    "is_error": True,
                    "parts": [{"type": "blob", "modality": "image", "content": "AAAA"}],
                }
            ],
        },
        {"role": "system", "parts": [{"type": "text", "content": "late"}]},
    ]
    lost = Lost()
    whole = Conversation.of(odd)
    native = FORM.write(whole, lost)
    state = AgentState(context=loaded(native))
    found = FORM.extract({"agent": state.model_dump(mode="json")})

    assert found is not None
    again = Conversation.of(FORM.read(found.messages, Lost()))
    assert again.messages[1:] == whole.messages[1:]
    assert [each.partition(": ")[0] for each in lost.found] == ["$.messages[0].parts[1]"]


def _plain() -> list[dict[str, Any]]:
    """Return the conversation as a program of one's own may keep it, without the picture."""
    asked = [
        {
            "id": each["id"],
            "type": "function",
            "function": {"name": each["name"], "arguments": each["arguments"]},
        }
        for each in reference.CALLS
    ]
    answers = [
        {"role": "tool", "tool_call_id": own, "content": text}
        for own, text in reference.RESULTS.items()
    ]
    return [
        {"role": "user", "content": reference.PROMPT},
        {"role": "assistant", "content": reference.SAID, "tool_calls": asked},
        *answers,
        {"role": "assistant", "content": reference.ANSWER},
    ]


def _normal() -> list[dict[str, Any]]:
    whole = said()
    whole[0]["parts"].pop()
    return whole
