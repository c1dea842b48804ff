"""prune: what a policy keeps, and what hangs on that."""

import inspect
from dataclasses import fields
from datetime import timedelta
from typing import Any

import pytest

from holdfast import CheckpointNotFoundError, InvalidArgumentError, Keep, SyncClient

KEEP_NOTHING = Keep(last=0)


def save_steps(client: SyncClient, count: int, session_id: str = "s", **metadata: Any) -> list[str]:
    return [
        client.save("coder", execution_state={"i": i}, session_id=session_id, **metadata)
        for i in range(count)
    ]


def left(client: SyncClient) -> set[str]:
    return {info.checkpoint_id for info in client.find(limit=None)}


def test_the_newest_of_each_session_are_kept(client: SyncClient) -> None:
    one, two = save_steps(client, 4, "one"), save_steps(client, 3, "two")

    pruned = client.prune(last=2)

    assert left(client) == {*one[-2:], *two[-2:]}
    assert {info.checkpoint_id for info in pruned.removed} == {*one[:2], *two[:1]}
    assert (len(pruned), pruned.kept, pruned.dry_run) == (3, 4, False)


def test_what_was_removed_is_gone_and_what_is_left_is_whole(client: SyncClient) -> None:
    saved = save_steps(client, 4)

    client.prune(Keep(last=2))

    with pytest.raises(CheckpointNotFoundError):
        client.restore(saved[0])
    assert client.restore(saved[2]).execution_state == {"i": 2}
    assert client.verify().ok
    client.gc(grace_seconds=0)
    assert client.restore(saved[3]).execution_state == {"i": 3}


@pytest.mark.parametrize("within", [3600, timedelta(hours=1), 0.0])
def test_the_young_are_kept(client: SyncClient, within: timedelta | float) -> None:
    saved = save_steps(client, 3)

    client.prune(within=within)

    assert left(client) == (set(saved) if within else set())


def test_those_with_a_step_name_are_kept(client: SyncClient) -> None:
    save_steps(client, 2)
    named = save_steps(client, 1, step_name="after_tests")
    save_steps(client, 1)

    client.prune(named=True)

    assert left(client) == set(named)


@pytest.mark.parametrize("names", ["release", ["release", "milestone"], {"release"}])
def test_those_with_certain_step_names_are_kept(client: SyncClient, names: Any) -> None:
    save_steps(client, 1, step_name="other")
    named = save_steps(client, 1, step_name="release")

    client.prune(named=names)

    assert left(client) == set(named)


def test_those_with_certain_tags_are_kept(client: SyncClient) -> None:
    tagged = save_steps(client, 1, keep=True, why="a")
    save_steps(client, 1, keep=True)
    save_steps(client, 1, keep=1, why="a")

    client.prune(tags={"keep": True, "why": "a"})

    assert left(client) == set(tagged)


def test_what_any_rule_keeps_is_kept(client: SyncClient) -> None:
    named = save_steps(client, 1, step_name="release")
    tagged = save_steps(client, 1, keep=True)
    save_steps(client, 2)
    last = save_steps(client, 1)

    client.prune(last=1, named=True, tags={"keep": True})

    assert left(client) == {*named, *tagged, *last}


def test_other_agents_and_sessions_are_left_alone(client: SyncClient) -> None:
    save_steps(client, 2, "s")
    others = save_steps(client, 2, "t")
    foreign = client.save("reviewer", session_id="s")

    client.prune(Keep(last=0, agent_id="coder", session_id="s"))

    assert left(client) == {*others, foreign}


def test_a_dry_run_tells_and_removes_nothing(client: SyncClient) -> None:
    saved = save_steps(client, 3)

    pruned = client.prune(last=1, dry_run=True)

    assert {info.checkpoint_id for info in pruned.removed} == set(saved[:2])
    assert (pruned.kept, pruned.dry_run) == (1, True)
    assert left(client) == set(saved)


def test_the_checkpoint_a_kept_session_was_forked_from_is_kept(client: SyncClient) -> None:
    saved = save_steps(client, 4)
    fork = client.fork(saved[1], session_id="fork")
    deeper = client.fork(fork, session_id="deeper")

    client.prune(last=1)

    assert left(client) == {saved[1], saved[3], fork, deeper}


def test_a_fork_in_a_session_that_is_left_alone_keeps_what_it_was_forked_from(
    client: SyncClient,
) -> None:
    saved = save_steps(client, 3)
    fork = client.fork(saved[0], session_id="fork")

    client.prune(Keep(last=1, session_id="s"))

    assert left(client) == {saved[0], saved[2], fork}


def test_a_fork_that_is_removed_keeps_nothing(client: SyncClient) -> None:
    saved = save_steps(client, 2)
    client.fork(saved[0], session_id="fork")

    client.prune(KEEP_NOTHING)

    assert left(client) == set()


def test_a_handoff_is_kept_with_the_checkpoint_it_offers(client: SyncClient) -> None:
    saved = save_steps(client, 3)
    offered = client.handoff(saved[1], "reviewer")
    save_steps(client, 2)

    client.prune(KEEP_NOTHING)

    assert left(client) == {saved[1], offered}


def test_a_session_whose_head_was_removed_goes_on(client: SyncClient) -> None:
    save_steps(client, 3)
    client.prune(KEEP_NOTHING)

    (after,) = save_steps(client, 1)

    assert client.restore(after).parent_id is None
    assert client.restore(after).execution_state == {"i": 0}


def test_a_session_whose_history_was_removed_goes_on_from_its_head(client: SyncClient) -> None:
    saved = save_steps(client, 3)
    client.prune(last=1)

    (after,) = save_steps(client, 1)

    assert client.restore(after).parent_id == saved[-1]
    assert [info.checkpoint_id for info in client.ancestors(after)] == [saved[-1]]


def save_parts(client: SyncClient, *parts: Any, session_id: str = "s") -> list[str]:
    """Steps that continue these parts of the state from the step before."""
    return [client.save("coder", session_id=session_id, builds_on=names) for names in parts]


@pytest.mark.parametrize("tag", [None, "a", {"a": 1}, [1, None], True])
def test_a_tag_that_is_no_list_of_names_needs_nothing(client: SyncClient, tag: Any) -> None:
    saved = save_parts(client, [], tag)

    client.prune(last=1)
    assert left(client) == {saved[1]}


def test_what_a_kept_checkpoint_builds_on_is_kept(client: SyncClient) -> None:
    saved = save_parts(client, ["a"], [], ["a"], ["a"], ["a"])

    pruned = client.prune(last=1)

    assert left(client) == {*saved[1:]}
    assert [info.checkpoint_id for info in pruned.removed] == [saved[0]]


def test_what_is_kept_for_others_is_whole_too(client: SyncClient) -> None:
    saved = save_parts(client, [], [], ["b"], ["a"])

    client.prune(last=1)

    assert left(client) == {*saved[1:]}


def test_a_fork_of_a_checkpoint_that_builds_on_others_keeps_them(client: SyncClient) -> None:
    saved = save_parts(client, [], [], ["a"], [])
    fork = client.fork(saved[2])

    client.prune(last=1, session_id="s")

    assert left(client) == {*saved[1:], fork}


def test_a_checkpoint_that_builds_on_what_is_gone_is_kept_without_it(client: SyncClient) -> None:
    saved = save_parts(client, [], ["a"], ["a"])
    client.expire(saved[1])

    client.prune(last=1)

    assert left(client) == {saved[2]}


@pytest.mark.parametrize(
    ("rules", "complaint"),
    [
        ({}, "would remove everything"),
        ({"agent_id": "coder"}, "would remove everything"),
        ({"named": False}, "would remove everything"),
        ({"last": -1}, "last is a number from 0"),
        ({"last": True}, "last is a number from 0"),
        ({"last": "3"}, "last is a number from 0"),
        ({"last": 1.5}, "last is a number from 0"),
        ({"within": -1}, "within is an age from 0"),
        ({"within": "a day"}, "within is a timedelta"),
        ({"within": float("inf")}, "within is a timedelta"),
        ({"last": 1, "tags": 5}, "tags"),
        ({"last": 1, "agent_id": 5}, "agent_id"),
    ],
    ids=str,
)
def test_a_policy_that_makes_no_sense_is_refused_and_nothing_is_removed(
    client: SyncClient, rules: dict[str, Any], complaint: str
) -> None:
    saved = save_steps(client, 2)

    with pytest.raises(InvalidArgumentError, match=complaint):
        client.prune(**rules)

    assert left(client) == set(saved)


def test_the_rules_of_prune_are_those_of_a_policy() -> None:
    rules = inspect.signature(SyncClient.prune).parameters.keys()

    assert rules - {"self", "policy", "dry_run", "progress"} == {
        field.name for field in fields(Keep)
    }


def test_a_policy_and_rules_together_are_refused(client: SyncClient) -> None:
    with pytest.raises(InvalidArgumentError, match="not both"):
        client.prune(Keep(last=1), last=2)
    with pytest.raises(InvalidArgumentError, match="Keep policy, not dict"):
        client.prune({"last": 1})  # type: ignore[arg-type]
