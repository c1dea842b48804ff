"""What cannot be kept is refused by name, with its path and what to do, and nothing is written."""

import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from holdfast import (
    ContractError,
    HoldfastError,
    InvalidArgumentError,
    SerializationError,
    SyncClient,
)


def nested(depth: int) -> Any:
    value: Any = "bottom"
    for _ in range(depth):
        value = [value]
    return value


def circular() -> dict[str, Any]:
    state: dict[str, Any] = {"plan": {}}
    state["plan"]["again"] = state
    return state


def circular_list() -> list[Any]:
    state: list[Any] = []
    state.append(state)
    return state


class Circular:
    def __init__(self) -> None:
        self.me = self


class Slotted:
    __slots__ = ("lock",)

    def __init__(self) -> None:
        self.lock = threading.Lock()


UNKEEPABLE: dict[str, tuple[Callable[[], Any], str]] = {
    "a lock": (lambda: {"tools": [0, {"client": threading.Lock()}]}, r"\$\.tools\[1\]\.client"),
    "a lambda": (lambda: {"fn": lambda: None}, r"\$\.fn"),
    "a generator": (lambda: [1, (i for i in range(3))], r"\$\[1\]"),
    "a thread": (lambda: {"t": threading.Thread()}, r"\$\.t"),
    "a lock in an object": (lambda: {"s": Slotted()}, r"\$\.s"),
    "a lock as a key": (lambda: {threading.Lock(): 1}, r"\$"),
    "a lock in a set": (lambda: {"s": {threading.Lock()}}, r"\$\.s"),
    "a circle": (circular, r"\$\.plan\.again"),
    "a circle of a list": (circular_list, r"\$\[0\]"),
    "a circle of an object": (lambda: {"c": Circular()}, r"\$\.c\.me"),
    "deep nesting": (lambda: {"deep": nested(400)}, r"\$\.deep"),
    "absurdly deep nesting": (lambda: {"deep": nested(100_000)}, r"\$\.deep"),
}


@pytest.mark.parametrize("what", UNKEEPABLE)
def test_a_state_that_cannot_be_kept_is_refused_with_its_path(
    client: SyncClient, what: str
) -> None:
    make, path = UNKEEPABLE[what]
    before = client.save("coder", execution_state={"kept": 1}, session_id="s")
    chunks = client.stats().chunks

    with pytest.raises(SerializationError, match=path) as caught:
        client.save("coder", execution_state=make(), session_id="s")

    assert isinstance(caught.value, HoldfastError)
    assert [info.checkpoint_id for info in client.find()] == [before]
    assert client.stats().chunks == chunks
    after = client.save("coder", execution_state={"kept": 2}, session_id="s")
    assert client.restore(after).parent_id == before


def test_an_open_socket_is_refused(client: SyncClient) -> None:
    with socket.socket() as open_socket, pytest.raises(SerializationError, match=r"\$\.socket"):
        client.save("coder", execution_state={"socket": open_socket})

    assert client.find() == []


@pytest.mark.parametrize("part", ["context", "metadata", "fork", "fork context"])
def test_every_part_of_a_checkpoint_is_checked(client: SyncClient, part: str) -> None:
    saved = client.save("coder", execution_state={"a": 1})
    bad = {"lock": threading.Lock()}
    uses: dict[str, Callable[[], Any]] = {
        "context": lambda: client.save("coder", execution_state={}, context=bad),
        "metadata": lambda: client.save("coder", execution_state={}, lock=bad["lock"]),
        "fork": lambda: client.fork(saved, execution_state=bad),
        "fork context": lambda: client.fork(saved, context=bad),
    }

    with pytest.raises(SerializationError, match="lock"):
        uses[part]()

    assert len(client.find()) == 1


def test_a_value_that_cannot_be_pickled_either_is_refused(client: SyncClient) -> None:
    message = "exclude it or register_type"

    with pytest.raises(SerializationError, match=message):
        client.save("coder", execution_state={"lock": threading.Lock()})


NAMES: dict[str, tuple[Any, str]] = {
    "a number": (5, "is a string, not int"),
    "none": (None, "is a string, not NoneType"),
    "bytes": (b"coder", "is a string, not bytes"),
    "a list": (["coder"], "is a string, not list"),
    "empty": ("", "is empty"),
    "blank": (" \t\n", "is empty"),
    "with a NUL": ("a\x00b", "NUL"),
    "with half a character": ("\ud800", "lone surrogate"),
    "too long": ("x" * 1025, "1024"),
}


@pytest.mark.parametrize("what", NAMES)
def test_a_name_that_is_none_is_refused(client: SyncClient, what: str) -> None:
    name, complaint = NAMES[what]
    uses: dict[str, Callable[[], Any]] = {
        "agent_id": lambda: client.save(name),
        "latest": lambda: client.latest(name, "s"),
        "timeline": lambda: client.timeline("coder", name),
        "tree": lambda: client.tree("coder", name),
        "checkpoint_id": lambda: client.restore(name),
        "expire": lambda: client.expire(name),
        "fork": lambda: client.fork(name),
        "diff": lambda: client.diff(name, name),
    }
    if name is not None:
        uses["session_id"] = lambda: client.save("coder", session_id=name)
        uses["parent_id"] = lambda: client.save("coder", parent_id=name)
        uses["find"] = lambda: client.find(agent_id=name)
        uses["sessions"] = lambda: client.sessions(name)

    for use in uses.values():
        with pytest.raises(InvalidArgumentError, match=complaint):
            use()
    assert client.store.match("", 1) == []


@pytest.mark.parametrize(
    ("argument", "value", "complaint"),
    [
        ("ttl_seconds", -1, "ttl_seconds is -1"),
        ("ttl_seconds", -0.001, "ttl_seconds is -0.001"),
        ("ttl_seconds", float("nan"), "ttl_seconds is nan"),
        ("ttl_seconds", float("inf"), "ttl_seconds is inf"),
        ("ttl_seconds", "60", "ttl_seconds is a number, not str"),
        ("ttl_seconds", True, "ttl_seconds is a number, not bool"),
        ("step_index", -1, "step_index is a number from 0"),
        ("step_index", 1.0, "step_index is a number from 0"),
        ("step_index", True, "step_index is a number from 0"),
        ("step_index", None, "step_index is a number from 0"),
        ("step_name", 3, "step_name is a string, not int"),
        ("framework", "frobnicate", "no framework 'frobnicate'; there are langgraph"),
        ("framework", None, "no framework None"),
        ("context", ["k"], "context is a dict, not list"),
        ("context", "text", "context is a dict, not str"),
        ("append_only", 5, "append_only"),
        ("append_only", [5], "append_only"),
    ],
)
def test_an_argument_that_makes_no_sense_is_refused(
    client: SyncClient, argument: str, value: Any, complaint: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=complaint):
        client.save("coder", **{"execution_state": {}, argument: value})

    assert client.store.match("", 1) == []


def test_a_ttl_may_be_as_long_as_one_likes(client: SyncClient) -> None:
    saved = client.save("coder", ttl_seconds=1e300)

    assert client.restore(saved).ttl_seconds == 1e300


def test_a_step_may_be_as_far_as_one_likes(client: SyncClient) -> None:
    saved = client.save("coder", step_index=10**30)

    assert client.restore(saved).step_index == 10**30


@pytest.mark.parametrize("name", ["append", "agent", "verify", "order", "x" * 300, "é"])
def test_metadata_may_have_any_name(client: SyncClient, name: str) -> None:
    metadata: dict[str, Any] = {name: 1}

    saved = client.save("coder", **metadata)

    assert client.restore(saved).metadata == metadata


def test_a_large_state_is_kept(client: SyncClient) -> None:
    state = {"blob": b"\x00\xff" * 2_000_000, "text": "é" * 500_000, "many": list(range(100_000))}

    saved = client.save("coder", execution_state=state)

    assert client.restore(saved).execution_state == state


def test_errors_name_paths_as_users_know_them(client: SyncClient) -> None:
    def nothing() -> None: ...

    circular: dict[str, Any] = {"a": {}}
    circular["a"]["again"] = [circular["a"]]
    for path, given in (
        ("$.tools[1].client", {"execution_state": {"tools": [1, {"client": nothing}]}}),
        ("context.client", {"context": {"client": nothing}}),
        ("metadata.client", {"client": nothing}),
        ("$.a.again[0]", {"execution_state": circular}),
        ("$.agent_context.x", {"execution_state": {"agent_context": {"x": nothing}}}),
        ("$.execution_state.x", {"execution_state": {"execution_state": {"x": nothing}}}),
        ("$[8]", {"execution_state": [*range(8), nothing]}),
    ):
        with pytest.raises(SerializationError) as caught:
            client.save("agent", **given)
        assert caught.value.path == path
        assert str(caught.value).startswith(f"{path}: ")
        assert "execution_state" not in caught.value.problem
    with pytest.raises(InvalidArgumentError, match="events is True or False"):
        client.save("agent", events="often")  # type: ignore[arg-type]
    assert client.find() == []


def test_equal_states_have_equal_content_ids_wherever_one_looks(client: SyncClient) -> None:
    first, second = (client.save("agent", execution_state={"n": [1, 2]}) for _ in range(2))
    other = client.save("agent", execution_state={"n": [1, 3]})

    assert client.restore(first).content_id == client.restore(second).content_id
    assert client.restore(first).content_id != client.restore(other).content_id
    for info in client.find():
        assert client.restore(info.checkpoint_id).content_id == info.content_id


HUGE = 7 * 10**6000
"""An integer of more digits than Python writes."""


def test_numbers_that_no_store_can_keep_are_refused_in_words(client: SyncClient) -> None:
    for attempt in (
        lambda: client.save("coder", step_index=HUGE),
        lambda: client.save("coder", ttl_seconds=HUGE),
        lambda: client.timeline("coder", "s", limit=HUGE),
    ):
        with pytest.raises(InvalidArgumentError, match=r"0x530d.*… \(") as caught:
            attempt()
        assert len(str(caught.value)) < 200


def test_a_number_of_any_size_is_held_against_a_contract(client: SyncClient) -> None:
    saved = client.save("coder", execution_state={"n": HUGE, HUGE: 1})

    for schema in ({"type": "string"}, {"maximum": 3}, {"maximum": HUGE - 1}):
        with pytest.raises(ContractError, match=r"\$\.n.*got int 0x530d"):
            client.handoff(saved, "reviewer", contract={"properties": {"n": schema}})
    client.handoff(saved, "reviewer", contract={"properties": {"n": {"maximum": HUGE}}})
