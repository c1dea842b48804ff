"""Going on with a session in another framework: state, calls, files and what is lost."""

import os
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client, Continued, Framework, SyncClient
from holdfast.adapters.portable import conversation, messages, to_atif, to_opentelemetry
from holdfast.core.conversation import FORMS, Conversation
from holdfast.errors import (
    AdapterError,
    AmbiguousIdError,
    CheckpointNotFoundError,
    HoldfastError,
    InvalidArgumentError,
)

ASKED = {"role": "user", "content": "Wie tief? 水深"}
CALLS = [
    {"id": "a", "function": {"name": "depth", "arguments": '{"harbour": "Süd"}'}},
    {"id": "b", "function": {"name": "send", "arguments": "{}"}},
]
CALLING = {"role": "assistant", "content": "I look", "tool_calls": CALLS}
ANSWERS = [
    {"role": "tool", "tool_call_id": "a", "content": "12.5 m"},
    {"role": "tool", "tool_call_id": "b", "content": "sent"},
]
WHOLE = {"messages": [ASKED, CALLING, *ANSWERS]}
CUT = {"messages": [ASKED, CALLING]}


@pytest.fixture
def client() -> Any:
    with SyncClient.memory() as opened:
        yield opened


def said(client: SyncClient, found: Continued) -> list[dict[str, Any]]:
    held = conversation(found.session_id, client, agent_id=found.agent_id)
    assert held is not None
    return held.messages


@pytest.mark.parametrize("framework", FORMS)
def test_the_new_session_is_the_frameworks_own_and_a_child_of_the_old(
    client: SyncClient, framework: str
) -> None:
    begun = client.save("mine", execution_state=WHOLE, session_id="s", context={"user": "ada"})
    found = client.continue_in(begun, framework)
    kept = client.restore(found.checkpoint_id, on_unknown="raw")

    assert (kept.parent_id, kept.framework.value, kept.agent_id) == (begun, framework, framework)
    assert kept.session_id == found.session_id != "s"
    assert kept.agent_context["user"] == "ada"
    assert kept.agent_context["continued_from"]["lost"] == found.lost
    held = conversation(found.session_id, client)
    assert held is not None
    assert held.origin["framework"] == framework
    texts = str(held.messages)
    assert all(each in texts for each in ("水深", "depth", "Süd", "12.5 m", "sent"))
    assert client.latest("mine", "s").checkpoint_id == begun  # type: ignore[union-attr]


def test_a_session_of_ones_own_goes_there_and_comes_back_as_it_was(client: SyncClient) -> None:
    first = client.continue_in(client.save("mine", execution_state=WHOLE), "strands")
    there = client.continue_in(first.checkpoint_id, "openai_agents", session_id="there")
    back = client.continue_in(there.checkpoint_id, Framework.STRANDS, agent_id="again")
    natives = [
        FORMS["strands"].extract(client.restore(each.checkpoint_id).execution_state)
        for each in (first, back)
    ]

    assert said(client, first) == said(client, back) == said(client, there)
    assert natives[0] == natives[1] is not None
    assert (back.agent_id, back.framework) == ("again", Framework.STRANDS)


def test_an_id_may_be_a_prefix_as_everywhere(client: SyncClient) -> None:
    begun = client.save("mine", execution_state=WHOLE)

    assert client.continue_in(begun[:30], "strands").lost == []
    with pytest.raises(CheckpointNotFoundError):
        client.continue_in("ffffff", "strands")
    with pytest.raises((AmbiguousIdError, HoldfastError)):
        client.continue_in(begun[:6], "strands")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"framework": "cobol"}, "framework is one of langgraph"),
        ({"framework": "custom"}, "framework is one of langgraph"),
        ({"framework": None}, "framework is one of langgraph"),
        ({"session_id": "taken", "agent_id": "mine"}, "has checkpoints already"),
        ({"session_id": ""}, "session_id"),
        ({"agent_id": 3}, "agent_id"),
        ({"tool_names": {"a": None}}, "tool names are"),
        ({"rest": "forget"}, "rest is one of"),
        ({"rest": "keep"}, "does not: use"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_written(
    client: SyncClient, arguments: dict[str, Any], message: str
) -> None:
    begun = client.save("mine", execution_state=CUT, session_id="taken")

    with pytest.raises(InvalidArgumentError, match=message):
        client.continue_in(begun, **{"framework": "langgraph", **arguments})
    assert len(client.sessions()) == 1


def test_a_checkpoint_without_a_conversation_is_clearly_refused(client: SyncClient) -> None:
    begun = client.save("mine", execution_state={"n": 1})

    with pytest.raises(AdapterError, match="holds no conversation"):
        client.continue_in(begun, "strands")
    with pytest.raises(AdapterError, match="holds no conversation"):
        client.handoff(begun, "you", to_framework="strands")


# Calls without an answer


def working(client: SyncClient, ends: bool = True) -> str:
    """Have an agent make calls by the ids of a model's, and be cut off; return where it stands."""

    def depth(harbour: str) -> str:
        return "12.5 m"

    def send() -> str:
        if not ends:
            raise KeyboardInterrupt
        return "sent"

    run = client.session("mine", session_id="s", state=dict(CUT)).__enter__()
    run.call(depth, harbour="Süd", effect="read", key="a")
    try:
        run.call(send, effect="irreversible", key="b")
    except KeyboardInterrupt:
        pass
    return client.timeline("mine", "s")[0].checkpoint_id


def test_outputs_that_the_journal_knows_are_filled_in(client: SyncClient) -> None:
    found = client.continue_in(working(client), "langgraph")

    answers = said(client, found)[-1]["parts"]
    assert [part["response"] for part in answers] == ["12.5 m", "sent"]
    assert (found.lost, found.unknown) == ([], [])


@pytest.mark.parametrize("framework", ["langgraph", "pydantic_ai", "openai_agents"])
def test_an_irreversible_call_of_unknown_end_is_answered_so_and_listed(
    client: SyncClient, framework: str
) -> None:
    found = client.continue_in(working(client, ends=False), framework)

    first, second = said(client, found)[-1]["parts"]
    assert first["response"] == "12.5 m"
    assert "nobody knows" in second["response"]
    assert [call.tool for call in found.unknown] == ["send"]


def test_the_rest_is_dropped_or_answered_or_kept_where_it_is_run(client: SyncClient) -> None:
    begun = client.save("mine", execution_state=CUT)

    dropped = client.continue_in(begun, "langgraph")
    answered = client.continue_in(begun, "langgraph", rest="answer")
    kept = client.continue_in(begun, "pydantic_ai")

    assert said(client, dropped)[-1]["parts"] == [{"type": "text", "content": "I look"}]
    assert all("left out" in each for each in dropped.lost)
    assert all(part["is_error"] for part in said(client, answered)[-1]["parts"])
    pending = conversation(kept.session_id, client).pending  # type: ignore[union-attr]
    assert [call.name for call in pending] == ["depth", "send"]


@pytest.mark.parametrize("framework", FORMS)
def test_a_call_that_waits_for_approval_is_run_nowhere_else(
    client: SyncClient, framework: str
) -> None:
    begun = client.continue_in(
        client.save("mine", execution_state=CUT, session_id="s"), "pydantic_ai", rest="keep"
    )
    state = client.restore(begun.checkpoint_id).execution_state
    state["deferred"] = {"approvals": [{"tool_call_id": "b", "tool_name": "send"}]}
    waiting = client.save(begun.agent_id, Framework.PYDANTIC_AI, state, begun.session_id)

    found = client.continue_in(waiting, framework)

    held = conversation(found.session_id, client, agent_id=found.agent_id)
    assert held is not None
    assert "b" not in {call.id for call in held.pending}
    assert "waited for somebody's approval" in str(held.messages)


def test_ids_that_a_model_gives_again_are_told_apart(client: SyncClient) -> None:
    again = [{"id": "call_0", "function": {"name": "depth", "arguments": "{}"}}]
    answer = {"role": "tool", "tool_call_id": "call_0", "content": "1 m"}
    asks = {"role": "assistant", "content": None, "tool_calls": again}
    state = {"messages": [ASKED, asks, answer, asks]}

    def depth() -> str:
        return "2 m"

    run = client.session("mine", session_id="s", state=state).__enter__()
    run.call(depth, key="call_0#2")
    found = client.continue_in(client.timeline("mine", "s")[0].checkpoint_id, "langgraph")

    answers = [m["parts"][0]["response"] for m in said(client, found) if m["role"] == "tool"]
    assert answers == ["1 m", "2 m"]


def test_tools_are_called_as_the_next_agent_calls_them(client: SyncClient) -> None:
    begun = client.save("mine", execution_state=WHOLE)
    found = client.continue_in(begun, "strands", tool_names={"depth": "mcp__sea__depth"})

    names = {p["name"] for m in said(client, found)[1:3] for p in m["parts"] if "name" in p}
    assert names == {"mcp__sea__depth", "send"}


# Files and tasks


def test_files_and_tasks_are_carried_on(client: SyncClient, tmp_path: Path) -> None:
    place = tmp_path / "work"
    place.mkdir()
    with client.session("mine", session_id="s", state=dict(WHOLE), workspace=place) as run:
        run.tasks.plan("read", "write")
        with next(run.tasks.remaining()):
            (place / "note.txt").write_text("Süd")
    found = client.continue_in(client.timeline("mine", "s")[0].checkpoint_id, "strands")

    client.restore_workspace(found.checkpoint_id, tmp_path / "new")
    assert os.listdir(tmp_path / "new") == ["note.txt"]
    held = conversation(found.session_id, client)
    assert held is not None
    assert [(e["content"], e["status"]) for e in held.plan] == [
        ("read", "completed"),
        ("write", "pending"),
    ]


# Offers


def test_who_accepts_an_offer_goes_on_in_the_other_framework(client: SyncClient) -> None:
    begun = client.save("mine", execution_state=WHOLE, session_id="s")
    offer = client.handoff(begun, "reviewer", to_framework="strands", tool_names={"send": "mail"})
    taken = client.accept(offer, session_id="review")

    assert (taken.framework, taken.agent_id, taken.session_id) == ("strands", "reviewer", "review")
    assert [info.checkpoint_id for info in client.ancestors(taken.checkpoint_id)] == [offer, begun]
    held = conversation("review", client)
    assert held is not None
    assert "mail" in str(held.messages)
    assert client.latest("mine", "s").checkpoint_id == begun  # type: ignore[union-attr]
    assert client.inbox("reviewer") == []


def test_tool_names_of_an_offer_go_with_a_framework(client: SyncClient) -> None:
    begun = client.save("mine", execution_state=WHOLE)

    with pytest.raises(InvalidArgumentError, match="goes with to_framework"):
        client.handoff(begun, "you", tool_names={"a": "b"})


async def test_it_is_the_same_awaited() -> None:
    async with Client.memory() as client:
        begun = await client.save("mine", execution_state=WHOLE, session_id="s")
        found = await client.continue_in(begun, "strands", session_id="there")
        offer = await client.handoff(begun, "you", to_framework="strands")

        assert found.session_id == "there"
        assert (await client.accept(offer)).framework is Framework.STRANDS
        held = conversation("there", client)
    assert held is not None
    assert held.problems() == []


# The conversation of a session


def test_a_session_that_is_not_there_or_holds_none_has_no_conversation(client: SyncClient) -> None:
    client.save("mine", execution_state={"n": 1}, session_id="s")

    assert conversation("s", client) is None
    assert conversation("other", client) is None


def test_of_several_agents_one_is_named(client: SyncClient) -> None:
    for agent in ("one", "two"):
        client.save(agent, execution_state=WHOLE, session_id="s")

    with pytest.raises(InvalidArgumentError, match=r"of 'one', .*of 'two'.*agent_id="):
        conversation("s", client)
    assert conversation("s", client, agent_id="two") is not None


def test_what_a_framework_calls_the_session_does_too(client: SyncClient) -> None:
    client.save("one", execution_state=WHOLE, session_id="x", native_session_id="own")

    assert conversation("own", client) == conversation("x", client)
    client.save("two", execution_state=WHOLE, session_id="y", native_session_id="own")
    with pytest.raises(InvalidArgumentError, match="agent_id"):
        conversation("own", client)


def test_a_client_or_a_url_is_given_and_not_both(client: SyncClient, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    with SyncClient.open(url) as other:
        other.save("mine", execution_state=WHOLE, session_id="s")

    assert conversation("s", url=url) is not None
    with pytest.raises(InvalidArgumentError, match="not both"):
        conversation("s", client, url=url)


def test_a_state_that_is_too_deep_is_an_error_that_names_the_checkpoint(
    client: SyncClient,
) -> None:
    deep: Any = "x"
    for _ in range(120):
        deep = [deep]
    state = {"messages": [{"role": "user", "content": deep}]}
    begun = client.save("mine", execution_state=state, session_id="s")

    with pytest.raises(AdapterError, match=f"{begun}.*nests deeper"):
        conversation("s", client)


@pytest.mark.parametrize("framework", FORMS)
def test_messages_in_json_need_no_framework(client: SyncClient, framework: str) -> None:
    client.save("mine", execution_state=WHOLE, session_id="s")
    held = conversation("s", client)
    assert held is not None

    assert messages(held, framework, as_json=True)


def test_messages_of_langchain_are_its_own(client: SyncClient) -> None:
    client.save("mine", execution_state=WHOLE, session_id="s")
    held = conversation("s", client)
    assert held is not None

    found = messages(held, "langgraph")
    assert [type(each).__name__ for each in found] == [
        "HumanMessage",
        "AIMessage",
        "ToolMessage",
        "ToolMessage",
    ]
    with pytest.raises(InvalidArgumentError, match="Conversation is wanted"):
        messages([], "langgraph")  # type: ignore[arg-type]


# Exports


def test_exports_have_every_part_of_its_kind() -> None:
    picture = {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "AAAA"}
    call = {"type": "tool_call", "id": "a", "name": "t", "arguments": "no json"}
    answer = {"type": "tool_call_response", "id": "a", "response": {"n": 1}, "is_error": True}
    held = Conversation.of(
        [
            {"role": "user", "parts": [{"type": "text", "content": "hi"}, picture]},
            {"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}, call]},
            {"role": "tool", "parts": [answer]},
            {"role": "assistant", "parts": [{"type": "text", "content": "done"}]},
        ],
        [{"type": "text", "content": "be brief"}],
    )
    trajectory = to_atif(held, agent={"name": "clerk", "version": "2"})
    spans = to_opentelemetry(held)

    assert trajectory["schema_version"] == "ATIF-v1.7"
    assert [step["step_id"] for step in trajectory["steps"]] == [1, 2, 3, 4]
    assert [s["source"] for s in trajectory["steps"]] == ["system", "user", "agent", "agent"]
    assert trajectory["steps"][1]["message"][1]["source"]["media_type"] == "image/png"
    assert trajectory["steps"][2]["reasoning_content"] == "hm"
    result = trajectory["steps"][2]["observation"]["results"][0]
    assert result["source_call_id"] == trajectory["steps"][2]["tool_calls"][0]["tool_call_id"]
    assert spans["gen_ai.output.messages"][0]["finish_reason"] == "stop"
    assert len(spans["gen_ai.input.messages"]) == 3
    with pytest.raises(InvalidArgumentError, match="no 'colour'"):
        to_atif(held, agent={"colour": "red"})
    with pytest.raises(InvalidArgumentError, match="has a step"):
        to_atif(Conversation())
    with pytest.raises(InvalidArgumentError, match="has no type"):
        to_opentelemetry(Conversation(messages=[{"role": "user", "parts": [{}]}]))
