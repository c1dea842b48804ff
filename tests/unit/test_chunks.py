"""Structural sharing: the chunks of a state hang on its content alone; edits stay local."""

import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import SerializationError
from holdfast.core.chunk_decoder import decode, references
from holdfast.core.chunk_encoder import Base, Encoded, encode
from holdfast.core.chunk_format import (
    ELEMENT_SPLIT,
    MAX_CHUNK,
    RECORD_KEYS,
    chunk_id,
    compress,
    decompress,
    pack_index,
)
from holdfast.core.codec import pack
from holdfast.core.content_cuts import MAX_PAGE, PAGE
from holdfast.core.kinds.content_links import ContentLink
from holdfast.core.layout_reader import base_of
from holdfast.verbs.links import links_of
from tests import strategies as s
from tests.sameness import isolated, same
from tests.unit.edits import LARGE, STARTS, Edit, message, messages, scripts, states, text

Store = dict[bytes, bytes]


def reachable(root: bytes, store: Store) -> set[bytes]:
    """The chunks that a state needs, found as garbage collection finds them."""
    seen: set[bytes] = set()
    waiting = [(root, True)]
    while waiting:
        name, may_refer = waiting.pop()
        if name not in seen:
            seen.add(name)
            if may_refer:
                waiting += references(store[name])
    return seen


@settings(max_examples=60)
@given(STARTS, scripts())
def test_every_state_of_a_run_comes_back_and_has_the_chunks_it_has_alone(
    start: int, script: list[tuple[Edit, int]]
) -> None:
    store: Store = {}
    base = None
    for state in states(start, script):
        packed = pack(state)
        encoded = encode(state, base, seed=7)
        alone = encode(state, seed=7)
        store |= encoded.chunks

        assert encoded.root == alone.root
        assert encoded.size == alone.size
        assert pack(decode(encoded.root, store)) == packed == pack(state)
        base = encoded.base


@settings(max_examples=40)
@given(STARTS, scripts())
def test_a_base_learned_from_the_store_gives_the_same_chunks(
    start: int, script: list[tuple[Edit, int]]
) -> None:
    store: Store = {}
    base = None
    for state in states(start, script):
        encoded = encode(state, base, seed=7)
        alone = encode(state, seed=7)
        store |= encoded.chunks

        assert (encoded.root, encoded.size) == (alone.root, alone.size)
        needed = {name: store[name] for name in reachable(encoded.root, store)}
        assert needed == alone.chunks
        base = base_of(encoded.root, needed, 7)


@settings(max_examples=40)
@given(STARTS, scripts())
def test_new_chunks_are_all_needed_and_known_ones_all_there(
    start: int, script: list[tuple[Edit, int]]
) -> None:
    store: Store = {}
    base = None
    for state in states(start, script):
        encoded = encode(state, base)
        store |= encoded.chunks
        needed = reachable(encoded.root, store)

        assert encoded.chunks.keys() <= needed
        assert encoded.base.known <= needed
        assert all(chunk_id(raw) == name for name, raw in encoded.chunks.items())
        base = encoded.base


@given(st.sampled_from([3, 120]), scripts(), scripts())
def test_equal_states_have_equal_ids_whatever_their_histories(
    start: int, script: list[tuple[Edit, int]], detour: list[tuple[Edit, int]]
) -> None:
    base = None
    for state in states(start, script):
        base = encode(state, base).base
    for other in states(0, detour):
        base = encode(other, base).base

    assert encode(state, base).root == encode(state).root


@given(s.values(max_leaves=8), s.values(max_leaves=8))
def test_any_value_after_any_other_has_the_chunks_it_has_alone(before: Any, after: Any) -> None:
    first = encode(before)

    second = encode(after, first.base)

    alone = encode(after)
    assert (second.root, second.size) == (alone.root, alone.size)
    assert same(after, decode(second.root, {**first.chunks, **second.chunks}))


@given(STARTS, scripts())
@settings(max_examples=20)
def test_encoding_leaves_its_argument_alone(start: int, script: list[tuple[Edit, int]]) -> None:
    base = None
    for state in states(start, script):
        before = isolated(state)
        base = encode(state, base).base
        assert same(state, before)


# How much a change costs.


def grown(state: Any, edit: Callable[[Any], None], known: bool) -> tuple[Encoded, Encoded]:
    """What an edit adds to the store, by the encoder's base or by one learned from the store."""
    first = encode(state)
    edit(state)
    base = first.base if known else base_of(first.root, first.chunks, 0)
    return first, encode(state, base)


@pytest.mark.parametrize("known", [True, False], ids=["same process", "other process"])
@pytest.mark.parametrize(
    ("edit", "chunks", "size"),
    [
        (lambda state: state["messages"].append(message(1000)), 5, 6_000),
        (lambda state: state["messages"].__delitem__(slice(0, 1)), 5, 24_000),
        (lambda state: state["messages"].__delitem__(slice(0, 100)), 5, 24_000),
        (lambda state: state["messages"][250].update(content="edited"), 5, 45_000),
        (lambda state: state["messages"].insert(250, message(1000)), 6, 60_000),
        (lambda state: state["messages"].pop(250), 5, 45_000),
        (lambda state: state["messages"].__delitem__(slice(400, None)), 12, 24_000),
        (lambda state: state.update(step=1), 2, 2_000),
        (lambda state: None, 0, 0),
    ],
    ids=[
        "append",
        "trim one",
        "trim many",
        "edit",
        "insert",
        "remove",
        "truncate",
        "field",
        "none",
    ],
)
def test_a_small_edit_of_500_messages_adds_a_few_chunks(
    known: bool, edit: Any, chunks: int, size: int
) -> None:
    first, second = grown({"messages": messages(500), "step": 0}, edit, known)

    assert first.size > 160_000
    assert len(second.chunks) <= chunks
    assert sum(map(len, second.chunks.values())) <= size


def test_a_window_that_slides_over_500_messages_adds_few_chunks_a_step() -> None:
    state = {"messages": messages(500)}
    base: Base | None = None
    store: dict[bytes, bytes] = {}
    added: list[Any] = []
    for step in range(60):
        encoded = encode(state, base)
        added.append(len(encoded.chunks))
        store |= encoded.chunks
        base = encoded.base
        del state["messages"][0]
        state["messages"].append(message(1000 + step))

    assert max(added[1:]) <= 9
    assert sum(added[1:]) <= 60 * 5
    assert sum(len(raw) for raw in store.values()) < 60 * 22_000


def test_appending_one_message_a_step_costs_about_the_message() -> None:
    state: dict[str, Any] = {"messages": []}
    base, total, raw = None, 0, 0
    for step in range(400):
        state["messages"].append(message(step))
        encoded = encode(state, base)
        base = encoded.base
        total += sum(map(len, encoded.chunks.values()))
        raw += len(pack(state["messages"][-1]))

    assert total < 12 * raw  # 400 whole states would be 200 times as much


@pytest.mark.parametrize("known", [True, False], ids=["same process", "other process"])
@pytest.mark.parametrize(
    "state",
    [
        pytest.param({"a": {f"k{i}": text(100, i) for i in range(3000)}}, id="dict"),
        pytest.param({"a": text(300_000)}, id="text"),
        pytest.param({"a": random.Random(1).randbytes(300_000)}, id="bytes"),
        pytest.param({"a": s.Plain(messages(500))}, id="object"),
        pytest.param({"a": {i: text(100, i) for i in range(3000)}}, id="odd keys"),
        pytest.param({"a": tuple(messages(500))}, id="tuple"),
        pytest.param({"a": [messages(20, 2000) for _ in range(30)]}, id="lists in a list"),
        pytest.param({"a": {"b": {"c": [text(9000, i) for i in range(40)]}}}, id="nested"),
        pytest.param({"a": np.random.default_rng(1).normal(size=40_000)}, id="array"),
    ],
)
def test_large_values_share_all_but_what_changes_beside_them(state: Any, known: bool) -> None:
    first, second = grown(state, lambda state: state.update(b=1), known)

    assert len(first.chunks) > 5
    assert len(second.chunks) <= 1
    assert sum(map(len, second.chunks.values())) < 3000


def test_states_with_common_parts_share_chunks_without_knowing_of_each_other() -> None:
    one = encode({"messages": messages(500), "who": "one"})
    two = encode({"who": "two", "messages": messages(480), "more": [1]})

    assert len(two.chunks.keys() - one.chunks.keys()) <= 8


def test_a_list_of_small_things_has_no_large_chunks() -> None:
    states: tuple[Any, ...] = (
        messages(5000, 100),
        list(range(300_000)),
        [""] * 200_000,
        {f"k{i}": i for i in range(50_000)},
        dict(enumerate(range(30_000))),
        tuple(range(100_000)),
        set(range(30_000)),
        [[]] * 100_000,
        ["x" * 4000] * 300,
    )
    for state in states:
        chunks = encode(state).chunks.values()

        # A page is cut before its next element, which alone may pass the limit.
        assert max(map(len, chunks)) <= MAX_PAGE + ELEMENT_SPLIT + 8


@pytest.mark.parametrize(
    "value",
    [text(3_000_000), b"\x00" * 3_000_000, "é" * 1_000_000, random.Random(1).randbytes(2_000_000)],
    ids=["text", "zeros", "é", "random"],
)
def test_large_texts_and_bytes_are_cut_into_chunks_of_moderate_size(value: Any) -> None:
    encoded = encode([value])

    assert max(map(len, encoded.chunks.values())) <= MAX_PAGE + ELEMENT_SPLIT
    assert decode(encoded.root, encoded.chunks) == [value]


def test_pages_have_about_the_size_they_are_meant_to_have() -> None:
    encoded = encode(messages(5000))
    pages = [len(raw) for raw in encoded.chunks.values() if len(raw) > 3000]

    assert PAGE / 2 < sum(pages) / len(pages) < PAGE * 2


def test_an_index_of_many_pages_is_a_tree_of_small_chunks() -> None:
    encoded = encode(list(range(2_000_000)))

    assert decode(encoded.root, encoded.chunks) == list(range(2_000_000))
    assert len(encoded.chunks[encoded.root]) < 2000


# Equal but not the same.


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (1, True),
        (0.0, -0.0),
        (1, 1.0),
        (b"x", bytearray(b"x")),
        (bytearray(b"x"), b"x"),
        ("x", b"x"),
    ],
)
@pytest.mark.parametrize(
    "surroundings",
    [
        lambda x: [x] + ["pad"] * 9000,
        lambda x: ["pad"] * 9000 + [x],
        lambda x: [text(LARGE), x, *map(str, range(9000))],
        lambda x: [*map(str, range(5000)), text(LARGE), {"k": x}, *map(str, range(5000))],
        lambda x: {"a": x, **{str(i): text(50, i) for i in range(900)}},
        lambda x: {"a": [x], "b": text(LARGE), **{str(i): text(50, i) for i in range(900)}},
        lambda x: [s.Plain(x), text(LARGE), *map(str, range(9000))],
        lambda x: {"a": s.Plain([x] * 20, text(9000))},
        lambda x: [(x,), text(LARGE), *map(str, range(9000))],
        lambda x: [{1: x}, text(LARGE), *map(str, range(9000))],
        lambda x: x,
    ],
    ids=[
        *("front", "back", "beside a large one", "middle", "dict", "dict with large"),
        *("object", "object with large", "tuple", "odd dict", "alone"),
    ],
)
@pytest.mark.parametrize("known", [True, False], ids=["same process", "other process"])
def test_a_change_between_equal_values_is_a_change(
    before: Any, after: Any, surroundings: Any, known: bool
) -> None:
    first = encode(surroundings(before))
    unchanged = encode(surroundings(before), first.base)
    base = unchanged.base if known else base_of(first.root, first.chunks, 0)

    second = encode(surroundings(after), base)

    assert second.root == encode(surroundings(after)).root != first.root
    assert same(surroundings(after), decode(second.root, {**first.chunks, **second.chunks}))


@pytest.mark.parametrize("small", [1000, 1500, 3000, 4090])
def test_a_dict_that_grows_past_a_record_has_the_chunks_it_has_alone(small: int) -> None:
    state = {f"k{i}": text(small if i % 2 else 900, i) for i in range(RECORD_KEYS - 1)}
    base = encode(state).base

    for key in ("one more", "and one"):
        state[key] = "x"
        encoded = encode(state, base)
        assert (encoded.root, encoded.size) == (encode(state).root, encode(state).size)
        base = encoded.base
    for key in ("one more", "and one"):
        del state[key]
        encoded = encode(state, base)
        assert (encoded.root, encoded.size) == (encode(state).root, encode(state).size)
        base = encoded.base


def test_sizes_around_every_threshold_have_the_chunks_they_have_alone() -> None:
    sizes = [*range(1000, 1050, 3), *range(4080, 4110, 3), *range(16360, 16400, 3), 32768, 65536]
    base = None
    for size in [*sizes, *reversed(sizes)]:
        for state in (
            {"a": text(size)},
            [text(size)],
            {"a": [0] * size},
            {"a": s.Plain(text(size))},
        ):
            encoded = encode(state, base)
            alone = encode(state)
            assert (encoded.root, encoded.size) == (alone.root, alone.size)
            base = encoded.base


# Append-only lists.


def test_a_list_that_is_only_appended_to_has_the_same_chunks_when_declared_so() -> None:
    state: dict[str, Any] = {"run": {"messages": messages(50)}, "step": 0}
    declared, plain = None, None
    for step in range(80):
        state["run"]["messages"] += [message(100 + step), {"tool": text(7000, step)}][
            : 1 + step % 2
        ]
        state["step"] = step
        trusting = encode(state, declared, append_only=[("run", "messages")])
        careful = encode(state, plain)

        assert (trusting.root, trusting.size) == (careful.root, careful.size)
        declared, plain = trusting.base, careful.base


def test_a_declared_list_that_was_cut_short_is_still_encoded_rightly() -> None:
    state = {"messages": messages(400)}
    base = encode(state, append_only=[("messages",)]).base

    for count in (399, 100, 3, 0):
        del state["messages"][count:]
        encoded = encode(state, base, append_only=[("messages",)])
        assert encoded.root == encode(state).root
        base = encoded.base


def test_a_declared_list_that_became_something_else_is_still_encoded_rightly() -> None:
    base = encode({"messages": messages(400)}, append_only=[("messages",)]).base

    for value in (None, "text" * 9000, {"a": messages(400)}, tuple(messages(400)), 5):
        state = {"messages": value}
        assert encode(state, base, append_only=[("messages",)]).root == encode(state).root


# Errors.


@pytest.mark.parametrize(
    ("edit", "path"),
    [
        (lambda state: state.update(messages=threading.Lock()), "$.messages"),
        (lambda state: state["messages"].append(threading.Lock()), "$.messages[500]"),
        (
            lambda state: state["messages"][3].update(tool=[threading.Lock()]),
            "$.messages[3].tool[0]",
        ),
        (lambda state: state.update(a={"b": [threading.Lock()]}), "$.a.b[0]"),
        (lambda state: state["agent"].a.append(threading.Lock()), "$.agent.a[100]"),
        (lambda state: setattr(state["agent"], "a", threading.Lock()), "$.agent.a"),
    ],
)
def test_what_cannot_be_kept_has_its_whole_path_with_a_base_too(edit: Any, path: str) -> None:
    state = {"messages": messages(500), "agent": s.Plain(messages(100)), "a": 1}
    base = encode(state).base
    edit(state)

    for given_base in (None, base):
        with pytest.raises(SerializationError) as caught:
            encode(state, given_base)
        assert caught.value.path == path


def test_a_cycle_made_after_a_save_is_refused_and_the_base_stays_good() -> None:
    state: dict[str, Any] = {"messages": messages(500)}
    base = encode(state).base
    state["messages"].append(state)

    with pytest.raises(SerializationError, match=r"^\$\.messages\[500\]: is a circular reference"):
        encode(state, base)

    state["messages"].pop()
    assert encode(state, base).chunks == {}


def deep(levels: int, wrap: Callable[[Any, int], Any]) -> Any:
    value: Any = 1
    for level in range(levels):
        value = wrap(value, level)
    return value


DEEP: dict[str, Callable[[Any, int], Any]] = {
    "dicts with texts": lambda x, i: {"k": x, "pad": text(900, i), "more": text(300, i)},
    "lists of large texts": lambda x, i: [x, text(LARGE, i)],
    "objects with large texts": lambda x, i: s.Plain(x, text(LARGE, i)),
    "objects in lists": lambda x, i: [s.Plain(x, text(2000, i)), text(3000, i)],
    "tuples": lambda x, i: (x, text(LARGE, i)),
}


@pytest.mark.parametrize("kind", DEEP)
@pytest.mark.parametrize("levels", [10, 50, 90, 100, 120, 200])
def test_whatever_is_encoded_can_be_decoded_however_deep_and_large(kind: str, levels: int) -> None:
    value = deep(levels, DEEP[kind])
    try:
        encoded = encode(value)
    except SerializationError as error:
        assert "nested too deep" in str(error)  # noqa: PT017
        return

    assert pack(decode(encoded.root, encoded.chunks)) == pack(value)
    base = base_of(encoded.root, encoded.chunks, 0)
    assert encode(value, base).root == encoded.root


@pytest.mark.parametrize("raw", [b"x" * (MAX_CHUNK + 1), b"x" * MAX_CHUNK], ids=["over", "at"])
def test_no_chunk_is_stored_that_would_be_refused_when_read(raw: bytes) -> None:
    try:
        stored = compress(raw)
    except SerializationError:
        return

    assert decompress(stored) == raw


# A base whose layout is not what it says.


def test_a_base_from_an_index_that_names_pages_twice_gives_the_same_chunks() -> None:
    first = encode(messages(300))
    state = messages(300)
    base = base_of(first.root, first.chunks, 0)
    base.layout.pages.extend(base.layout.pages)

    encoded = encode(state, Base(base.layout, base.known))

    assert encoded.root == first.root


def test_an_index_packs_and_unpacks() -> None:
    from holdfast.core.chunk_format import unpack_index

    entries = [(bytes([i]) * 20, i * 1000, i % 2 == 0, i % 3 == 0) for i in range(1, 40)]

    assert unpack_index(pack_index(3, entries)) == (3, entries)


def test_links_are_found_wherever_they_stand() -> None:
    def link(number: int) -> ContentLink:
        return ContentLink(number.to_bytes(20, "big"), is_leaf=number % 2 == 1)

    state = {
        "in pages": [
            {"n": number, "text": "x" * 200, "link": link(number)} for number in range(60)
        ],
        "in a large part": [{"text": "y" * 20_000, "pair": (1, link(60))}],
        "in a record": {"text": "z" * 2000, "link": link(61)},
        "in a long dict": {str(number): [link(number), "w" * 100] for number in range(62, 110)},
    }
    encoded = encode(state)

    found = links_of(encoded.root, encoded.chunks)

    assert found == {link(n).name: n % 2 == 0 for n in range(110)}
    assert encode({**state, "more": 1}, encoded.base).root == encode({**state, "more": 1}).root
