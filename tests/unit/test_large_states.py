"""A large state is packed and read part by part: it is never there a second time as bytes."""

import gc
import random
import tracemalloc
from collections.abc import Callable, Collection
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.chunk_decoder import decode
from holdfast.core.chunk_encoder import encode
from holdfast.core.chunk_format import ELEMENT_SPLIT, compress
from holdfast.core.codec import pack
from holdfast.core.layout_reader import base_of
from holdfast.core.packed_size import is_surely_longer
from holdfast.errors import CheckpointIntegrityError, SerializationError
from holdfast.stores.base import gather
from holdfast.stores.shared import held_chunks
from tests import strategies as s
from tests.sameness import same
from tests.unit import edits

MIB = 2**20
SIZE = 24 * MIB


def messages() -> dict[str, Any]:
    rnd = random.Random(1)
    words = [edits.text(8, at).strip() for at in range(500)]
    said = [" ".join(rnd.choices(words, k=250)) for _ in range(SIZE // 2000)]
    return {"messages": [{"id": at, "content": text} for at, text in enumerate(said)]}


def rows() -> dict[str, Any]:
    line = edits.text(120)
    return {"a": {"b": [{"id": at, "name": f"{at} {line}"} for at in range(SIZE // 140)]}}


def texts() -> dict[str, Any]:
    line = edits.text(900)
    return {"files": {f"file {at}": f"{at} {line}" * (SIZE // 8 // 900) for at in range(8)}}


LARGE = [messages, rows, texts]


def peak_of(work: Callable[[], Any]) -> tuple[Any, int]:
    """What some work gives, and how many bytes it had at most beside what was there before."""
    gc.collect()
    tracemalloc.start()
    try:
        found = work()
        return found, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("state", LARGE)
def test_a_first_save_makes_no_second_copy_of_a_large_state(state: Callable[[], Any]) -> None:
    value = state()
    size = len(pack(value))

    encoded, peak = peak_of(lambda: encode({"execution_state": value}, as_stored=True))

    assert size > SIZE / 2
    assert peak < size / 2 + sum(map(len, encoded.chunks.values()))


@pytest.mark.parametrize("state", LARGE)
def test_a_restore_holds_a_large_state_once(
    state: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_chunks, "_HELD", MIB)
    encoded = encode(state(), as_stored=True)
    stored = sum(map(len, encoded.chunks.values()))

    def restored() -> Any:
        chunks = gather(encoded.root, some_of(encoded.chunks))
        return decode(encoded.root, chunks)

    value, peak = peak_of(restored)
    chunks = gather(encoded.root, some_of(encoded.chunks))
    _, held = peak_of(lambda: decode(encoded.root, chunks))

    assert value == state()
    # At worst the bytes of one part are there beside the value: gathered or decoded, never both.
    assert peak < held + stored + SIZE / 4


def some_of(chunks: dict[bytes, bytes]) -> Callable[[Collection[bytes]], dict[bytes, bytes]]:
    return lambda names: {name: chunks[name] for name in names}


@given(s.values())
def test_chunks_as_they_are_stored_are_the_same_chunks(value: Any) -> None:
    state = {"x": value, "messages": edits.messages(40)}

    raw, stored = encode(state), encode(state, as_stored=True)

    assert stored.root == raw.root
    assert stored.chunks == {name: compress(data) for name, data in raw.chunks.items()}


@given(s.values(), st.integers(0, 5000))
def test_what_is_surely_longer_is_longer(value: Any, limit: int) -> None:
    for each in (value, [value], {"a": value, "b": [value]}, (value,)):
        if is_surely_longer(each, limit):
            assert len(pack(each)) > limit


@given(st.integers(0, 10**6))
def test_parts_are_cut_alike_whether_the_whole_was_packed_before_or_not(seed: int) -> None:
    rnd = random.Random(seed)
    state = {"execution_state": some_state(rnd, 3), "agent_context": some_state(rnd, 1)}
    usual = encode(state)

    with pytest.MonkeyPatch.context() as otherwise:
        # Nothing is taken for long, so all is packed whole first; then little counts as moderate.
        for module in ("chunk_encoder", "paged_sequences"):
            otherwise.setattr(f"holdfast.core.{module}.is_surely_longer", lambda *_: False)
        whole = encode(state)
        for module in ("chunk_encoder", "paged_sequences"):
            otherwise.setattr(f"holdfast.core.{module}.MODERATE", ELEMENT_SPLIT)
        unchecked = encode(state)

    for other in (whole, unchecked):
        assert (other.root, other.size, other.chunks) == (usual.root, usual.size, usual.chunks)


def some_state(rnd: random.Random, depth: int) -> Any:
    kind = rnd.randrange(7) if depth else 0
    if kind <= 1:
        sizes = [3, 900, 1100, 2900, 3300, 9000, 30_000]
        return rnd.choice([rnd.randint(0, 9), edits.text(rnd.choice(sizes), rnd.randint(0, 9))])
    count = rnd.choice([2, 9, 40] if depth == 1 else [2, 6])
    parts = [some_state(rnd, depth - 1) for _ in range(count)]
    kinds: list[Callable[[list[Any]], Any]] = [
        list,
        lambda parts: {f"k{at}": part for at, part in enumerate(parts)},
        tuple,
        lambda parts: dict(enumerate(parts)),
        lambda parts: s.Plain(parts, {"n": len(parts)}),
    ]
    return kinds[kind - 2](parts)


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


def test_what_nests_too_deep_is_refused_beside_much_as_beside_little() -> None:
    for beside in ([], edits.messages(30), edits.messages(3000)):
        encode({"execution_state": {"a": [*beside, nested(240)]}})
        with pytest.raises(SerializationError, match=r"\$\.execution_state\.a\[\d+\]\[0\]"):
            encode({"execution_state": {"a": [*beside, nested(252)]}})


def test_a_circle_in_a_large_state_is_refused_with_its_path() -> None:
    state: dict[str, Any] = {"messages": edits.messages(3000)}
    state["messages"][7]["again"] = state

    with pytest.raises(SerializationError, match=r"\$\.messages\[7\]\.again: is a circular"):
        encode(state)


def test_what_is_read_of_chunks_held_as_stored_is_what_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(held_chunks, "_HELD", 20_000)
    state = {"messages": edits.messages(500), "text": edits.text(200_000), "more": ["same"] * 9000}
    raw = encode(state, seed=3).chunks
    first = encode(state, seed=3, as_stored=True)

    chunks = gather(first.root, some_of(first.chunks))

    assert type(chunks) is not dict
    assert dict(chunks) == raw
    assert (len(chunks), first.root in chunks, b"none" in chunks) == (len(raw), True, False)
    assert same(decode(first.root, chunks), state)
    base = base_of(first.root, chunks, 3)
    again = encode({**state, "n": 1}, base, seed=3)
    assert again.root == encode({**state, "n": 1}).root
    assert len(again.chunks) < 3


def test_a_damaged_chunk_of_a_large_state_is_found_as_it_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(held_chunks, "_HELD", 0)
    encoded = encode({"messages": edits.messages(500)}, as_stored=True)
    last = list(encoded.chunks)[3]
    damaged = {**encoded.chunks, last: compress(b"other")}

    with pytest.raises(CheckpointIntegrityError, match="does not match its name"):
        gather(encoded.root, some_of(damaged))
