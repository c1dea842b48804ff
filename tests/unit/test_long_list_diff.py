"""A diff of long lists meets at the pages that both have, and tells what a diff of the whole would.

Lists are long enough that they are aligned between what both have once, and so are their pages.
"""

import random
from collections.abc import Callable, Collection, Sequence
from typing import Any

import ormsgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.core import list_alignment
from holdfast.core.chunk_encoder import encode
from holdfast.core.chunk_format import PAGED_LIST, chunk_id, pack_index
from holdfast.core.chunk_opener import Asking
from holdfast.core.diff import Diff, diff_values
from holdfast.core.differ import diff_roots
from holdfast.errors import CheckpointIntegrityError
from holdfast.system.drive import drive
from tests.plain_diff import PlainDiff, explain

Edit = Callable[[list[Any], random.Random], int]
"""Changes a list, and says how many elements it touched at most."""

SEEDS = st.integers(0, 10**6)


def element(number: int) -> str:
    return f"element {number} of a list that is long enough for many pages"


def insert(items: list[Any], rnd: random.Random) -> int:
    items.insert(rnd.randint(0, len(items)), f"inserted {rnd.random()}")
    return 1


def insert_many(items: list[Any], rnd: random.Random) -> int:
    at, count = rnd.randint(0, len(items)), rnd.choice([3, 700])
    items[at:at] = [f"inserted {rnd.random()} {i}" for i in range(count)]
    return count


def delete(items: list[Any], rnd: random.Random) -> int:
    at = rnd.randint(0, len(items) - 1)
    count = rnd.choice([1, 5, 900])
    del items[at : at + count]
    return count


def edit(items: list[Any], rnd: random.Random) -> int:
    items[rnd.randint(0, len(items) - 1)] = f"edited {rnd.random()}"
    return 1


def trim_front(items: list[Any], rnd: random.Random) -> int:
    count = rnd.randint(1, 500)
    del items[:count]
    return count


def append(items: list[Any], rnd: random.Random) -> int:
    items.append(f"appended {rnd.random()}")
    return 1


def move(items: list[Any], rnd: random.Random) -> int:
    at, count = rnd.randint(0, len(items) - 1), rnd.choice([1, 40, 1200])
    block = items[at : at + count]
    del items[at : at + count]
    to = rnd.randint(0, len(items))
    items[to:to] = block
    return count


def repeat(items: list[Any], rnd: random.Random) -> int:
    at, count = rnd.randint(0, len(items) - 1), rnd.choice([1, 300])
    items[at:at] = items[at : at + count]
    return count


IN_PLACE = [insert, insert_many, delete, edit, trim_front, append]


def scripts(edits: Sequence[Edit]) -> st.SearchStrategy[list[Edit]]:
    return st.lists(st.sampled_from(edits), min_size=1, max_size=7)


@given(scripts(IN_PLACE), SEEDS, st.sampled_from([1500, 5000]))
@example([insert, edit, edit, delete], 3, 5000)
def test_a_diff_of_long_lists_is_that_of_all_their_elements(
    script: list[Edit], seed: int, size: int
) -> None:
    rnd = random.Random(seed)
    old = [element(n) for n in range(size)]
    new = list(old)
    for change in script:
        change(new, rnd)

    diff = diff_values(old, new)

    with pytest.MonkeyPatch.context() as unlimited:
        unlimited.setattr(list_alignment, "_ALIGN_AT_MOST", 10**6)
        unlimited.setattr(list_alignment, "_MATCHES_AT_MOST", 10**12)
        plain = PlainDiff(old, new)
    why = explain(diff, plain)
    assert why is None, why


@given(scripts([*IN_PLACE, move, repeat]), SEEDS, st.sampled_from([1, 3, 5000]))
@example([move, edit], 1, 5000)
@example([insert, edit, append], 1, 1)
def test_a_diff_leads_from_the_old_list_to_the_new_one(
    script: list[Edit], seed: int, kinds: int
) -> None:
    rnd = random.Random(seed)
    old = [element(n % kinds) for n in range(5000)]
    new = list(old)
    for change in script:
        change(new, rnd)

    assert patched(old, diff_values(old, new), len(new)) == new


@given(scripts([insert, edit, append, move]), SEEDS)
def test_a_diff_of_long_lists_tells_what_was_touched_and_little_else(
    script: list[Edit], seed: int
) -> None:
    rnd = random.Random(seed)
    old = [element(n) for n in range(6000)]
    new = list(old)
    touched = sum(change(new, rnd) for change in script)

    assert len(diff_values(old, new)) <= 2 * touched + len(script)


def patched(old: list[Any], diff: Diff, length: int) -> list[Any]:
    """What a diff makes of a list of texts."""
    came = {place_in(new): old[place_in(left)] for left, new in diff.moved.items()}
    came |= {place_in(path): value for path, value in diff.added.items()}
    went = {place_in(path) for path in (*diff.moved, *diff.removed)}
    stayed = iter([value for at, value in enumerate(old) if at not in went])
    changed = {place_in(path): pair for path, pair in diff.changed.items()}
    found = []
    for at in range(length):
        if at in came:
            found.append(came[at])
            continue
        value = next(stayed)
        if at in changed:
            assert changed[at][0] == value
            value = changed[at][1]
        found.append(value)
    assert list(stayed) == []
    return found


def place_in(path: str) -> int:
    return int(path.removeprefix("$[").removesuffix("]"))


def differing(old: Any, new: Any) -> tuple[Diff, int, int]:
    """The diff of two states, how many chunks it asked for, and how many there are."""
    first = encode({"execution_state": old})
    second = encode({"execution_state": new})
    chunks = {**first.chunks, **second.chunks}
    asked: list[bytes] = []

    def ask(names: Collection[bytes]) -> Asking[dict[bytes, bytes]]:
        asked.extend(names)
        given: dict[bytes, bytes] = yield names
        return given

    return (
        drive(diff_roots(first.root, second.root, ask), lambda _: chunks),
        len(asked),
        len(chunks),
    )


def test_only_pages_that_differ_are_read_wherever_they_stand() -> None:
    old: list[Any] = [{"id": n, "value": n * 7 % 1000} for n in range(200_000)]
    new = list(old)
    new[150_000] = "edited"
    del new[100_000]
    new.insert(50_000, "inserted")
    new[100] = "edited"

    diff, asked, of = differing(old, new)

    assert list(diff.changed) == ["$[100]", "$[150000]"]
    assert (list(diff.added), list(diff.removed)) == (["$[50000]"], ["$[100000]"])
    assert asked < 40 < of / 4


@pytest.mark.parametrize("key", [int, "key {}".format])
def test_of_long_dicts_only_what_differs_is_read(key: Callable[[int], Any]) -> None:
    old = {key(n): f"value {n}" for n in range(100_000)}
    new = {name: value for name, value in old.items() if name != key(50_000)}
    new[key(7)] = new[key(99_000)] = "edited"

    diff, asked, of = differing(old, new)

    assert (len(diff.changed), len(diff.removed), len(diff)) == (2, 1, 3)
    assert asked < of / 3


def test_of_large_sets_only_what_differs_is_read() -> None:
    old = {f"tag {n}" for n in range(100_000)}
    new = (old | {"new", "tag 5b"}) - {"tag 70000"}

    diff, asked, of = differing(old, new)

    assert (len(diff.added), len(diff.removed), len(diff)) == (2, 1, 3)
    assert asked < of / 3


def test_lists_that_repeat_are_compared_by_place_where_they_are_long() -> None:
    old = ["equal"] * 100_000
    new = list(old)
    new[20_000] = new[80_000] = "edited"

    diff, _, _ = differing(old, new)

    assert list(diff.changed) == ["$[20000]", "$[80000]"]
    assert len(diff) == 2


def hand_made(level: int, entries: list[tuple[bytes, int]]) -> bytes:
    index = pack_index(level, [(name, count, True, True) for name, count in entries])
    return ormsgpack.packb(ormsgpack.Ext(PAGED_LIST, index))


def diff_of_chunks(old: bytes, new: bytes, chunks: dict[bytes, bytes]) -> Diff:
    roots = []
    for raw in (old, new):
        root = ormsgpack.packb({"execution_state": "S"}).replace(b"\xa1S", raw)
        chunks[chunk_id(root)] = root
        roots.append(chunk_id(root))

    def ask(names: Collection[bytes]) -> Asking[dict[bytes, bytes]]:
        given: dict[bytes, bytes] = yield names
        return given

    return drive(diff_roots(roots[0], roots[1], ask), lambda _: chunks)


def test_an_index_that_leads_back_to_itself_is_refused() -> None:
    name, other = b"a" * 20, b"b" * 20
    circle = hand_made(1, [(name, 2**37)] * 3)

    with pytest.raises(CheckpointIntegrityError, match="uneven depth"):
        diff_of_chunks(circle, hand_made(1, [(other, 5)]), {name: circle, other: circle})


def test_what_an_index_claims_to_hold_is_not_believed() -> None:
    page, other = encode(["a", "b"]), encode(["a", "c"])
    chunks = {**page.chunks, **other.chunks}
    old = hand_made(0, [(page.root, 2**37)] * 40)
    new = hand_made(0, [(other.root, 2**37)] + [(page.root, 2**37)] * 39)

    diff = diff_of_chunks(old, new, chunks)

    assert dict(diff.changed) == {"$[1]": ("b", "c")}
