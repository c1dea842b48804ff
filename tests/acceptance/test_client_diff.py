"""diff: what changed between two checkpoints, by path."""

from collections.abc import Collection
from typing import Any

import pytest

from holdfast import CheckpointNotFoundError, SyncClient

NEVER_SAVED = "01900000-0000-7000-8000-000000000000"


def diff_of(client: SyncClient, old: Any, new: Any) -> Any:
    return client.diff(
        client.save("coder", execution_state=old), client.save("coder", execution_state=new)
    )


def test_a_diff_says_what_was_added_removed_and_changed(client: SyncClient) -> None:
    diff = diff_of(
        client,
        {"step": 1, "old": "x", "log": ["a", "b"], "plan": {"status": "open", "n": 1}},
        {"step": 2, "new": "y", "log": ["a", "b", "c"], "plan": {"status": "done", "n": 1}},
    )

    assert dict(diff.added) == {"$.new": "y", "$.log[2]": "c"}
    assert dict(diff.removed) == {"$.old": "x"}
    assert dict(diff.changed) == {"$.step": (1, 2), "$.plan.status": ("open", "done")}


def test_a_diff_reads_well(client: SyncClient) -> None:
    diff = diff_of(client, {"step": 1, "log": ["a"]}, {"step": 2, "log": ["a", "b"]})

    assert str(diff) == "~ $.step: 1 -> 2\n+ $.log[1]: 'b'"


def test_equal_states_do_not_differ(client: SyncClient) -> None:
    diff = diff_of(client, {"a": [1, 2]}, {"a": [1, 2]})

    assert not diff
    assert str(diff) == "no changes"


def test_contexts_are_compared_too(client: SyncClient) -> None:
    first = client.save("coder", execution_state={}, context={"user": "ada"})
    second = client.save("coder", execution_state={}, context={"user": "bob"})

    assert dict(client.diff(first, second).changed) == {"context.user": ("ada", "bob")}


def test_a_long_list_is_compared_by_what_differs(client: SyncClient) -> None:
    old = {"messages": [f"message {i} " * 20 for i in range(1000)]}
    new = {"messages": [*old["messages"], "one more"]}
    new["messages"][500] = "edited"

    diff = diff_of(client, old, new)

    assert dict(diff.added) == {"$.messages[1000]": "one more"}
    assert dict(diff.changed) == {"$.messages[500]": (old["messages"][500], "edited")}
    assert not diff.removed


def test_a_diff_of_little_reads_little(client: SyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    if not client.store.shares_chunks:
        return
    state: dict[str, Any] = {"messages": [f"message {i} " * 20 for i in range(5000)], "step": 1}
    first = client.save("coder", execution_state=state, session_id="s")
    state["messages"].append("one more")
    second = client.save("coder", execution_state=state, session_id="s")
    fetched: list[bytes] = []
    fetch = client.store.fetch

    def counting(names: Collection[bytes]) -> dict[bytes, bytes]:
        fetched.extend(names)
        return fetch(names)

    monkeypatch.setattr(client.store, "load", None)
    monkeypatch.setattr(client.store, "fetch", counting)

    diff = client.diff(first, second)

    assert dict(diff.added) == {"$.messages[5000]": "one more"}
    assert len(fetched) < client.stats().chunks / 5


def test_checkpoints_of_different_agents_may_be_compared(client: SyncClient) -> None:
    first = client.save("coder", execution_state={"a": 1})
    second = client.save("reviewer", execution_state={"a": 2})

    assert client.diff(first, second).changed["a"] == (1, 2)


def test_what_is_not_there_cannot_be_compared(client: SyncClient) -> None:
    saved = client.save("coder")

    for pair in ((saved, NEVER_SAVED), (NEVER_SAVED, saved)):
        with pytest.raises(CheckpointNotFoundError, match=NEVER_SAVED):
            client.diff(*pair)


LARGE: dict[str, Any] = {
    "text": "line\n" * 4000,
    "bytes": b"\x00\xff" * 9000,
    "tuple": ("line\n" * 4000, 1),
    "set": {f"element {n}" for n in range(2000)},
    "by number": {n: f"value {n}" for n in range(2000)},
    "by name": {f"k{n}": f"value {n}" for n in range(2000)},
    "list": [f"element {n}" for n in range(2000)],
    "number": 10**9000,
}


@pytest.mark.parametrize("kind", LARGE)
def test_a_large_value_that_came_went_or_was_replaced_is_shown_itself(
    client: SyncClient, kind: str
) -> None:
    value = LARGE[kind]

    came = diff_of(client, {"n": 1}, {"n": 1, "x": value})
    went = diff_of(client, {"n": 1, "x": value}, {"n": 1})
    replaced = diff_of(client, {"n": 1, "x": value}, {"n": 1, "x": None})

    assert dict(came.added) == {"$.x": value}
    assert dict(went.removed) == {"$.x": value}
    assert dict(replaced.changed) == {"$.x": (value, None)}
    for diff in (came, went, replaced):
        assert type(next(iter(diff.as_dict()["added"].values()), value)) is type(value)
        assert str(diff)[0] in "+-~"


def test_a_large_dict_by_numbers_is_compared_by_what_differs(
    client: SyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = {n: f"value {n} " * 20 for n in range(5000)}
    first = client.save("coder", execution_state={"table": table}, session_id="s")
    table[2500] = "edited"
    table[9999] = "new"
    second = client.save("coder", execution_state={"table": table}, session_id="s")
    fetched: list[bytes] = []
    fetch = client.store.fetch

    def counting(names: Collection[bytes]) -> dict[bytes, bytes]:
        fetched.extend(names)
        return fetch(names)

    monkeypatch.setattr(client.store, "fetch", counting)
    diff = client.diff(first, second)

    assert dict(diff.changed) == {"$.table[2500]": ("value 2500 " * 20, "edited")}
    assert dict(diff.added) == {"$.table[9999]": "new"}
    if client.store.shares_chunks:
        assert len(fetched) < client.stats().chunks * 2 / 3
