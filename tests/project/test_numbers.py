"""One number for one measurement: what documents quote is what the table of benchmarks has."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

QUOTED = [
    ("README.md", "500 messages take {} instead of", "LG", "LangGraph on Holdfast", "bytes kept"),
    ("README.md", "1.9 MB instead of {}, every", "LG", "LangGraph on SqliteSaver", "bytes kept"),
    ("README.md", "saved after each, takes {} instead", "S2", "Holdfast", "bytes kept"),
    ("README.md", "1.1 MB instead of {} (", "S2", "LangGraph SqliteSaver", "bytes kept"),
    ("docs/langgraph.md", "changed: [{}]", "LG", "LangGraph on Holdfast", "bytes kept"),
    ("docs/langgraph.md", "500 copies: {} |", "LG", "LangGraph on SqliteSaver", "bytes kept"),
    ("docs/redis.md", "of 1 KB takes {} in all", "S2-redis", "Holdfast, redis", "bytes kept"),
    ("docs/postgres.md", "of 1 KB takes {} in", "S2-postgres", "Holdfast, postgres", "bytes kept"),
]


def measured(part: str, row: str, column: str) -> str:
    text = (ROOT / "benchmarks" / "README.md").read_text("utf-8")
    section = text.partition(f"\n### {part}\n")[2].partition("\n### ")[0]
    head, _, *rows = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if line.startswith("|")
    )
    (found,) = [each for each in rows if each[0] == row]
    return found[head.index(column)]


@pytest.mark.parametrize(("document", "phrase", "part", "row", "column"), QUOTED)
def test_a_number_that_is_quoted_is_the_one_in_the_table(
    document: str, phrase: str, part: str, row: str, column: str
) -> None:
    text = " ".join((ROOT / document).read_text("utf-8").split())

    assert phrase.format(measured(part, row, column)) in text
