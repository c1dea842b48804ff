"""HoldfastConversationStore does what Pydantic AI's own store does, and keeps every save."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
    InMemoryConversationStore,
)
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    BinaryImage,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.usage import RunUsage

from holdfast import SyncClient
from holdfast.adapters.pydantic_ai import HoldfastConversationStore
from holdfast.errors import AdapterError, InvalidArgumentError


@pytest.fixture(params=["theirs", "memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ConversationStore]:
    """The store of Pydantic AI's itself, which shows what is right, and ours."""
    if request.param == "theirs":
        yield InMemoryConversationStore()
        return
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'store.db'}"
    async with HoldfastConversationStore(url=url) as ours:
        yield ours


@pytest.fixture
async def ours(tmp_path: Path) -> AsyncIterator[HoldfastConversationStore]:
    async with HoldfastConversationStore(url=f"sqlite:///{tmp_path / 'store.db'}") as ours:
        yield ours


def said(text: str) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(text)])


def answered(text: str) -> ModelResponse:
    return ModelResponse(parts=[TextPart(text)])


def turn(number: int) -> list[ModelMessage]:
    return [said(f"question {number}"), answered(f"answer {number}")]


async def saved(store: ConversationStore, turns: int = 1, name: str = "ada") -> Conversation:
    conversation = Conversation(conversation_id=name)
    for number in range(turns):
        conversation.messages += turn(number)
        await store.save(conversation)
    return conversation


async def loaded(store: ConversationStore, name: str = "ada", **options: Any) -> Conversation:
    found = await store.load(name, **options)
    assert found is not None
    return found


async def test_what_was_saved_is_loaded(store: ConversationStore) -> None:
    image = BinaryImage(b"\xff\xfb\xfe", media_type="image/png")
    conversation = Conversation(
        conversation_id="ada",
        messages=[ModelRequest(parts=[UserPromptPart(["Größe?", image])]), answered("12 m")],
        usage=RunUsage(requests=1, input_tokens=7),
    )
    entries = await store.save(conversation, scope="user-1")
    again = await loaded(store)
    assert again == conversation
    assert again.revision == conversation.revision
    assert [entry.message for entry in entries] == conversation.messages
    found = await store.load_entries("ada")
    assert found == entries


async def test_a_conversation_that_is_not_there_is_none(store: ConversationStore) -> None:
    assert await store.load("nobody") is None
    assert await store.load_entries("nobody") is None
    await store.delete("nobody")
    with pytest.raises(UserError):
        await store.fork("nobody")


async def test_only_what_is_new_is_added(store: ConversationStore) -> None:
    conversation = await saved(store, 2)
    assert await store.save(conversation) == []
    conversation.messages += turn(2)
    assert len(await store.save(conversation)) == 2
    assert len((await loaded(store)).messages) == 6


async def test_who_saves_over_another_is_told(store: ConversationStore) -> None:
    await saved(store)
    mine, theirs = await loaded(store), await loaded(store)
    mine.messages += turn(1)
    theirs.messages += turn(2)
    await store.save(mine)
    with pytest.raises(ConversationConflict) as told:
        await store.save(theirs)
    assert told.value.conversation_id == "ada"
    assert (await loaded(store)).messages == mine.messages
    with pytest.raises(ConversationConflict):  # one that was never loaded
        await store.save(Conversation(conversation_id="ada", messages=turn(3)))


async def test_of_many_who_save_at_once_one_does(store: ConversationStore) -> None:
    await saved(store)
    copies = [await loaded(store) for _ in range(8)]
    for number, copy in enumerate(copies):
        copy.messages += turn(number)
    done = await asyncio.gather(*map(store.save, copies), return_exceptions=True)
    assert sum(isinstance(each, list) for each in done) == 1
    assert sum(isinstance(each, ConversationConflict) for each in done) == 7
    assert len((await loaded(store)).messages) == 4


async def test_a_rewritten_history_leaves_a_branch(store: ConversationStore) -> None:
    conversation = await saved(store, 2)
    rewritten = Conversation(
        conversation_id="ada",
        messages=[*conversation.messages[:2], said("another"), answered("other")],
        revision=conversation.revision,
    )
    await store.save(rewritten)
    record = await store.read_record("ada")
    assert record is not None
    assert len(record.branches) == 1
    left = await store.read_history(record.branches[0])
    assert [entry.message for entry in left] == conversation.messages
    assert (await loaded(store)).messages == rewritten.messages


async def test_branching_goes_back_and_leads_back(store: ConversationStore) -> None:
    conversation = await saved(store, 3)
    entries = await store.load_entries("ada")
    assert entries is not None
    branched = await store.branch("ada", at=2, expected_revision=conversation.revision)
    assert branched.messages == conversation.messages[:2]
    branched.messages += turn(9)
    await store.save(branched)
    assert (await loaded(store)).messages == [*conversation.messages[:2], *branched.messages[2:]]
    back = await store.branch("ada", from_entry=entries[-1].id, expected_revision=branched.revision)
    assert back.messages == conversation.messages
    record = await store.read_record("ada")
    assert record is not None
    assert len(record.branches) == 1
    with pytest.raises(ConversationConflict):
        await store.branch("ada", at=0, expected_revision=conversation.revision)
    with pytest.raises(UserError):
        await store.branch("ada", at=99, expected_revision=back.revision)
    with pytest.raises(UserError):
        await store.branch("ada", from_entry="nothing", expected_revision=back.revision)


async def test_a_fork_goes_its_own_way(store: ConversationStore) -> None:
    conversation = await saved(store, 2)
    fork = await store.fork("ada", at=2, new_conversation_id="ada-2")
    assert fork.messages == conversation.messages[:2]
    assert fork.conversation_id == "ada-2"
    fork.messages += turn(7)
    await store.save(fork)
    assert (await loaded(store, "ada-2")).messages == fork.messages
    assert (await loaded(store)).messages == conversation.messages
    record = await store.read_record("ada-2")
    assert record is not None
    assert record.forked_from == "ada"
    with pytest.raises(ConversationConflict):
        await store.fork("ada", new_conversation_id="ada-2")
    whole = await store.fork("ada")
    assert whole.messages == conversation.messages
    empty = await store.fork("ada", at=0, new_conversation_id="empty")
    assert empty.messages == []
    assert (await loaded(store, "empty")).messages == []


async def test_a_fork_outlives_what_it_was_forked_from(store: ConversationStore) -> None:
    conversation = await saved(store, 2)
    await store.fork("ada", new_conversation_id="ada-2")
    await store.delete("ada")
    assert await store.load("ada") is None
    assert (await loaded(store, "ada-2")).messages == conversation.messages


async def test_what_was_deleted_is_gone_and_may_be_begun_anew(store: ConversationStore) -> None:
    conversation = await saved(store, 2)
    (first, *_) = await store.load_entries("ada") or []
    assert (await store.read_entry(first.id)).message == conversation.messages[0]
    await store.delete("ada")
    assert await store.list_conversations() == []
    with pytest.raises(LookupError):
        await store.read_entry(first.id)
    with pytest.raises(ConversationConflict):
        await store.save(conversation)
    with pytest.raises(ConversationConflict):
        await store.delete_record("ada", expected_revision=conversation.revision or "")
    await saved(store)
    assert len((await loaded(store)).messages) == 2


async def test_a_scope_keeps_others_out(store: ConversationStore) -> None:
    for number, scope in enumerate(["a", "b", "a"]):
        conversation = Conversation(conversation_id=f"c{number}", messages=turn(number))
        await store.save(conversation, scope=scope)
    found = await store.list_conversations(scope="a")
    assert [record.conversation_id for record in found] == ["c2", "c0"]
    assert [record.conversation_id for record in await store.list_conversations(limit=2)] == [
        "c2",
        "c1",
    ]
    assert await store.list_conversations(limit=0) == []
    assert await store.load("c1", scope="a") is None
    await store.delete("c1", scope="a")
    assert await store.load("c1", scope="b") is not None
    with pytest.raises(UserError):
        await store.list_conversations(limit=-1)


async def test_the_last_messages_alone_are_loaded_and_added_to(store: ConversationStore) -> None:
    conversation = await saved(store, 3)
    window = await loaded(store, limit=2)
    assert window.messages == conversation.messages[-2:]
    window.messages += turn(3)
    await store.save(window)
    assert len((await loaded(store)).messages) == 8
    assert (await loaded(store, limit=0)).messages == []


async def test_a_head_that_nobody_has_is_a_conflict(store: ConversationStore) -> None:
    record = ConversationRecord(conversation_id="ada", head_id="gone")
    with pytest.raises(ConversationConflict):
        await store.write_record(record, expected_revision=None)
    entry = ConversationEntry(id="one", parent_id=None, message=said("hello"))
    record = ConversationRecord(conversation_id="ada", head_id="one")
    await store.write_record(record, new_entries=[entry], expected_revision=None)
    assert await store.read_history("one") == [entry]
    with pytest.raises(LookupError):
        await store.read_history("two")
    assert await store.read_history(None) == []


async def test_what_is_kept_is_a_copy(store: ConversationStore) -> None:
    conversation = await saved(store)
    conversation.messages[0].parts[0].content = "changed"
    again = await loaded(store)
    assert again.messages[0].parts[0].content == "question 0"


async def test_calls_that_wait_are_kept(store: ConversationStore) -> None:
    call = ToolCallPart("send", {"to": "bob"}, "call_1")
    conversation = Conversation(
        conversation_id="ada",
        messages=[said("mail bob"), ModelResponse(parts=[call])],
        deferred_tool_requests=DeferredToolRequests(
            approvals=[call], metadata={"call_1": {"why": "new"}}
        ),
    )
    await store.save(conversation)
    again = await loaded(store)
    assert again.deferred_tool_requests == conversation.deferred_tool_requests


async def test_runs_are_loaded_and_saved_around(store: ConversationStore) -> None:
    def answers(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return answered(f"after {len(messages)}")

    agent = Agent(FunctionModel(answers))
    result = None
    for number in range(3):
        conversation = await store.load("ada") or Conversation(conversation_id="ada")
        result = await agent.run(f"turn {number}", conversation=conversation)
        await store.save(result)
    assert result is not None
    assert result.output == "after 5"
    again = await loaded(store)
    assert again.messages == result.all_messages()
    assert again.usage.requests == 3


# What only ours does


async def test_every_save_is_a_checkpoint_and_a_fork_has_its_parent(
    ours: HoldfastConversationStore,
) -> None:
    await saved(ours, 2)
    steps = ours.client.timeline("pydantic_ai", "ada")
    assert [step.step_name for step in steps] == ["turn", "turn"]
    await ours.fork("ada", new_conversation_id="ada-2")
    (root,) = ours.client.timeline("pydantic_ai", "ada-2")
    assert root.parent_id == steps[0].checkpoint_id
    assert "$.entries[3]" in str(ours.client.diff(steps[1].checkpoint_id, steps[0].checkpoint_id))


async def test_a_rollback_and_a_fork_of_the_client_are_seen(
    ours: HoldfastConversationStore,
) -> None:
    conversation = await saved(ours, 3)
    with ours.client.session("pydantic_ai", "ada") as run:
        run.rollback(steps=1)
    back = await loaded(ours)
    assert back.messages == conversation.messages[:4]
    conversation.messages += turn(5)
    with pytest.raises(ConversationConflict):
        await ours.save(conversation)
    back.messages += turn(6)
    await ours.save(back)
    first = ours.client.timeline("pydantic_ai", "ada")[-1].checkpoint_id
    ours.client.fork(first, session_id="elsewhere")
    forked = await loaded(ours, "elsewhere")
    assert (forked.conversation_id, len(forked.messages)) == ("elsewhere", 2)
    forked.messages += turn(8)
    await ours.save(forked)


async def test_a_save_costs_what_it_adds(ours: HoldfastConversationStore) -> None:
    conversation = Conversation(conversation_id="ada")
    sizes = []
    for number in range(60):
        conversation.messages += [said(f"{number} " + "x" * 2000), answered(str(number))]
        await ours.save(conversation)
        sizes.append(ours.client.stats().stored_bytes)
    assert sizes[-1] - sizes[-11] < 3 * (sizes[10] - sizes[0])


async def test_what_is_no_stored_conversation_is_named(ours: HoldfastConversationStore) -> None:
    ours.client.save("pydantic_ai", "pydantic_ai", {"messages": []}, session_id="other")
    with pytest.raises(AdapterError, match="'other' holds no stored conversation"):
        await ours.load("other")
    assert await ours.list_conversations() == []
    ours.client.save("pydantic_ai", "strands", {"messages": []}, session_id="foreign")
    with pytest.raises(AdapterError, match="is of strands"):
        await ours.load("foreign")
    with pytest.raises(InvalidArgumentError, match="session_id is empty"):
        await ours.load(" ")
    with pytest.raises(InvalidArgumentError, match="not both"):
        HoldfastConversationStore(SyncClient.memory(), url="memory://")


async def test_a_store_that_fails_is_seen(tmp_path: Path) -> None:
    from holdfast.errors import StoreClosedError

    store = HoldfastConversationStore(url=f"sqlite:///{tmp_path / 's.db'}")
    conversation = await saved(store)
    await store.aclose()
    conversation.messages += turn(1)
    with pytest.raises(StoreClosedError):
        await store.save(conversation)
