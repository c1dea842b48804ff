"""fork and handoff: a new branch at any checkpoint, an offer to another agent."""

import pytest

from holdfast import (
    CheckpointNotFoundError,
    Framework,
    InvalidArgumentError,
    SyncClient,
)

NEVER_SAVED = "01900000-0000-7000-8000-000000000000"
STATE = {"messages": [f"message {i} " * 20 for i in range(200)], "plan": {"done": (1, 2)}}


def test_a_fork_is_a_new_session_rooted_at_the_checkpoint(client: SyncClient) -> None:
    saved = client.save("coder", Framework.STRANDS, STATE, session_id="s", step_index=4, tag="t")

    forked = client.fork(saved, session_id="try-2")

    checkpoint = client.restore(forked)
    assert checkpoint.parent_id == saved
    assert (checkpoint.agent_id, checkpoint.session_id) == ("coder", "try-2")
    assert checkpoint.framework is Framework.STRANDS
    assert checkpoint.step_index == 4
    assert checkpoint.metadata == {"tag": "t"}
    assert checkpoint.execution_state == STATE
    assert checkpoint.verify_integrity()


def test_a_fork_without_a_name_is_a_session_of_its_own(client: SyncClient) -> None:
    saved = client.save("coder", session_id="s")

    first, second = (client.restore(client.fork(saved)) for _ in range(2))

    assert len({"s", first.session_id, second.session_id}) == 3


def test_an_unedited_fork_shares_everything(client: SyncClient) -> None:
    saved = client.save("coder", execution_state=STATE, context={"user": "ada"})
    before = client.stats()

    forked = client.fork(saved)

    after = client.stats()
    assert after.chunks == before.chunks
    assert after.checkpoints == before.checkpoints + 1
    if client.store.shares_chunks:
        assert after.stored_bytes == before.stored_bytes
    infos = {info.checkpoint_id: info for info in client.find()}
    assert infos[forked].content_id == infos[saved].content_id
    assert client.restore(forked).agent_context == {"user": "ada"}


def test_a_fork_may_begin_with_another_state_or_context(client: SyncClient) -> None:
    saved = client.save("coder", execution_state={"a": 1}, context={"k": "v"})

    edited = client.restore(client.fork(saved, execution_state={"a": 2}))
    told = client.restore(client.fork(saved, context={"k": "w"}))

    assert (edited.execution_state, edited.agent_context) == ({"a": 2}, {"k": "v"})
    assert (told.execution_state, told.agent_context) == ({"a": 1}, {"k": "w"})


def test_an_edited_fork_keeps_only_what_differs(client: SyncClient) -> None:
    if not client.store.shares_chunks:
        return
    saved = client.save("coder", execution_state=STATE)
    before = client.stats()

    client.fork(saved, execution_state={**STATE, "plan": {"done": (1, 2, 3)}})

    grown = client.stats().stored_bytes - before.stored_bytes
    assert 0 < grown < before.stored_bytes / 3


def test_forks_go_on_apart(client: SyncClient) -> None:
    saved = client.save("coder", execution_state={"a": 1}, session_id="s")
    fork = client.fork(saved, session_id="fork")
    client.save("coder", execution_state={"a": "fork"}, session_id="fork")
    client.save("coder", execution_state={"a": "main"}, session_id="s")

    latest = {name: client.latest("coder", name) for name in ("s", "fork")}

    assert {name: c.execution_state["a"] for name, c in latest.items() if c} == {
        "s": "main",
        "fork": "fork",
    }
    assert [i.checkpoint_id for i in client.timeline("coder", "fork")][-1] == fork


def test_any_checkpoint_may_be_forked_also_an_old_one_and_a_fork(client: SyncClient) -> None:
    saved = [client.save("coder", execution_state={"i": i}, session_id="s") for i in range(4)]

    fork = client.fork(client.fork(saved[0]))

    assert client.restore(fork).execution_state == {"i": 0}


def test_a_fork_into_a_session_that_has_checkpoints_is_refused(client: SyncClient) -> None:
    saved = client.save("coder", session_id="s")
    client.save("coder", session_id="taken")

    with pytest.raises(InvalidArgumentError, match=r"'taken'.*fork into a new one"):
        client.fork(saved, session_id="taken")

    assert len(client.find()) == 2


def test_what_is_not_there_cannot_be_forked(client: SyncClient) -> None:
    with pytest.raises(CheckpointNotFoundError, match=NEVER_SAVED):
        client.fork(NEVER_SAVED)
    expired = client.save("coder", ttl_seconds=0)
    with pytest.raises(CheckpointNotFoundError, match=expired):
        client.fork(expired)


def test_a_fork_of_a_checkpoint_with_a_ttl_lives_as_long_from_now_on(client: SyncClient) -> None:
    saved = client.save("coder", ttl_seconds=3600)

    fork = client.restore(client.fork(saved))

    assert fork.ttl_seconds == 3600


def test_a_rollback_is_a_new_checkpoint_whose_parent_is_the_target(client: SyncClient) -> None:
    saved = [client.save("coder", execution_state={"i": i}, session_id="s") for i in range(3)]

    back = client.save(
        "coder",
        execution_state=client.restore(saved[0]).execution_state,
        session_id="s",
        parent_id=saved[0],
    )

    latest = client.latest("coder", "s")
    assert latest is not None
    assert (latest.checkpoint_id, latest.parent_id) == (back, saved[0])
    assert client.restore(saved[2]).execution_state == {"i": 2}


def test_a_handoff_offers_a_checkpoint_to_another_agent(client: SyncClient) -> None:
    saved = client.save("coder", execution_state=STATE, session_id="s", step_index=2, tag="t")

    offered = client.handoff(saved, "reviewer", contract="review/1")

    checkpoint = client.restore(offered)
    assert checkpoint.handoff_target == "reviewer"
    assert checkpoint.handoff_schema == "review/1"
    assert checkpoint.parent_id == saved
    assert (checkpoint.agent_id, checkpoint.session_id) == ("coder", "s")
    assert (checkpoint.step_index, checkpoint.step_name) == (3, "handoff_to_reviewer")
    assert checkpoint.execution_state == STATE
    assert checkpoint.metadata == {"tag": "t"}
    assert [i.checkpoint_id for i in client.find(handoff_target="reviewer")] == [offered]


def test_a_session_goes_on_after_a_handoff(client: SyncClient) -> None:
    offered = client.handoff(client.save("coder", session_id="s"), "reviewer")

    after = client.save("coder", session_id="s")

    assert client.restore(after).parent_id == offered


@pytest.mark.parametrize("target", ["", "  ", 5, None])
def test_a_handoff_needs_a_name(client: SyncClient, target: str) -> None:
    saved = client.save("coder")

    with pytest.raises(InvalidArgumentError, match="target_agent_id"):
        client.handoff(saved, target)

    assert len(client.find()) == 1


def test_what_is_not_there_cannot_be_handed_off(client: SyncClient) -> None:
    with pytest.raises(CheckpointNotFoundError):
        client.handoff(NEVER_SAVED, "reviewer")
