"""A large state is packed and read part by part: it is never there a second time as bytes."""

import gc
import random
import tracemalloc
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import chunk_decoder, chunk_encoder, packed_size, paged_sequences
from holdfast.core.chunk_decoder import decode
from holdfast.core.chunk_encoder import Encoded, encode
from holdfast.core.chunk_format import ELEMENT_SPLIT, compress
from holdfast.core.codec import pack, unpack
from holdfast.core.layout_reader import base_of
from holdfast.core.packed_size import is_surely_longer, packed_in_parts
from holdfast.errors import CheckpointIntegrityError, SerializationError
from holdfast.stores.base import gather
from holdfast.stores.shared import held_chunks
from holdfast.system.bytes_on_disk import BytesOnDisk
from tests import strategies as s
from tests.sameness import same
from tests.unit import edits

MIB = 2**20
SIZE = 16 * MIB


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


def hexes() -> dict[str, Any]:
    rnd = random.Random(2)
    return {"items": [rnd.randbytes(1000).hex() for _ in range(SIZE // 2000)]}


def blobs() -> dict[str, Any]:
    rnd = random.Random(3)
    return {"items": [rnd.randbytes(4000) for _ in range(SIZE // 4000)]}


def text() -> dict[str, Any]:
    return {"text": random.Random(4).randbytes(SIZE // 2).hex()}


def accented() -> dict[str, Any]:
    line = "é" + edits.text(90) + "\n"
    return {"text": "".join(f"{at} {line}" for at in range(SIZE // 100))}


def one_blob() -> dict[str, Any]:
    return {"raw": random.Random(5).randbytes(SIZE)}


def tree() -> dict[str, Any]:
    rnd = random.Random(6)

    def below(levels: int) -> Any:
        if not levels:
            return {"n": rnd.random(), "data": rnd.randbytes(500).hex()}
        return {f"key {at}": below(levels - 1) for at in range(12)}

    return {f"part {at}": below(3) for at in range(SIZE // 1728 // 1100)}


LARGE = [messages, rows, texts, hexes, blobs, text, accented, one_blob, tree]


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
def test_a_first_save_makes_no_second_copy_of_a_large_state(
    state: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_encoder, "_HELD", MIB)
    value = state()
    size = len(pack(value))

    def saved() -> Encoded:
        return encode({"execution_state": value}, as_stored=True, apart=BytesOnDisk)

    encoded, peak = peak_of(saved)
    _, sent = peak_of(lambda: [len(chunk) for chunk in encoded.chunks.values()])

    assert size > SIZE / 2
    # What is known of the chunks, for small ones as much as they hold; and a few of them.
    assert peak < 700 * len(encoded.chunks) + 8 * MIB
    assert sent < 2 * MIB


@pytest.mark.parametrize("state", LARGE)
def test_a_restore_holds_a_large_state_once(
    state: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_chunks, "_HELD", MIB)
    encoded = encode(state(), as_stored=True)

    def restored() -> Any:
        chunks = gather(encoded.root, some_of(encoded.chunks))
        return decode(encoded.root, chunks)

    _, alone = peak_of(state)
    value, peak = peak_of(restored)

    assert value == state()
    assert peak < alone + SIZE / 2


def some_of(chunks: Mapping[bytes, bytes]) -> Callable[[Collection[bytes]], dict[bytes, bytes]]:
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


def test_what_is_far_down_in_a_tree_is_seen() -> None:
    assert is_surely_longer({"execution_state": tree()}, 3072)
    small = {"a": {"b": {"c": [{"d": [{"e": "x"}]}] * 20}}, "f": list(range(200))}
    assert not is_surely_longer(small, 3072)


@given(s.values(), st.integers(0, 300))
def test_what_is_packed_in_parts_is_what_is_packed_at_once(value: Any, moderate: int) -> None:
    with pytest.MonkeyPatch.context() as otherwise:
        otherwise.setattr(packed_size, "MODERATE", moderate)
        otherwise.setattr(packed_size, "WHOLE", 20)
        otherwise.setattr(packed_size, "BLOCK", 3)
        for each in (value, [value] * 3, {"a": value, "é": [value, "text\ud800"]}):
            found = b"".join(packed_in_parts(each, pack))

            assert found == pack(each) or (moderate < 20 and same(unpack(found), each))


TEXTS = st.lists(
    st.sampled_from(
        ["é" * 300, "ascii\n" * 90, "\U0001f600" * 2000, "x" * 9000, "—\n", "\n" * 700]
    ),
    max_size=60,
).map("".join)


@given(TEXTS, TEXTS)
def test_a_long_text_is_cut_as_if_all_of_it_were_there(text: str, added: str) -> None:
    states = [{"text": text}, {"text": text + added}, {"text": added + text}]
    usual = [encode(state, seed=3) for state in states]

    with pytest.MonkeyPatch.context() as otherwise:
        otherwise.setattr(paged_sequences, "BLOCK", 700)
        otherwise.setattr(packed_size, "BLOCK", 700)
        otherwise.setattr(paged_sequences, "_BLOCKS_SEEN", 2)
        otherwise.setattr(chunk_decoder, "_PART", 5000)
        base = None
        for state, expected in zip(states, usual, strict=True):
            first, again = encode(state, seed=3), encode(state, base, seed=3)
            base = again.base

            assert (first.root, first.chunks, first.base) == (
                *(expected.root, expected.chunks),
                expected.base,
            )
            assert again.root == expected.root
            assert decode(first.root, first.chunks) == state


def test_a_long_text_with_half_a_pair_is_kept_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paged_sequences, "_BLOCKS_SEEN", 0)
    state = {"text": "x" * 200_000 + "\ud800" + "é" * 200_000}

    encoded = encode(state)

    assert decode(encoded.root, encoded.chunks) == state


@pytest.mark.parametrize("part", [1, 16_000, 2**20])
def test_pages_that_are_no_text_are_refused_however_they_are_joined(
    part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_decoder, "_PART", part)
    encoded = encode({"text": edits.text(100_000)})
    pages = list(encoded.base.layout.children["text"].pages)
    for name in (pages[0].id, pages[-1].id):
        for ending in (b"\xff", b"\xc3"):
            damaged = {**encoded.chunks, name: encoded.chunks[name] + ending}

            with pytest.raises(CheckpointIntegrityError, match="not UTF-8"):
                decode(encoded.root, damaged)


def test_a_page_of_large_parts_is_met_again_though_it_was_hashed_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = {"all": {f"key {at}": {"of": edits.messages(4, 5000), "at": at} for at in range(40)}}
    whole = encode(state, seed=3)
    for module in (packed_size, paged_sequences):
        monkeypatch.setattr(module, "MODERATE", 5000)

    parts = encode(state, seed=3)
    assert parts == whole
    state["all"]["key 9"]["at"] = 10
    after = encode(state, parts.base, seed=3)

    assert after.root == encode(state).root
    assert len(after.chunks) < 6


def test_what_is_read_of_chunks_on_disk_is_what_they_were(
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
