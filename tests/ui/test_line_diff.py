"""Lines and words that changed: what is told leads from one text to the other."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.ui.line_diff import MOST_LINES, Told, changes, unified

_LINES = st.lists(st.sampled_from([b"a", b"b", b"c", b"d e f", b"", b"{", b"}"]), max_size=30)


@given(_LINES, _LINES)
def test_the_changes_lead_from_one_text_to_the_other(old: list[bytes], new: list[bytes]) -> None:
    made, at, place = [], 0, 0

    for tag, i, i_end, j, j_end in changes(old, new):
        assert (i, j) == (at, place)
        assert tag != "equal" or old[i:i_end] == new[j:j_end]
        made += new[j:j_end]
        at, place = i_end, j_end

    assert (made, at, place) == (new, len(old), len(new))


@given(_LINES, _LINES)
def test_hunks_hold_every_line_that_changed(old: list[bytes], new: list[bytes]) -> None:
    before, after = b"\n".join(old), b"\n".join(new)
    told = Told(before, after)
    lines = [line for hunk in told.hunks for line in hunk["lines"]]

    assert bool(told.hunks) == (before != after)
    for line in lines:
        text = "".join(text for text, _ in line["words"]).encode()
        assert line["old"] is None or text == before.split(b"\n")[line["old"] - 1]
        assert line["new"] is None or text == after.split(b"\n")[line["new"] - 1]
    came = len(after.split(b"\n")) - len(before.split(b"\n"))
    signs = [line["op"] for line in lines]
    assert signs.count("+") - signs.count("-") == came


def test_words_that_changed_are_marked() -> None:
    told = Told(b"the quick brown fox\n", b"the quick red fox\n")

    gone, came = told.hunks[0]["lines"]

    assert gone["words"] == [["the quick ", False], ["brown", True], [" fox", False]]
    assert came["words"] == [["the quick ", False], ["red", True], [" fox", False]]


def test_lines_around_a_change_are_told_with_it() -> None:
    old = [f"line {at}" for at in range(50)]
    new = [*old[:10], "new", *old[10:40], *old[41:]]

    text = unified(Told("\n".join(old).encode(), "\n".join(new).encode()), "a/x", "b/x")

    assert text is not None
    assert text.splitlines()[:10] == [
        "--- a/x",
        "+++ b/x",
        "@@ -8,6 +8,7 @@",
        " line 7",
        " line 8",
        " line 9",
        "+new",
        " line 10",
        " line 11",
        " line 12",
    ]
    assert "@@ -38,7 +39,6 @@" in text


def test_the_end_of_the_last_line_counts() -> None:
    assert Told(b"a", b"a\n").hunks
    assert not Told(b"a\n", b"a\n").hunks


def _numbered(order: Callable[[list[int]], object]) -> bytes:
    numbers = list(range(20_000))
    order(numbers)
    return b"\n".join(b"line %d of the text" % number for number in numbers)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (_numbered(list), _numbered(random.Random(1).shuffle)),
        (_numbered(list), _numbered(list.reverse)),
        (_numbered(list), _numbered(list).replace(b"line", b"row")),
        (b"a\nb\n" * 40_000, b"b\nb\na\n" * 30_000),
        (b"x " * 400_000, b"y " * 400_000),
        (b"\n".join([b"w v " * 400] * 600), b"\n".join([b"w u " * 400] * 600)),
    ],
    ids=["shuffled", "reversed", "all changed", "no line once", "one line", "long lines"],
)
def test_texts_that_have_little_in_common_are_compared_within_bounds(
    old: bytes, new: bytes
) -> None:
    told = Told(old, new)

    assert told.is_cut
    assert sum(len(hunk["lines"]) for hunk in told.hunks) <= MOST_LINES
