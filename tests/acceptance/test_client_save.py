"""save and put: what is kept, where it hangs, and that nothing else is."""

import time
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast import (
    Checkpoint,
    CheckpointBuilder,
    CheckpointConflictError,
    CheckpointIntegrityError,
    CheckpointNotFoundError,
    Framework,
    InvalidArgumentError,
    SerializationError,
    SyncClient,
    ids,
)
from holdfast.core.chunk_encoder import encode
from tests.acceptance.conftest import OpenClient

NEVER_SAVED = "01900000-0000-7000-8000-000000000000"


def test_what_was_saved_comes_back(client: SyncClient) -> None:
    state = {"messages": ["hello", ("a", 1)], "seen": {1, 2}, "raw": b"\x00", "none": None}

    saved = client.save("coder", execution_state=state)

    assert client.restore(saved).execution_state == state


def test_everything_that_is_said_of_a_checkpoint_is_kept(client: SyncClient) -> None:
    before = datetime.now(UTC)
    parent = client.save("coder", execution_state={})

    saved = client.save(
        "coder",
        Framework.LANGGRAPH,
        {"step": 3},
        session_id="fix-42",
        parent_id=parent,
        context={"user": "ada"},
        step_index=3,
        step_name="after_tests",
        ttl_seconds=3600,
        branch="main",
        tries=2,
    )

    checkpoint = client.restore(saved)
    assert checkpoint.checkpoint_id == saved
    assert checkpoint.agent_id == "coder"
    assert checkpoint.framework is Framework.LANGGRAPH
    assert checkpoint.session_id == "fix-42"
    assert checkpoint.parent_id == parent
    assert checkpoint.execution_state == {"step": 3}
    assert checkpoint.agent_context == {"user": "ada"}
    assert (checkpoint.step_index, checkpoint.step_name) == (3, "after_tests")
    assert checkpoint.metadata == {"branch": "main", "tries": 2}
    assert checkpoint.ttl_seconds == 3600
    assert before <= checkpoint.created_at <= datetime.now(UTC)
    assert checkpoint.verify_integrity()


def test_little_has_to_be_said(client: SyncClient) -> None:
    checkpoint = client.restore(client.save("coder"))

    assert checkpoint.execution_state is None
    assert checkpoint.agent_context == {}
    assert checkpoint.framework is Framework.CUSTOM
    assert (checkpoint.step_index, checkpoint.step_name) == (0, None)
    assert checkpoint.parent_id is None
    assert checkpoint.metadata == {}


def test_a_framework_may_be_named_by_a_string(client: SyncClient) -> None:
    saved = client.save("coder", "openai_agents", {})

    assert client.restore(saved).framework is Framework.OPENAI_AGENTS


def test_a_state_given_in_place_of_the_framework_is_not_told_in_full(client: SyncClient) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        client.save("coder", {"messages": ["long " * 1000]})  # type: ignore[arg-type]

    assert len(str(caught.value)) < 400


def test_without_a_session_a_new_one_begins_each_time(client: SyncClient) -> None:
    first, second = (client.restore(client.save("coder")) for _ in range(2))

    assert first.session_id != second.session_id
    assert first.parent_id is second.parent_id is None


def test_the_parent_is_the_head_of_the_session(client: SyncClient) -> None:
    saved = [client.save("coder", execution_state=i, session_id="s") for i in range(3)]

    assert [client.restore(i).parent_id for i in saved] == [None, saved[0], saved[1]]


def test_sessions_of_different_agents_with_one_name_are_apart(client: SyncClient) -> None:
    client.save("coder", session_id="s")

    other = client.save("reviewer", session_id="s")

    assert client.restore(other).parent_id is None


def test_a_parent_may_be_named_and_lies_in_any_session(client: SyncClient) -> None:
    first = client.save("coder", session_id="one")
    client.save("coder", session_id="one")

    child = client.save("coder", session_id="two", parent_id=first)

    assert client.restore(child).parent_id == first


def test_a_parent_may_be_named_by_the_beginning_of_its_id(client: SyncClient) -> None:
    parent = client.save("coder")

    child = client.save("coder", parent_id=parent[:23])

    assert client.restore(child).parent_id == parent


@pytest.mark.parametrize("parent", [NEVER_SAVED, NEVER_SAVED[:20], "nothing"])
def test_a_parent_that_is_not_there_is_refused_and_nothing_is_written(
    client: SyncClient, parent: str
) -> None:
    with pytest.raises(CheckpointNotFoundError, match=parent):
        client.save("coder", execution_state={"lost": True}, session_id="s", parent_id=parent)

    assert client.find() == []
    assert client.stats().chunks == 0


def test_ids_and_times_increase_with_every_save(client: SyncClient) -> None:
    saved = [client.save("coder", session_id=str(i % 3)) for i in range(30)]

    assert saved == sorted(set(saved))
    times = [client.restore(i).created_at for i in saved]
    assert times == sorted(set(times))


def test_changing_a_state_after_it_was_saved_changes_nothing_that_is_kept(
    client: SyncClient,
) -> None:
    state: dict[str, Any] = {"log": ["a"]}
    context: dict[str, Any] = {"k": ["v"]}
    saved = client.save("coder", execution_state=state, context=context, tags=["t"])

    state["log"].append("b")
    context["k"].clear()

    checkpoint = client.restore(saved)
    assert checkpoint.execution_state == {"log": ["a"]}
    assert checkpoint.agent_context == {"k": ["v"]}


def test_changing_a_restored_state_changes_nothing_that_is_kept(client: SyncClient) -> None:
    saved = client.save("coder", execution_state={"log": ["a"]}, tags=["t"])
    restored = client.restore(saved)

    restored.execution_state["log"].append("b")
    restored.metadata["tags"].append("u")

    again = client.restore(saved)
    assert again.execution_state == {"log": ["a"]}
    assert again.metadata == {"tags": ["t"]}


def test_a_state_that_goes_on_changing_is_kept_at_every_step(client: SyncClient) -> None:
    state: dict[str, Any] = {"messages": [], "plan": {}}
    expected = []
    for step in range(40):
        state["messages"].append({"role": "user", "content": f"message {step} " * 30})
        state["plan"][str(step % 7)] = "x" * (step * 90 % 1400)
        if step % 9 == 8:
            del state["messages"][:5]
        client.save("coder", execution_state=state, session_id="s", step_index=step)
        expected.append(repr(state))

    timeline = client.timeline("coder", "s", with_state=True)
    assert [repr(checkpoint.execution_state) for checkpoint in reversed(timeline)] == expected


def test_lists_that_only_grow_may_be_saved_as_such(client: SyncClient) -> None:
    messages: list[str] = []
    saved = []
    for step in range(30):
        messages += [f"message {step} {i} " * 20 for i in range(5)]
        state = {"messages": messages, "step": step}
        saved.append(
            client.save("coder", execution_state=state, session_id="s", append_only="messages")
        )

    for step, checkpoint_id in enumerate(saved):
        state = client.restore(checkpoint_id).execution_state
        assert state == {"messages": messages[: (step + 1) * 5], "step": step}


def test_equal_states_have_equal_content_whoever_saved_them(client: SyncClient) -> None:
    state = {"messages": [f"message {i}" * 20 for i in range(100)]}
    client.save("coder", execution_state=state)
    client.save("reviewer", execution_state=state, session_id="s", step_index=9)

    first, second = client.find()

    assert first.content_id == second.content_id
    assert first.checksum != second.checksum


def test_a_state_with_a_ttl_is_there_until_it_ends(client: SyncClient) -> None:
    saved = client.save("coder", session_id="s", ttl_seconds=3600)

    assert client.restore(saved).ttl_seconds == 3600
    assert client.timeline("coder", "s")


def test_a_state_whose_ttl_has_ended_is_nowhere(client: SyncClient) -> None:
    saved = client.save("coder", session_id="s", ttl_seconds=0, tag="t")

    with pytest.raises(CheckpointNotFoundError, match="expired"):
        client.restore(saved)
    assert client.latest("coder", "s") is None
    assert client.timeline("coder", "s") == []
    assert client.find(tags={"tag": "t"}) == []
    assert client.sessions() == []
    assert client.stats().checkpoints == 0


def test_a_built_checkpoint_is_put_as_it_is(client: SyncClient) -> None:
    parent = client.save("coder")
    built = (
        CheckpointBuilder("coder", Framework.CREWAI)
        .session("fix-42")
        .parent(parent)
        .step(3, name="after_tests")
        .execution_state({"messages": ["hello"]})
        .context({"user": "ada"})
        .tasks([{"name": "test", "status": "pending"}])
        .effects([{"call": "bash"}])
        .workspace({"tree": "abc"})
        .tag(branch="main")
        .ttl(3600)
        .handoff("reviewer", schema="review/1")
        .build()
    )

    assert client.put(built) == built.checkpoint_id

    assert client.restore(built.checkpoint_id) == built


def test_a_session_goes_on_from_what_was_put(client: SyncClient) -> None:
    built = CheckpointBuilder("coder").session("s").execution_state([1] * 1000).build()
    client.put(built)

    after = client.save("coder", execution_state=[1] * 1001, session_id="s")

    assert client.restore(after).parent_id == built.checkpoint_id
    assert client.restore(after).execution_state == [1] * 1001


def test_putting_the_same_checkpoint_twice_is_a_conflict(client: SyncClient) -> None:
    built = CheckpointBuilder("coder").execution_state({"a": 1}).build()
    client.put(built)

    with pytest.raises(CheckpointConflictError, match=built.checkpoint_id):
        client.put(built)

    assert client.restore(built.checkpoint_id) == built


@pytest.mark.parametrize(
    "change",
    [
        {"execution_state": {"a": 2}},
        {"agent_id": "other"},
        {"step_index": 7},
        {"metadata": {"new": 1}},
        {"parent_id": None, "session_id": "other"},
        {"checksum": "0" * 64},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_checkpoint_that_was_altered_after_it_was_built_is_refused(
    client: SyncClient, change: dict[str, Any]
) -> None:
    built = CheckpointBuilder("coder").execution_state({"a": 1}).build()

    with pytest.raises(CheckpointIntegrityError, match="build it again"):
        client.put(replace(built, **change))

    assert client.find() == []


def test_a_built_checkpoint_needs_its_parent(client: SyncClient) -> None:
    built = CheckpointBuilder("coder").parent(NEVER_SAVED).build()

    with pytest.raises(CheckpointNotFoundError, match=NEVER_SAVED):
        client.put(built)

    assert client.find() == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("agent_id", 5),
        ("agent_id", ""),
        ("session_id", "\ud800"),
        ("checkpoint_id", b"id"),
        ("parent_id", ["p"]),
        ("step_index", "1"),
        ("step_index", -1),
        ("step_name", 3),
        ("created_at", datetime(2024, 1, 1)),
        ("created_at", "2024-01-01"),
        ("ttl_seconds", "soon"),
        ("ttl_seconds", float("nan")),
        ("metadata", None),
        ("handoff_target", 1),
        ("framework", "custom"),
    ],
)
def test_a_checkpoint_of_the_wrong_shape_is_refused(
    client: SyncClient, field: str, value: Any
) -> None:
    built = CheckpointBuilder("coder").build()

    with pytest.raises(InvalidArgumentError, match=field):
        client.put(replace(built, **{field: value}))

    assert client.find() == []


def test_anything_but_a_checkpoint_is_not_put(client: SyncClient) -> None:
    with pytest.raises(InvalidArgumentError, match="takes a Checkpoint, not dict"):
        client.put({"checkpoint_id": "x"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "checkpoint_id", ["my-checkpoint", "0123456789abcdef0123456789abcdef", "deadbeefcafe", "étape"]
)
def test_a_checkpoint_may_have_an_id_of_its_own(client: SyncClient, checkpoint_id: str) -> None:
    built = CheckpointBuilder("coder").session("s").execution_state({"a": 1}).build()
    info = built.info("", 0)
    content = client.restore(client.put(built))
    own = Checkpoint.from_parts(replace(info, checkpoint_id=checkpoint_id), content.payload())
    sealed = replace(own, checksum=sealed_checksum(own))

    client.put(sealed)

    assert client.restore(checkpoint_id) == sealed
    assert client.restore(client.save("coder", parent_id=checkpoint_id)).parent_id == checkpoint_id
    assert client.expire(checkpoint_id)


def sealed_checksum(checkpoint: Checkpoint) -> str:
    encoded = encode(checkpoint.payload())
    return checkpoint.info(encoded.root.hex(), encoded.size).with_().checksum


def test_a_checkpoint_as_plain_data_is_put_again_elsewhere(client: SyncClient) -> None:
    built = CheckpointBuilder("coder").execution_state({"a": (1, 2)}).tag(k="v").build()

    client.put(Checkpoint.from_dict(built.as_dict()))

    assert client.restore(built.checkpoint_id) == built


class Name(StrEnum):
    CODER = "coder"
    PLAN = "plan"


def test_names_from_an_enum_are_names(client: SyncClient) -> None:
    saved = client.save(Name.CODER, session_id=Name.PLAN, step_name=Name.PLAN)

    checkpoint = client.restore(saved)
    assert (checkpoint.agent_id, checkpoint.session_id, checkpoint.step_name) == (
        "coder",
        "plan",
        "plan",
    )
    assert client.timeline("coder", "plan")


def test_a_value_that_cannot_be_kept_is_refused_with_its_path_and_nothing_is_written(
    client: SyncClient,
) -> None:
    with pytest.raises(SerializationError, match=r"\$\.tools\[1\]\.run"):
        client.save("coder", execution_state={"tools": [1, {"run": lambda: None}]}, session_id="s")

    assert client.find() == []
    assert client.stats().chunks == 0


def test_the_newest_is_the_one_saved_last_also_when_a_clock_was_set_back(
    open_client: OpenClient, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if url.startswith("memory"):
        return
    open_client(url).save("coder", execution_state={"saved": "first"}, session_id="s")
    an_hour_ago = time.time_ns() - 3600 * 10**9
    with monkeypatch.context() as patch:
        patch.setattr(ids, "_clock", ids._Clock())
        patch.setattr(ids, "time", SimpleNamespace(time_ns=lambda: an_hour_ago))
        other = open_client(url)
        other.save("coder", execution_state={"saved": "last"}, session_id="s")

    newest = other.latest("coder", "s")

    assert newest is not None
    assert newest.execution_state == {"saved": "last"}
    assert newest.verify_integrity()
