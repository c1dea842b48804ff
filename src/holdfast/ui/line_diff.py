"""What changed between two texts, by lines and words, at a cost that stays small.

Lines that both texts have once are where they meet; what stands between two of these is compared
line by line where it is short, and taken as replaced where it is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeVar

from holdfast.core.list_alignment import aligned, anchors, common

T = TypeVar("T")
Code = tuple[str, int, int, int, int]
Words = list[list[Any]]
"""Pieces of a line, each with whether it changed."""

LARGEST = 2**20
"""Of a file so many bytes are compared."""
MOST_LINES = 5000
LONGEST_LINE = 2000
_CONTEXT = 3
_MOST_TOLD = 2**20
"""So many characters are told in all."""
_GAP = 40_000
_ALL_GAPS = 4_000_000
_WORDS_IN_ALL = 2_000_000
_ALIKE = 0.3
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")


def lines_of(old: bytes, new: bytes) -> tuple[list[bytes], list[bytes]]:
    """Return the lines of two texts; that only one ends its last line is a change of its own."""
    both = old.split(b"\n"), new.split(b"\n")
    if all(lines[-1] == b"" for lines in both):
        for lines in both:
            lines.pop()
    return both


def is_binary(data: bytes) -> bool:
    """Return whether something is no text, as git decides it."""
    return b"\0" in data[:8000]


def changes(old: list[bytes], new: list[bytes]) -> list[Code]:
    """Return how to get from some lines to others, as difflib says it."""
    start, end = common(old, new)
    a, b = old[start : len(old) - end], new[start : len(new) - end]
    codes: list[Code] = [("equal", 0, start, 0, start)]
    i = j = 0
    left = _ALL_GAPS
    for at_a, at_b in [*anchors(a, b), (len(a), len(b))]:
        cost = (at_a - i) * (at_b - j)
        is_short = cost <= min(_GAP, left)
        left -= cost if is_short else 0
        codes += _moved(_between(a[i:at_a], b[j:at_b], is_short), start + i, start + j)
        codes += _moved([("equal", 0, 1, 0, 1)], start + at_a, start + at_b)
        i, j = at_a + 1, at_b + 1
    codes[-1] = ("equal", len(old) - end, len(old), len(new) - end, len(new))
    return _merged(codes)


def _moved(codes: list[Code], i: int, j: int) -> list[Code]:
    return [(tag, a + i, a_end + i, b + j, b_end + j) for tag, a, a_end, b, b_end in codes]


def _between(a: list[bytes], b: list[bytes], is_short: bool) -> list[Code]:
    return _codes(a, b) if is_short and a and b else [("replace", 0, len(a), 0, len(b))]


def _codes(a: list[T], b: list[T]) -> list[Code]:
    """Return how to get from one short list to another, with what both begin and end with."""
    codes = aligned(a, b) or [("equal", 0, len(a), 0, len(b))]
    _, first, _, first_b, _ = codes[0]
    _, _, last, _, last_b = codes[-1]
    return [
        ("equal", 0, first, 0, first_b),
        *codes,
        ("equal", last, len(a), last_b, len(b)),
    ]


def _merged(codes: list[Code]) -> list[Code]:
    """Return the same without empty ones; those of one sort that meet are one."""
    found: list[Code] = []
    for tag, i, i_end, j, j_end in codes:
        if i == i_end and j == j_end:
            continue
        if tag != "equal":
            tag = "replace" if i < i_end and j < j_end else "delete" if i < i_end else "insert"
        if found and (found[-1][0] == "equal") == (tag == "equal"):
            _, first_i, _, first_j, _ = found.pop()
            both = first_i < i_end and first_j < j_end
            kind = "replace" if both else "delete" if first_i < i_end else "insert"
            found.append((tag if tag == "equal" else kind, first_i, i_end, first_j, j_end))
        else:
            found.append((tag, i, i_end, j, j_end))
    return found


def _hunks(codes: list[Code]) -> Iterator[list[Code]]:
    """Yield changes that stand near each other, with some lines around them."""
    group: list[Code] = []
    for number, (tag, i, i_end, j, j_end) in enumerate(codes):
        if tag != "equal":
            group.append((tag, i, i_end, j, j_end))
            continue
        length = i_end - i
        after = min(length, _CONTEXT) if number else 0
        ahead = min(length, _CONTEXT) if number < len(codes) - 1 else 0
        if number and after + ahead >= length and ahead:
            group.append((tag, i, i_end, j, j_end))
            continue
        if group and after:
            group.append((tag, i, i + after, j, j + after))
        if group:
            yield group
        group = [(tag, i_end - ahead, i_end, j_end - ahead, j_end)] if ahead else []
    if any(code[0] != "equal" for code in group):
        yield group


class Told:
    """Hunks of a file that changed, up to so many lines and characters."""

    def __init__(self, old: bytes, new: bytes) -> None:
        self.is_cut = len(old) > LARGEST or len(new) > LARGEST
        self._old, self._new = lines_of(old[:LARGEST], new[:LARGEST])
        self._lines_left = MOST_LINES
        self._left = _MOST_TOLD
        self._words_left = _WORDS_IN_ALL
        self.hunks: list[dict[str, Any]] = []
        for group in _hunks(changes(self._old, self._new)):
            if self._lines_left <= 0 or self._left <= 0:
                self.is_cut = True
                break
            lines = list(self._lines(group))
            first = {"old_start": group[0][1] + 1, "new_start": group[0][3] + 1}
            self.hunks.append({**first, "lines": lines})

    def _lines(self, group: list[Code]) -> Iterator[dict[str, Any]]:
        for tag, i, i_end, j, j_end in group:
            if tag == "equal":
                for step in range(i_end - i):
                    words = [[self._text(self._new[j + step]), False]]
                    yield from self._line(" ", i + step + 1, j + step + 1, words)
                continue
            most = self._lines_left
            gone, came = self._marked(self._old[i:i_end][:most], self._new[j:j_end][:most])
            for at, words in enumerate(gone, i + 1):
                yield from self._line("-", at, None, words)
            for at, words in enumerate(came, j + 1):
                yield from self._line("+", None, at, words)
            self.is_cut = self.is_cut or i_end - i > most or j_end - j > most

    def _line(
        self, op: str, old: int | None, new: int | None, words: Words
    ) -> Iterator[dict[str, Any]]:
        self._lines_left -= 1
        self._left -= sum(len(text) for text, _ in words)
        if self._lines_left < 0 or self._left < 0:
            self.is_cut = True
            return
        yield {"op": op, "old": old, "new": new, "words": words}

    def _text(self, line: bytes) -> str:
        text = line.decode("utf-8", "replace")
        if len(text) <= LONGEST_LINE:
            return text
        self.is_cut = True
        return text[:LONGEST_LINE] + "…"

    def _marked(self, old: list[bytes], new: list[bytes]) -> tuple[list[Words], list[Words]]:
        """Return lines in words, each with whether it changed; lines are paired in their order."""
        before, after = [self._text(line) for line in old], [self._text(line) for line in new]
        gone: list[Words] = [[[line, True]] for line in before]
        came: list[Words] = [[[line, True]] for line in after]
        for at, pair in enumerate(zip(before, after, strict=False)):
            a, b = map(_WORDS.findall, pair)
            cost = len(a) * len(b)
            if cost > min(_GAP, self._words_left):
                continue
            self._words_left -= cost
            if (words := _in_words(a, b)) is not None:
                gone[at], came[at] = words
        return gone, came


def _in_words(a: list[str], b: list[str]) -> tuple[Words, Words] | None:
    """Return two lines in words; None if they have too little in common."""
    codes = _codes(a, b)
    same = sum(i_end - i for op, i, i_end, _, _ in codes if op == "equal")
    if 2 * same < _ALIKE * (len(a) + len(b)):
        return None
    gone: Words = []
    came: Words = []
    for op, i, i_end, j, j_end in codes:
        for words, mine in ((gone, a[i:i_end]), (came, b[j:j_end])):
            if mine:
                words.append(["".join(mine), op != "equal"])
    return gone, came


def unified(told: Told, old: str, new: str) -> str | None:
    """Return the same as one text, as ``diff -u`` writes it; None if nothing changed."""
    lines = [f"--- {old}", f"+++ {new}"]
    for hunk in told.hunks:
        counts = [sum(line[side] is not None for line in hunk["lines"]) for side in ("old", "new")]
        lines.append(f"@@ -{hunk['old_start']},{counts[0]} +{hunk['new_start']},{counts[1]} @@")
        lines += [line["op"] + "".join(text for text, _ in line["words"]) for line in hunk["lines"]]
    if told.is_cut:
        lines.append("@@ the rest is not shown @@")
    return "\n".join(lines) if told.hunks else None
