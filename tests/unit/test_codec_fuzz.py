"""Hostile bytes: whatever they are, the reader ends soon, in little memory, with our errors."""

import functools
import os
import random
import struct
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import ormsgpack
import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast import CheckpointIntegrityError, SerializationError
from holdfast.core.chunks import encode
from holdfast.core.codec import OnUnknown, pack, unpack
from holdfast.core.format import (
    ID_BYTES,
    MAX_CHUNK,
    PAGED_BYTES,
    PAGED_DICT,
    PAGED_LIST,
    PAGED_STR,
    REF_LEAF,
    REF_NODE,
    checked,
    chunk_id,
    compress,
    decompress,
    pack_index,
    unpack_index,
)
from holdfast.core.kinds import by_code
from holdfast.core.shallow import base_of, shallow
from holdfast.core.tree import Limits, decode, index_references, inner_index, references
from tests import strategies as s

OURS = (CheckpointIntegrityError, SerializationError)
SMALL = Limits(bytes=2**20, chunks=2000)

PAGED = [PAGED_LIST, PAGED_DICT, PAGED_STR, PAGED_BYTES]
CODES = [*sorted(by_code), REF_LEAF, REF_NODE, *PAGED, 0, 63, 99, 127, -1, -128]


def read_all(data: bytes) -> None:
    """Give bytes to every reader; each may refuse them, in its own words."""
    on_unknowns: tuple[OnUnknown, ...] = ("raise", "raw")
    name = chunk_id(data)
    readers: list[Callable[[], Any]] = [
        *(functools.partial(unpack, data, how) for how in on_unknowns),
        *(
            functools.partial(decode, name, {name: data}, on_unknown=how, limits=SMALL)
            for how in on_unknowns
        ),
        lambda: references(data),
        lambda: index_references(data),
        lambda: inner_index(data),
        lambda: shallow(data),
        lambda: base_of(name, {name: data}, 0),
        lambda: unpack_index(data),
        lambda: decompress(data),
        lambda: decompress(b"\x01" + data),
        lambda: checked(name, data),
    ]
    for reader in readers:
        try:
            reader()
        except OURS:
            pass


@given(st.binary(max_size=200))
@example(b"")
@example(b"\xc1")
@example(b"\xdd\xff\xff\xff\xff")
@example(b"\xdf\xff\xff\xff\xff")
@example(b"\xdb\xff\xff\xff\xff")
@example(b"\xc6\xff\xff\xff\xff")
@example(b"\xc9\xff\xff\xff\xff\x04")
@example(b"\x91" * 100_000)
@example(b"\x81\xa1a" * 100_000)
def test_random_bytes_are_read_or_refused(data: bytes) -> None:
    read_all(data)


# Values as msgpack writes them, with extensions that no encoder would write.


def wild_values() -> st.SearchStrategy[Any]:
    names = [
        f"tests.strategies:{name}" for name in ("Plain", "Slotted", "Model", "ModelV1", "Record")
    ]
    names += [f"tests.strategies:{name}" for name in ("Point", "Color", "Access", "Oops", "Items")]
    names += ["builtins:UnicodeDecodeError", "builtins:ExceptionGroup", "builtins:OSError"]
    names += [
        "tests.strategies:Grouped",
        "tests.strategies:Moment",
        "nowhere:Thing",
        "builtins:int",
    ]
    names += [
        "pandas:Series",
        "pandas:Timestamp",
        "pandas:DataFrame",
        "list",
        "str",
        "dict",
        "deque",
    ]
    names += ["<i8", "<M8[ns]", "|O", "range", "index", "multi", "category", "Int64", "ns", "C"]
    leaves = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        st.integers(-3, 300),
        st.floats(),
        st.text(max_size=5),
        st.binary(max_size=24),
        st.sampled_from(names),
    )
    return st.recursive(leaves, _wild_containers, max_leaves=12)


def _wild_containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(inner, max_size=6),
        st.dictionaries(
            st.text(max_size=4) | st.sampled_from(["a", "b", "args"]), inner, max_size=4
        ),
        st.builds(ormsgpack.Ext, st.sampled_from(CODES), inner.map(ormsgpack.packb)),
        st.builds(ormsgpack.Ext, st.sampled_from(CODES), st.binary(max_size=24)),
        st.builds(
            _extension_with_name, st.sampled_from(sorted(by_code)), st.lists(inner, max_size=5)
        ),
    )


def _extension_with_name(code: int, parts: list[Any]) -> ormsgpack.Ext:
    return ormsgpack.Ext(code, ormsgpack.packb(["tests.strategies:Plain", *parts]))


@settings(max_examples=300)
@given(wild_values())
def test_well_formed_bytes_with_any_extensions_are_read_or_refused(value: Any) -> None:
    read_all(ormsgpack.packb(value))


@pytest.mark.parametrize("code", CODES)
def test_each_extension_with_odd_content_is_read_or_refused(code: int) -> None:
    contents: list[Any] = [
        *(
            None,
            True,
            0,
            -1,
            2**64 - 1,
            1.5,
            "",
            "x",
            b"",
            b"x" * 20,
            [],
            {},
            [[]],
            [{}],
            [None] * 9,
        ),
        *(
            [1, 2],
            [None, None],
            ["a", "b"],
            ["a", {}],
            ["a", []],
            [2**40, []],
            [[], 2**40],
            [0, b"", []],
        ),
        *(["a:b", {}, []], ["a:b", {}, [], None, None], ["x", "y", "str", {}], {"a": 1}, {"": []}),
    ]
    for content in contents:
        read_all(ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(content))))
    for raw in (b"", b"\x00", b"\xc1", b"\xff" * 7, b"\x93\x00\xc4\x14" + b"x" * 20 + b"\x91\x04"):
        read_all(ormsgpack.packb(ormsgpack.Ext(code, raw)))


# Damage to real data.


@functools.cache
def real() -> list[bytes]:
    """What an encoder has written, of every type there is."""
    return [pack(value) for value in s.SAMPLES.values()]


@functools.cache
def real_chunks() -> tuple[bytes, dict[bytes, bytes]]:
    state = {
        "messages": [{"role": "user", "content": f"{i} " * 40} for i in range(600)],
        "object": s.Plain("x" * 30_000, dict.fromkeys(range(900), "y" * 30)),
        "samples": list(s.SAMPLES.values()),
    }
    encoded = encode(state)
    return encoded.root, encoded.chunks


def damaged(data: bytes, rnd: random.Random) -> bytes:
    """The same with a few bytes flipped, cut, doubled, moved or put in."""
    parts = bytearray(data)
    for _ in range(rnd.choice([1, 1, 1, 2, 5])):
        at = rnd.randrange(len(parts) + 1)
        match rnd.randrange(6):
            case 0 if parts:
                parts[at - 1] ^= 1 << rnd.randrange(8)
            case 1:
                del parts[at:]
            case 2:
                del parts[at : at + rnd.randint(1, 4)]
            case 3:
                parts[at:at] = rnd.randbytes(rnd.randint(1, 4))
            case 4:
                parts[at:at] = parts[at : at + rnd.randint(1, 40)]
            case _ if parts:
                parts[at - 1] = rnd.choice(
                    [0, 0x7F, 0x80, 0x90, 0xC0, 0xC7, 0xC9, 0xDD, 0xDF, 0xFF]
                )
    return bytes(parts)


@settings(max_examples=300)
@given(st.integers(0, 2**32))
def test_damaged_values_are_read_or_refused(seed: int) -> None:
    rnd = random.Random(seed)

    read_all(damaged(rnd.choice(real()), rnd))


def test_every_truncation_of_every_type_is_read_or_refused() -> None:
    for data in real():
        step = max(1, len(data) // 60)
        for end in range(0, len(data), step):
            with pytest.raises(OURS):
                unpack(data[:end])


def test_every_single_flipped_bit_of_small_values_is_read_or_refused() -> None:
    for data in real():
        if len(data) < 60:
            for bit in range(len(data) * 8):
                flipped = bytearray(data)
                flipped[bit // 8] ^= 1 << bit % 8
                try:
                    unpack(bytes(flipped))
                except OURS:
                    pass


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_states_with_a_damaged_chunk_are_read_or_refused(seed: int) -> None:
    rnd = random.Random(seed)
    root, chunks = real_chunks()
    name = rnd.choice([root, *rnd.choices(sorted(chunks), k=3)])
    broken = {**chunks, name: damaged(chunks[name], rnd)}

    for reader in (
        lambda: decode(root, broken),
        lambda: decode(root, broken, on_unknown="raw"),
        lambda: base_of(root, broken, 0),
        lambda: references(broken[name]),
    ):
        try:
            reader()
        except OURS:
            pass


def test_a_state_with_any_chunk_missing_is_refused() -> None:
    root, chunks = real_chunks()
    for name in chunks:
        with pytest.raises(CheckpointIntegrityError, match="is missing"):
            decode(root, {key: raw for key, raw in chunks.items() if key != name})


def test_a_base_of_a_state_with_any_chunk_missing_is_refused_or_made_without_it() -> None:
    root, chunks = real_chunks()
    for name in chunks:
        try:
            base_of(root, {key: raw for key, raw in chunks.items() if key != name}, 0)
        except CheckpointIntegrityError:
            pass


@settings(max_examples=100)
@given(st.integers(0, 2**32))
def test_any_damage_to_a_stored_chunk_is_noticed(seed: int) -> None:
    rnd = random.Random(seed)
    _, chunks = real_chunks()
    name = rnd.choice(sorted(chunks))
    stored = compress(chunks[name])
    broken = damaged(stored, rnd)

    try:
        assert checked(name, broken) == chunks[name]  # the damage was to nothing that counts
    except CheckpointIntegrityError:
        pass


def test_every_flipped_bit_of_a_stored_chunk_is_noticed() -> None:
    raw = pack({"content": "hello " * 60})
    stored = compress(raw)
    for bit in range(len(stored) * 8):
        flipped = bytearray(stored)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            assert checked(chunk_id(raw), bytes(flipped)) == raw
        except CheckpointIntegrityError:
            continue


# Indexes and references that no encoder would write.


def ext(code: int, data: bytes) -> bytes:
    return ormsgpack.packb(ormsgpack.Ext(code, data))


def index(level: Any, names: Any, marks: Any) -> bytes:
    return ormsgpack.packb([level, names, marks])


BAD_INDEXES: dict[str, bytes] = {
    "names of text": index(0, "a" * ID_BYTES, [4]),
    "names in a list": index(0, ["a"] * ID_BYTES, [4]),
    "names in a dict": index(0, {str(i): i for i in range(ID_BYTES)}, [4]),
    "marks in a dict": index(0, b"a" * ID_BYTES, {"x": 4}),
    "marks of text": index(0, b"a" * ID_BYTES, "x"),
    "marks of floats": index(0, b"a" * ID_BYTES, [4.0]),
    "marks of nothing": index(0, b"a" * ID_BYTES, [None]),
    "negative marks": index(0, b"a" * ID_BYTES, [-4]),
    "true marks": index(0, b"a" * ID_BYTES, [True]),
    "a negative level": index(-1, b"a" * ID_BYTES, [4]),
    "a level of 17": index(17, b"a" * ID_BYTES, [4]),
    "a true level": index(True, b"a" * ID_BYTES, [4]),
    "too few names": index(0, b"a" * (ID_BYTES - 1), [4]),
    "too many names": index(0, b"a" * (ID_BYTES + 1), [4]),
    "four parts": ormsgpack.packb([0, b"", [], 1]),
    "no list": ormsgpack.packb({"a": 1}),
    "an extension": ormsgpack.packb([ormsgpack.Ext(1, b""), b"", []]),
}


@pytest.mark.parametrize("kind", BAD_INDEXES)
@pytest.mark.parametrize("code", PAGED)
def test_an_index_of_the_wrong_shape_is_refused_by_every_reader(kind: str, code: int) -> None:
    chunk = ext(code, BAD_INDEXES[kind])
    root = chunk_id(chunk)

    with pytest.raises(CheckpointIntegrityError):
        unpack_index(BAD_INDEXES[kind])
    for reader in (
        lambda: decode(root, {root: chunk}),
        lambda: references(chunk),
        lambda: base_of(root, {root: chunk}, 0),
    ):
        with pytest.raises(CheckpointIntegrityError):
            reader()


@pytest.mark.parametrize("code", [REF_LEAF, REF_NODE])
@pytest.mark.parametrize(
    "name", [b"", b"x", b"x" * (ID_BYTES - 1), b"x" * (ID_BYTES + 1), b"x" * 999]
)
def test_a_reference_that_is_no_name_is_refused(code: int, name: bytes) -> None:
    chunk = ext(code, name)
    root = chunk_id(chunk)

    with pytest.raises(CheckpointIntegrityError):
        decode(root, {root: chunk})
    with pytest.raises(CheckpointIntegrityError):
        references(chunk)


@pytest.mark.parametrize("code", [PAGED_LIST, PAGED_DICT])
@pytest.mark.parametrize(
    "page", [b"\xc0", b"\x01", b"\xa1x", ext(4, b"\x90"), b"\x80\x80", b"", b"\xc1"]
)
def test_a_page_of_the_wrong_kind_is_refused(code: int, page: bytes) -> None:
    chunk = ext(code, pack_index(0, [(chunk_id(page), 1, True, False)]))

    with pytest.raises(CheckpointIntegrityError):
        decode(chunk_id(chunk), {chunk_id(chunk): chunk, chunk_id(page): page})


@pytest.mark.parametrize("inner", [PAGED_DICT, PAGED_STR, REF_NODE, 4, 1])
def test_an_inner_index_of_another_kind_is_refused_or_harmless(inner: int) -> None:
    page = ormsgpack.packb([1])
    below = ext(inner, pack_index(0, [(chunk_id(page), 1, True, False)]))
    chunk = ext(PAGED_LIST, pack_index(1, [(chunk_id(below), 1, True, True)]))

    with pytest.raises(CheckpointIntegrityError):
        decode(chunk_id(chunk), {chunk_id(raw): raw for raw in (page, below, chunk)})


# Mappings in which names do not fit their content, so that anything may lead anywhere.

A, B = b"A" * ID_BYTES, b"B" * ID_BYTES


@pytest.mark.parametrize(
    "chunks",
    [
        {A: ext(REF_NODE, A)},
        {A: ext(REF_NODE, B), B: ext(REF_NODE, A)},
        {A: ormsgpack.packb([ormsgpack.Ext(REF_NODE, A)] * 2)},
        {A: ormsgpack.packb({"a": ormsgpack.Ext(REF_LEAF, A)})},
        {A: ext(4, ormsgpack.packb([ormsgpack.Ext(REF_NODE, A)]))},
        {A: ext(PAGED_LIST, pack_index(1, [(A, 1, True, True)]))},
        {A: ext(PAGED_LIST, pack_index(16, [(A, 1, True, True)] * 3))},
        {A: ext(PAGED_LIST, pack_index(0, [(A, 1, True, True)]))},
        {
            A: ext(PAGED_LIST, pack_index(0, [(B, 1, True, True)])),
            B: ormsgpack.packb([ormsgpack.Ext(REF_NODE, A)]),
        },
    ],
)
@pytest.mark.timeout(20)
def test_chunks_that_lead_back_to_themselves_are_refused(chunks: dict[bytes, bytes]) -> None:
    with pytest.raises(CheckpointIntegrityError):
        decode(A, chunks)
    with pytest.raises(CheckpointIntegrityError):
        base_of(A, chunks, 0)


def test_deep_chains_of_chunks_are_refused_and_not_a_crash() -> None:
    chunks = {}
    name = chunk_id(b"\xc0")
    chunks[name] = b"\xc0"
    for _ in range(3000):
        raw = ormsgpack.packb([ormsgpack.Ext(REF_NODE, name)])
        name = chunk_id(raw)
        chunks[name] = raw

    with pytest.raises(CheckpointIntegrityError, match="too deep"):
        decode(name, chunks)
    with pytest.raises(CheckpointIntegrityError):
        base_of(name, chunks, 0)


@pytest.mark.parametrize("levels", [200, 3000, 50_000])
@pytest.mark.parametrize("code", [4, 8, 40])
def test_deep_chains_of_extensions_are_refused_and_not_a_crash(levels: int, code: int) -> None:
    data = b"\x90"
    for _ in range(levels):
        data = b"\xc9" + struct.pack(">Ib", len(data), code) + data

    for reader in (unpack, references, shallow):
        with pytest.raises(CheckpointIntegrityError):
            reader(data)


# Time and memory. Each runs in a process of its own, which the system stops if it goes too far.

LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))
resource.setrlimit(resource.RLIMIT_CPU, ({seconds}, {seconds}))
import ormsgpack
from holdfast import CheckpointIntegrityError, SerializationError
from holdfast.core.chunks import encode
from holdfast.core.codec import pack, unpack
from holdfast.core.format import *
from holdfast.core.shallow import base_of, shallow
from holdfast.core.tree import Limits, decode, references
Ext, packb = ormsgpack.Ext, ormsgpack.packb
def named(*chunks):
    return {{chunk_id(raw): raw for raw in chunks}}
try:
{script}
except (CheckpointIntegrityError, SerializationError) as error:
    print("refused:", str(error)[:200])
else:
    print("read")
"""

MEGABYTE = 2**20


def limited(script: str, memory: int = 700 * MEGABYTE, seconds: int = 10) -> str:
    """What a script says when it may use so much memory and processor time, and no more."""
    body = textwrap.indent(textwrap.dedent(script), "    ")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED.format(memory=memory, seconds=seconds, script=body)],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-500:]}"
    return done.stdout.strip()


def test_lengths_that_are_not_there_allocate_nothing() -> None:
    said = limited(
        r"""
        for head in (b"\xdd", b"\xdf", b"\xdb", b"\xc6"):
            for data in (head + b"\xff\xff\xff\xff", head + b"\x7f\xff\xff\xff" + b"\x01" * 100):
                for reader in (unpack, references, shallow, unpack_index):
                    try:
                        reader(data)
                    except CheckpointIntegrityError:
                        continue
                    raise SystemExit("read")
        unpack(b"\xc9\xff\xff\xff\xff\x04")
        """
    )

    assert said.startswith("refused")


HUGE = {
    "tuple of a range": "Ext(4, packb(Ext(12, packb([0, 2**50, 1]))))",
    "set of a range": "Ext(5, packb(Ext(12, packb([0, 2**50, 1]))))",
    "deque of a range": "Ext(7, packb([None, Ext(12, packb([0, 2**50, 1]))]))",
    "Counter of a range": "Ext(11, packb(Ext(12, packb([0, 2**50, 1]))))",
    "bytearray of a number": "Ext(3, packb(2**40))",
    "bytes of a number": "Ext(44, packb(['builtins:bytes', 2**40, 'bytes', {}]))",
    "list of a range": "Ext(44, packb(['builtins:list', Ext(12, packb([0, 2**50, 1])), 'list', {}]))",  # noqa: E501
    "Fraction of a text": "Ext(15, packb(['1e99999999']))",
    "Fraction of large numbers": (
        "Ext(15, packb([Ext(1, b'\\x55' * 400_000), Ext(1, b'\\x33' * 400_000 + b'\\x01')]))"
    ),
    "Decimal of a huge exponent": "Ext(14, packb('1E+999999999'))",
    "array of a huge shape": "Ext(50, packb(['numpy:ndarray', b'', '<i8', [2**40, 2**20], 'C']))",
    "array of a huge item": "Ext(50, packb(['numpy:ndarray', b'', '|V2147483647', [1], 'C']))",
    "array of range": "Ext(50, packb(['numpy:ndarray', Ext(12, packb([0, 2**40, 1])), '|O', [2**40]]))",  # noqa: E501
    "a long time zone": "Ext(22, packb('a/' * 100_000))",
    "a long class name": "Ext(40, packb(['a.' * 500_000 + ':' + 'b.' * 500_000, {}]))",
    "flags of many bits": "Ext(41, packb(['re:RegexFlag', Ext(1, b'\\x55' * 100_000)]))",
    "a pandas range": "Ext(52, packb(['pandas:Index', ['range', 0, 2**60, 1, None]]))",
    "a pandas frame": (
        "Ext(52, packb(['pandas:DataFrame', [[], ['range', 0, 0, 1, None],"
        " ['range', 0, 2**60, 1, None], {}]]))"
    ),
}


@pytest.mark.parametrize("kind", HUGE)
def test_small_values_that_would_unfold_are_refused_or_stay_small(kind: str) -> None:
    imports = "import numpy" if "array" in kind else "import pandas" if "pandas" in kind else ""
    memory = 1500 if imports else 700

    assert limited(f"{imports}\nimport re\nunpack(packb({HUGE[kind]}))", memory * MEGABYTE)


def test_a_compressed_bomb_is_refused_before_it_unfolds() -> None:
    bomb = zstandard.ZstdCompressor(level=1).compress(b"\x00" * (MAX_CHUNK + 1))
    stream = zstandard.ZstdCompressor(level=1).compressobj()
    unsized = stream.compress(b"\x00" * MAX_CHUNK * 2) + stream.flush()

    for stored in (bomb, unsized):
        assert len(stored) < 100_000
        said = limited(f"decompress(b'\\x01' + bytes.fromhex({stored.hex()!r}))", 300 * MEGABYTE)
        assert said.startswith("refused")


@pytest.mark.parametrize("claim", [0, 1, 2**20, MAX_CHUNK, MAX_CHUNK + 1, 2**40, 2**64 - 1])
def test_a_compressed_chunk_that_lies_about_its_size_is_refused(claim: int) -> None:
    honest = zstandard.ZstdCompressor(level=1).compress(b"hello " * 5000)
    size = zstandard.frame_content_size(honest)
    assert size == 30_000
    # The frame header: magic number, descriptor, then the size in 2, 4 or 8 bytes.
    header_size = zstandard.frame_header_size(honest)
    lying = honest[:4] + bytes([0xC0 | 0x20]) + struct.pack("<Q", claim) + honest[header_size:]

    try:
        raw = decompress(b"\x01" + lying)
    except CheckpointIntegrityError:
        return
    assert raw == b"hello " * 5000 or claim == 0


def test_several_frames_after_each_other_are_not_all_unfolded() -> None:
    frame = zstandard.ZstdCompressor(level=1).compress(b"\x00" * 2**20)
    said = limited(f"decompress(b'\\x01' + bytes.fromhex({frame.hex()!r}) * 2000)", 300 * MEGABYTE)

    assert said in ("read",) or said.startswith("refused")


BOMBS = {
    "lists of lists": """
        below = packb([0] * 100)
        chunks = named(below)
        for _ in range(12):
            below = packb([Ext(REF_NODE, chunk_id(below))] * 100)
            chunks |= named(below)
        decode(chunk_id(below), chunks)
        """,
    "pages of pages": """
        page = packb([0] * 100)
        chunks = named(page)
        for level in range(12):
            page = packb(Ext(PAGED_LIST, pack_index(level, [(chunk_id(page), 1, True, True)] * 40)))
            chunks |= named(page)
        decode(chunk_id(page), chunks)
        """,
    "text of texts": """
        page = b"x" * 30_000
        chunks = named(page)
        for level in range(8):
            page = packb(Ext(PAGED_STR, pack_index(level, [(chunk_id(page), 1, True, True)] * 40)))
            chunks |= named(page)
        decode(chunk_id(page), chunks)
        """,
    "empty pages": """
        page = packb([])
        chunks = named(page)
        for level in range(12):
            page = packb(Ext(PAGED_LIST, pack_index(level, [(chunk_id(page), 0, True, True)] * 40)))
            chunks |= named(page)
        decode(chunk_id(page), chunks)
        """,
    "one large chunk many times": r"""
        below = b"\xdd" + (2**20).to_bytes(4, "big") + b"\x90" * 2**20
        root = packb([Ext(REF_LEAF, chunk_id(below))] * 4000)
        decode(chunk_id(root), named(below, root))
        """,
}


@pytest.mark.parametrize("kind", BOMBS)
def test_shared_chunks_do_not_multiply_past_the_limits_given(kind: str) -> None:
    script = BOMBS[kind].replace("chunks)\n", "chunks, limits=Limits(2**22, 20_000))\n")
    script = script.replace("root))\n", "root), limits=Limits(2**22, 20_000))\n")

    assert (
        limited(script)
        == "refused: stored data is damaged: it holds more data than the limits allow"
    )


@pytest.mark.parametrize("kind", BOMBS)
def test_shared_chunks_do_not_multiply_past_the_memory_there_is(kind: str) -> None:
    assert limited(BOMBS[kind], 3000 * MEGABYTE, seconds=30).startswith("refused")


LIE = """
page = packb({page})
index = packb(Ext(PAGED_LIST, packb([0, chunk_id(page), [{marks}]])))
state = [{{"role": "user", "content": str(i) * 50}} for i in range(2000)]
base = base_of(chunk_id(index), named(page, index), 0)
if encode(state, base).root != encode(state).root:
    raise SystemExit("another root")
"""


@pytest.mark.parametrize("count", [0, -1, 1, 5, 2**40])
@pytest.mark.parametrize("mark", [0, 1, 2, 3])
@pytest.mark.parametrize("page", ["[]", "[1]"])
def test_a_base_from_an_index_that_lies_about_counts_ends_and_changes_nothing(
    count: int, mark: int, page: str
) -> None:
    assert limited(LIE.format(page=page, marks=count * 4 + mark), seconds=5)
