"""Conversations of Pydantic AI's agents go to other frameworks, and others' come to them."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import (
    BinaryImage,
    CachePoint,
    ImageUrl,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    RetryInfo,
    StructuredContent,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolReturnPart,
    UserPromptPart,
)

from holdfast import SyncClient
from holdfast.adapters.portable import Conversation, conversation, messages
from holdfast.adapters.pydantic_ai import HoldfastCapability, HoldfastConversationStore
from holdfast.core.conversation import FORMS, Native
from holdfast.core.conversation.reading import read
from tests.frameworks.pydantic_ai_agents import (
    PowerCut,
    Script,
    agent_of,
    answers_in,
    call,
    said_in,
)

PNG = BinaryImage(b"\x89PNG\xff\xfb\xfe", media_type="image/png")


@pytest.fixture
def client(tmp_path: Path) -> Iterator[SyncClient]:
    with SyncClient.sqlite(tmp_path / "store.db") as client:
        yield client


def found(session_id: str, client: SyncClient) -> Conversation:
    conversation_ = conversation(session_id, client)
    assert conversation_ is not None
    return conversation_


def read_of(*given: Any) -> Conversation:
    native = ModelMessagesTypeAdapter.dump_python(list(given), mode="json")
    return read(FORMS["pydantic_ai"], Native(native))


async def cut_off(client: SyncClient, **options: Any) -> None:
    """Leave a turn in which one tool gave a picture, and another was cut off."""

    def chart() -> Any:
        return ["the chart", PNG]

    def send(to: str) -> str:
        raise PowerCut

    script = Script([call("chart"), call("send", to="bob")])
    capability = HoldfastCapability(client, session_id="s", **options)
    agent = Agent(script.model, capabilities=[capability], instructions="Be brief.")
    agent.tool_plain(chart, sequential=True)
    agent.tool_plain(send, sequential=True)
    with pytest.raises(PowerCut):
        await agent.run("go")


async def test_a_turn_that_was_cut_off_is_handed_over_with_what_its_tools_gave(
    client: SyncClient,
) -> None:
    await cut_off(client)
    head = client.timeline("pydantic_ai", "s")[0].checkpoint_id
    client.continue_in(head, "langgraph", session_id="t")
    there = found("t", client)
    assert there.problems() == []
    chart, send = there.messages[2]["parts"]
    assert chart["response"] == "the chart"
    assert chart["parts"][0]["mime_type"] == "image/png"
    assert send["is_error"]


async def test_a_mail_of_which_nobody_knows_is_told_of_and_not_left_to_be_sent(
    client: SyncClient,
) -> None:
    await cut_off(client, effects={"send": "irreversible"})
    head = client.timeline("pydantic_ai", "s")[0].checkpoint_id
    moved = client.continue_in(head, "pydantic_ai", session_id="t")
    assert [effect.tool for effect in moved.unknown] == ["send"]
    assert found("t", client).pending == []


async def test_calls_that_came_from_elsewhere_are_run_when_the_turn_goes_on(
    client: SyncClient,
) -> None:
    state = {
        "messages": [
            {"role": "user", "content": "How deep?"},
            {
                "role": "assistant",
                "content": "Wait.",
                "tool_calls": [
                    {"id": "c1", "function": {"name": "depth", "arguments": '{"harbour": "Süd"}'}}
                ],
            },
        ]
    }
    elsewhere = client.save("custom", execution_state=state, session_id="e")
    client.continue_in(elsewhere, "pydantic_ai", session_id="s")
    ran = []

    def depth(harbour: str) -> str:
        ran.append(harbour)
        return "12 m"

    script = Script("never", "12 m deep")
    agent = agent_of(script, HoldfastCapability(client, session_id="s"), [depth])
    result = await agent.run()
    assert (result.output, ran) == ("12 m deep", ["Süd"])
    assert answers_in(result.all_messages()) == {"c1": "12 m"}


def half_answered(
    client: SyncClient, prompt: Any = "How deep?", calls: Sequence[str] = ("depth", "tide")
) -> None:
    """Have session s go on where elsewhere one of some calls was answered."""
    asked = [{"id": name, "function": {"name": name, "arguments": "{}"}} for name in calls]
    state = {
        "messages": [
            {"role": "user", "content": prompt},
            {"role": "assistant", "content": "Wait.", "tool_calls": asked},
            {"role": "tool", "tool_call_id": "depth", "content": "12 m"},
        ]
    }
    elsewhere = client.save("custom", execution_state=state, session_id="e")
    client.continue_in(elsewhere, "pydantic_ai", session_id="s")


class Harbour:
    """Two tools, one of which can be cut off."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.cut = False

    def depth(self) -> str:
        self.ran.append("depth")
        return "13 m"

    def tide(self) -> str:
        self.ran.append("tide")
        if self.cut:
            self.cut = False
            raise PowerCut
        return "rising"


BOTH_ANSWERS = {"depth": "12 m", "tide": "rising"}


@pytest.mark.parametrize("instructions", [None, "Be brief."])
@pytest.mark.parametrize("is_cut", [False, True])
@pytest.mark.parametrize("prompt", [None, "How deep?"])
async def test_of_calls_half_of_which_were_answered_elsewhere_the_others_are_run(
    client: SyncClient, prompt: str | None, is_cut: bool, instructions: str | None
) -> None:
    half_answered(client)
    harbour, script = Harbour(), Script("never", "12 m deep")
    capability = HoldfastCapability(client, session_id="s")
    tools = [harbour.depth, harbour.tide]
    agent = agent_of(script, capability, tools, instructions=instructions)
    harbour.cut = is_cut
    if is_cut:
        with pytest.raises(PowerCut):
            await agent.run(prompt)
    result = await agent.run(prompt)
    assert result.output == "12 m deep"
    assert harbour.ran == ["tide", "tide"][: 1 + is_cut]
    assert answers_in(script.asked[0]) == answers_in(result.all_messages()) == BOTH_ANSWERS
    assert said_in(result.all_messages()).count("user-prompt") == 1
    assert found("s", client).problems() == []


async def test_a_stream_runs_them_too(client: SyncClient) -> None:
    half_answered(client)
    harbour, script = Harbour(), Script("never", "12 m deep")
    capability = HoldfastCapability(client, session_id="s")
    agent = agent_of(script, capability, [harbour.depth, harbour.tide])
    async with agent.run_stream("How deep?") as result:
        await result.get_output()
    assert (harbour.ran, answers_in(script.asked[0])) == (["tide"], BOTH_ANSWERS)
    assert found("s", client).problems() == []


async def test_another_prompt_leaves_them_with_what_they_gave(client: SyncClient) -> None:
    half_answered(client, calls=["depth", "tide", "pilot"])
    harbour = Harbour()
    script = Script("never", "as you like")
    agent = agent_of(script, HoldfastCapability(client, session_id="s"), [harbour.depth])
    agent.tool_plain(harbour.tide, sequential=True)

    @agent.tool_plain(sequential=True)
    def pilot() -> str:
        raise PowerCut

    with pytest.raises(PowerCut):
        await agent.run()
    answers = answers_in((await agent.run("Never mind.")).all_messages())
    assert "interrupted" in answers.pop("pilot")
    assert (harbour.ran, answers) == (["tide"], BOTH_ANSWERS)
    assert found("s", client).problems() == []


async def test_a_call_that_a_later_prompt_passed_over_is_answered_as_interrupted(
    client: SyncClient,
) -> None:
    half_answered(client)
    turn = client.restore(client.timeline("pydantic_ai", "s")[0].checkpoint_id).execution_state
    turn["messages"][-1]["parts"].append({"part_kind": "user-prompt", "content": "Well?"})
    client.save("pydantic_ai", execution_state=turn, session_id="t", framework="pydantic_ai")
    harbour, script = Harbour(), Script("never", "no idea")
    capability = HoldfastCapability(client, session_id="t")
    agent = agent_of(script, capability, [harbour.depth, harbour.tide])
    assert (await agent.run()).output == "no idea"
    assert harbour.ran == []
    assert found("t", client).problems() == []


async def test_a_prompt_with_a_picture_is_known_again_after_a_move(client: SyncClient) -> None:
    url = f"data:image/png;base64,{b64encode(PNG.data).decode()}"
    picture = {"type": "image_url", "image_url": {"url": url}}
    half_answered(client, [{"type": "text", "text": "Where is it?"}, picture])
    harbour, script = Harbour(), Script("never", "there")
    capability = HoldfastCapability(client, session_id="s")
    agent = agent_of(script, capability, [harbour.depth, harbour.tide])
    result = await agent.run(["Where is it?", PNG])
    assert said_in(result.all_messages()).count("user-prompt") == 1
    assert harbour.ran == ["tide"]


async def test_the_prompt_that_was_not_answered_elsewhere_is_not_doubled(
    client: SyncClient,
) -> None:
    state = {
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]
    }
    elsewhere = client.save("custom", execution_state=state, session_id="e")
    client.continue_in(elsewhere, "pydantic_ai", session_id="s")
    agent = agent_of(Script("hello"), HoldfastCapability(client, session_id="s"))
    result = await agent.run("hi")
    assert said_in(result.all_messages()) == ["system-prompt", "user-prompt", "text"]


async def test_a_conversation_may_be_taken_along_by_hand(client: SyncClient) -> None:
    agent = agent_of(Script("one"), HoldfastCapability(client, session_id="s"))
    await agent.run(["hi", PNG])
    history = messages(found("s", client), "pydantic_ai")
    result = await Agent(Script("", "two").model).run("more", message_history=history)
    assert result.output == "two"
    assert result.all_messages()[0].parts[0].content[1].data == PNG.data


async def test_a_stored_conversation_is_read_up_to_its_head(client: SyncClient) -> None:
    store = HoldfastConversationStore(client)
    result = await Agent(Script("one").model).run("hi", conversation_id="ada")
    await store.save(result)
    back = await store.branch("ada", at=0, expected_revision=result.conversation.revision)
    assert found("ada", client).messages == []
    result = await Agent(Script("two").model).run("again", conversation=back)
    await store.save(result)
    assert [m["parts"][0]["content"] for m in found("ada", client).messages] == ["again", "two"]


def test_instructions_are_the_system_prompt_and_said_once() -> None:
    request = ModelRequest(parts=[UserPromptPart("hi")], instructions="Be brief.")
    later = ModelRequest(parts=[UserPromptPart("more")], instructions="Be long.")
    read = read_of(request, ModelResponse(parts=[TextPart("hello")]), later)
    assert read.system_instructions == [{"type": "text", "content": "Be long."}]
    both = ModelRequest(
        parts=[SystemPromptPart("Be brief."), UserPromptPart("hi")], instructions="Be brief."
    )
    assert read_of(both).system_instructions == [{"type": "text", "content": "Be brief."}]


def test_what_users_say_is_read_and_what_is_left_out_is_named() -> None:
    said = [
        "look",
        TextContent("here", metadata={"from": "app"}),
        StructuredContent({"a": 1}),
        PNG,
        ImageUrl("https://example.com/a.png"),
        CachePoint(),
    ]
    read = read_of(ModelRequest(parts=[UserPromptPart(said)]))
    kinds = [part["type"] for part in read.messages[0]["parts"]]
    assert kinds == ["text", "text", "text", "blob", "uri"]
    assert read.messages[0]["parts"][3]["content"] == "iVBOR//7/g=="
    assert [each.partition(": ")[2] for each in read.lost] == [
        "the data behind a text",
        "the data behind a text",
        "a cache point, which is its provider's",
    ]


def test_how_tools_ended_is_read() -> None:
    calls = ModelResponse(parts=[call("f", f"c{number}") for number in range(4)])
    answers = ModelRequest(
        parts=[
            ToolReturnPart("f", {"a": 1}, "c0"),
            ToolReturnPart("f", "no", "c1", outcome="failed"),
            ToolReturnPart("f", "again", "c2", outcome="retried"),
            ToolReturnPart("f", "not now", "c3", outcome="denied"),
            RetryFeedbackPart("say more", retry=RetryInfo(cause="no_output")),
        ]
    )
    read = read_of(ModelRequest(parts=[UserPromptPart("go")]), calls, answers)
    told = [(part["response"], part.get("is_error", False)) for part in read.messages[2]["parts"]]
    assert told == [({"a": 1}, False), ("no", True), ("again", True), ("not now", False)]
    assert read.messages[3]["role"] == "user"


def test_what_a_model_thought_comes_back_to_its_provider() -> None:
    thoughts = [
        ThinkingPart("hm", signature="sig", provider_name="anthropic"),
        ThinkingPart("", id="redacted_thinking", signature="xyz", provider_name="anthropic"),
        ThinkingPart("so", id="rs_1", signature="enc", provider_name="openai"),
    ]
    read = read_of(ModelResponse(parts=[*thoughts, TextPart("ok")]))
    hm, hidden, so, _ = read.messages[0]["parts"]
    assert (hm["signature"], hidden["encrypted"], so["encrypted"]) == ("sig", "xyz", "enc")
    assert hidden["redacted"]
    (again,) = messages(read, "pydantic_ai")
    assert list(again.parts[:3]) == thoughts
