"""Closed volumes of the log of calls, and their index, by themselves."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import CheckpointIntegrityError, SyncClient
from holdfast.core.codec import pack
from holdfast.core.kinds.content_links import ContentLink
from holdfast.session import terms, volumes
from holdfast.session.call_log import CallLog
from holdfast.session.older import Older
from holdfast.session.terms import Index, Term
from holdfast.session.volumes import Shelf, Volumes, part
from holdfast.stores.base import NotesOnly

CLIENT = SyncClient.open("memory://")
run = CLIENT.runtime.run
SHELF = Shelf(CLIENT.runtime.engine)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels, pages and runs so short that few volumes fill several."""
    monkeypatch.setattr(volumes, "FULL", 3)
    monkeypatch.setattr(terms, "_PAGE", 2)
    monkeypatch.setattr(terms, "_LONGEST", 16)


def written(into: dict[bytes, bytes]) -> None:
    """Keep chunks, as a checkpoint would."""
    CLIENT.store.commit(NotesOnly((), dict(into)))
    into.clear()


def grown(start: Volumes, numbers: range) -> Volumes:
    into: dict[bytes, bytes] = {}
    for number in numbers:
        start = start.with_one(SHELF.volume([{"n": number}], into), into)
    written(into)
    return start


def numbers_of(links: list[ContentLink]) -> list[int]:
    return [entries[0]["n"] for entries in run(SHELF.volumes(links))]


@given(st.integers(0, 40))
@settings(max_examples=20)
def test_volumes_come_in_order_and_by_their_numbers(count: int) -> None:
    kept = Volumes.of(grown(Volumes(), range(count)).as_value())

    every = [entry["n"] for entry in run(SHELF.entries(run(kept.links(SHELF))))]

    assert every == list(range(count))
    assert kept.count == count
    assert all(len(links) < 3 for links in kept.levels)
    some = sorted(Random(count).sample(range(count), min(5, count)))
    assert run(kept.numbered(SHELF, some)) == {each: [{"n": each}] for each in some}
    with pytest.raises(CheckpointIntegrityError, match="no volume"):
        run(kept.numbered(SHELF, [count]))


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
@settings(max_examples=40)
def test_two_logs_part_where_they_differ(shared: int, mine: int, theirs: int) -> None:
    begun = grown(Volumes(), range(shared))
    one = grown(begun, range(shared, shared + mine))
    other = grown(begun, range(1000, 1000 + theirs))

    found = run(part(SHELF, one, other))

    assert numbers_of(found.mine) == list(range(shared, shared + mine))
    assert numbers_of(found.theirs) == list(range(1000, 1000 + theirs))


def test_what_two_long_logs_share_is_not_read() -> None:
    begun = grown(Volumes(), range(500))
    one, other = grown(begun, range(500, 501)), grown(begun, range(501, 502))
    asked: list[bytes] = []

    class Counting(Shelf):
        def read(self, links: Any) -> Any:
            asked.extend(link.name for link in links)
            return super().read(links)

    found = run(part(Counting(CLIENT.runtime.engine), one, other))

    assert (len(found.mine), len(found.theirs)) == (1, 1)
    assert len(asked) <= 2 * 6  # the levels of each


@given(st.lists(st.lists(st.integers(0, 12), max_size=5), max_size=40))
@settings(max_examples=30)
def test_the_index_tells_which_volumes_have_a_term(said: list[list[int]]) -> None:
    index, into = Index(), dict[bytes, bytes]()
    for number, words in enumerate(said):
        rows = {(("id", str(word)), number) for word in words}
        index = Index.of(run(index.with_terms(SHELF, rows, 1, into)).as_value())
        written(into)

    wanted: list[Term] = [("id", str(word)) for word in range(14)]
    found = run(index.find(SHELF, wanted))

    assert found == {
        term: {number for number, words in enumerate(said) if int(term[1]) in words}
        for term in wanted
    }


def test_there_are_few_runs_and_each_row_is_written_few_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(terms, "_LONGEST", 10**6)
    index, total = Index(), 0
    for number in range(256):
        into: dict[bytes, bytes] = {}
        index = run(index.with_terms(SHELF, {(("id", str(number)), number)}, 1, into))
        total += len(into)
        written(into)
        assert len(index.runs) <= 9
    assert [span for span, _ in index.runs] == [256]
    assert total <= 256 * 9 * 2  # pages of two rows, and what tells of them


OPEN: dict[str, Any] = {"id": "a", "index": 0, "tool": "t", "kind": "local"}
GOOD: dict[str, Any] = {
    "volumes": [[ContentLink(bytes(20))]],
    "index": [],
    "open": [OPEN],
    "token": "",
    "tokens": [],
    "in": [],
    "alive": 1,
    "branched": 0,
}


def bad_headers() -> Iterator[Any]:
    yield from ([], ["older"], ["newer", GOOD], ["older", GOOD, 1], ["older", 3], [3, GOOD])
    for name in GOOD:
        yield ["older", {key: value for key, value in GOOD.items() if key != name}]
        yield ["older", {**GOOD, name: object}]
        yield ["older", {**GOOD, name: [3]}]
    link = ContentLink(bytes(20))
    wrong: Any
    for wrong in ([[b"x" * 20]], [[link] * 3], [[]] * 9, [[ContentLink(bytes(20), True)]]):
        yield ["older", {**GOOD, "volumes": wrong}]
    for wrong in ([[0, link]], [[True, link]], [[1]], [[1, 2]], [["1", link]]):
        yield ["older", {**GOOD, "index": wrong}]
    yield ["older", {**GOOD, "open": [{"id": "a"}]}]
    yield ["older", {**GOOD, "tokens": [["a"]]}]
    yield ["older", {**GOOD, "in": [["a", "b"]]}]


@pytest.mark.parametrize("header", list(bad_headers()), ids=str)
def test_a_record_of_older_calls_of_another_shape_is_damaged(header: Any) -> None:
    with pytest.raises(CheckpointIntegrityError):
        CallLog([header])


def test_a_record_of_older_calls_is_kept_as_it_is() -> None:
    entry = ["older", GOOD]

    assert Older.of(entry).as_entry() == entry
    assert CallLog([entry]).alive == 1  # type: ignore[list-item]


def test_chunks_that_are_missing_or_of_another_shape_are_damaged() -> None:
    gone = ContentLink(b"g" * 20)
    with pytest.raises(CheckpointIntegrityError, match="missing"):
        run(SHELF.volumes([gone]))
    with pytest.raises(CheckpointIntegrityError, match="missing"):
        run(Index(((1, gone),)).find(SHELF, [("id", "a")]))
    into: dict[bytes, bytes] = {}
    wrong = [
        volumes.write(pack(value), into, is_leaf=False)
        for value in ([1], {"a": 1}, [b"12345678", []], [b"", [gone]], [gone], "text")
    ]
    odd = volumes.write(b"123", into, is_leaf=True)
    run_of_odd = volumes.write(pack([b"12345678", [odd]]), into, is_leaf=False)
    written(into)
    for link in wrong:
        with pytest.raises(CheckpointIntegrityError):
            run(Index(((1, link),)).find(SHELF, [("id", "a")]))
        with pytest.raises(CheckpointIntegrityError):
            run(part(SHELF, Volumes(((), (link,))), Volumes(((gone,),))))
    with pytest.raises(CheckpointIntegrityError, match="page"):
        run(Index(((1, run_of_odd),)).find(SHELF, [("id", "a")]))
