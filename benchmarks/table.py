"""Results as Markdown, for the terminal and for the README."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.bars import BARS, Outcome, judge
from benchmarks.contenders import ALL
from benchmarks.measure import BYTES, PER_SECOND, RATIO, SECONDS, Results

README = Path(__file__).parent / "README.md"
START, END = "<!-- results: start -->", "<!-- results: end -->"
FRAMEWORKS_START, FRAMEWORKS_END = "<!-- frameworks: start -->", "<!-- frameworks: end -->"


def render(results: Results, environment: Mapping[str, str], parts: Iterable[str]) -> str:
    parts = list(parts)
    sections = [
        "### Bars",
        bars(results, parts),
        *(figures(results, part) for part in parts),
        "### Made with",
        "\n".join(f"- {name}: {value}" for name, value in environment.items()),
    ]
    if results.notes:
        sections += ["### Notes", "\n".join(f"- {note}" for note in results.notes)]
    return "\n\n".join(section for section in sections if section)


def bars(results: Results, parts: Iterable[str]) -> str:
    chosen = set(parts)
    rows = [_bar_row(judge(bar, results)) for bar in BARS if bar.part in chosen]
    header = ["", "Holdfast", "ours", "peer", "its", "ratio", "bar", "aim", "holds"]
    return _table(header, rows)


def figures(results: Results, part: str) -> str:
    """Everything measured in a part, a row for each contender."""
    keys = [key for key in results.figures if key[0] == part]
    quantities = list(dict.fromkeys(quantity for _, quantity, _ in keys))
    contenders = list(dict.fromkeys(contender for _, _, contender in keys))
    rows = [
        [name, results.durability.get(name, ""), *_cells(results, part, quantities, name)]
        for name in sorted(contenders, key=list(ALL).index)
    ]
    return f"### {part}\n\n{_table(['', 'durability', *quantities], rows)}" if rows else ""


def write_readme(table: str, start: str = START, end: str = END, page: Path = README) -> None:
    """Put a table in the place of the one that is there."""
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(start)
    _, after = rest.split(end)
    page.write_text(f"{before}{start}\n\n{table}\n\n{end}{after}", encoding="utf-8")


def amount(value: float | None, unit: str) -> str:
    """A figure in the unit a reader would choose."""
    if value is None:
        return "–"
    if unit == SECONDS:
        return f"{value * 1e6:,.0f} µs" if value < 10e-3 else f"{value * 1e3:,.1f} ms"
    if unit == BYTES:
        if value < 10_000:
            return f"{value:,.0f} B"
        return f"{value / 1e3:,.0f} KB" if value < 1e6 else f"{value / 1e6:,.1f} MB"
    if unit == PER_SECOND:
        return f"{value:,.0f} /s"
    return f"{value:.2f}" if unit == RATIO else str(value)


def _cells(results: Results, part: str, quantities: list[str], name: str) -> list[str]:
    found = (results.get(part, quantity, name) for quantity in quantities)
    return [amount(figure.value, figure.unit) if figure else "" for figure in found]


def _bar_row(outcome: Outcome) -> list[str]:
    bar = outcome.bar
    sign = "≥" if bar.at_least else "≤"

    def limit(value: float | None) -> str:
        if value is None:
            return ""
        return f"{sign} {value:g}" if bar.peer else f"{sign} {amount(value, outcome.unit)}"

    return [
        bar.label,
        bar.ours.removeprefix("Holdfast").lstrip(", ") or "full",
        amount(outcome.ours, outcome.unit),
        bar.peer or "",
        amount(outcome.peer, outcome.unit) if bar.peer else "",
        _ratio(outcome.value) if bar.peer else "",
        limit(bar.limit),
        limit(bar.aim),
        _verdict(outcome),
    ]


def _ratio(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.4f}" if value < 0.1 else f"{value:.2f}"


def _verdict(outcome: Outcome) -> str:
    if outcome.holds is None:
        return "not measured"
    if not outcome.holds:
        return "**no**"
    return "yes, and the aim" if outcome.reaches_aim else "yes"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
