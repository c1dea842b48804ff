"""What is lost between frameworks, as the table in docs/frameworks.md says."""

import re
from functools import cache

from tests.frameworks.kit import ROOT

PAGE = ROOT / "docs" / "frameworks.md"
NONE = "nothing"
WORDS = {
    "system prompt": re.compile(r"^\$\.system_instructions"),
    "bytes of images": re.compile(r"encodes anew as a PNG"),
    "hints": re.compile(r"a hint of AgentScope's own"),
}
"""The words of the table, and how a loss reads that they stand for."""


@cache
def _table() -> dict[str, tuple[bool, set[str], set[str]]]:
    """Return of each framework whether it holds its prompt, what leaving and what coming loses."""
    found = {}
    for line in PAGE.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and re.fullmatch(r"`\w+`", cells[0]):
            name, holds, leaving, coming = cells
            found[name.strip("`")] = holds == "yes", _words(leaving), _words(coming)
    assert len(found) == 10, "the table of ten frameworks is gone from the page"
    return found


def _words(cell: str) -> set[str]:
    words = {word.strip() for word in cell.split(",")} - {NONE}
    assert words <= WORDS.keys(), f"the table has words that nothing stands for: {words}"
    return words


def losses_of(one: str, other: str) -> set[str]:
    """Return what the reference conversation loses from one framework to another."""
    holds_prompt, leaving, _ = _table()[one]
    coming = _table()[other][2]
    return leaving | (coming if holds_prompt else coming - {"system prompt"})


def words_of(lost: list[str]) -> set[str]:
    """Return the words of the table for what was lost; a loss that it does not know is told."""
    found = set()
    for each in lost:
        words = [word for word, pattern in WORDS.items() if pattern.search(each)]
        found.add(words[0] if words else each)
    return found
