"""Run the benchmarks: `python -m benchmarks [--only S1,S2] [--quick] [--repeat N] [--write]`."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter

from benchmarks import environment, table
from benchmarks.measure import Results, scratch
from benchmarks.parts import PARTS
from benchmarks.settings import Settings


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    settings = Settings(
        quick=options.quick,
        repeat=options.repeat or (1 if options.quick else 3),
        directory=options.dir,
    )
    with scratch(settings.directory) as home:
        made_with = environment.describe(home)
    results = Results()
    asyncio.run(_run(options.only, settings, results))
    report = table.render(results, made_with, options.only)
    print(report)
    _say(f"raw results: {_keep_raw(options.raw, results, made_with)}")
    whole = not options.quick and options.only == list(PARTS)
    if whole if options.write is None else options.write:
        table.write_readme(report)
        _say("benchmarks/README.md rewritten")


async def _run(parts: Sequence[str], settings: Settings, results: Results) -> None:
    for part in parts:
        start = perf_counter()
        await PARTS[part](settings, results)
        _say(f"{part}: {perf_counter() - start:.1f} s")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only",
        type=_parts,
        default=list(PARTS),
        metavar="PARTS",
        help=f"some of {', '.join(PARTS)}, by comma; S2 includes S2-long and S2-typed",
    )
    parser.add_argument("--quick", action="store_true", help="fewer samples and a smaller S4")
    parser.add_argument("--repeat", type=int, metavar="N", help="runs of S1, S2 and S3")
    parser.add_argument(
        "--write",
        action=argparse.BooleanOptionalAction,
        help="rewrite the table in README.md (default: after a full run of all parts)",
    )
    parser.add_argument("--raw", type=Path, metavar="FILE", help="where to keep every sample")
    parser.add_argument("--dir", type=Path, help="a directory on the disk to measure")
    return parser


def _parts(text: str) -> list[str]:
    wanted = [name.strip().lower() for name in text.split(",") if name.strip()]
    chosen = [part for part in PARTS if any(_names(name, part) for name in wanted)]
    unknown = [name for name in wanted if not any(_names(name, part) for part in PARTS)]
    if unknown or not chosen:
        raise argparse.ArgumentTypeError(f"no such part: {', '.join(unknown)}")
    return chosen


def _names(name: str, part: str) -> bool:
    return part.lower() == name or part.lower().startswith(f"{name}-")


def _keep_raw(file: Path | None, results: Results, made_with: Mapping[str, str]) -> Path:
    if file is None:
        file = Path(tempfile.mkdtemp(prefix="bench-results-")) / "results.json"
    raw = {
        "made_with": made_with,
        "notes": results.notes,
        "figures": [
            {
                "part": part,
                "quantity": quantity,
                "contender": contender,
                "unit": figure.unit,
                "median": figure.value,
                "samples": figure.samples,
            }
            for (part, quantity, contender), figure in results.figures.items()
        ],
    }
    file.write_text(json.dumps(raw, indent=1, ensure_ascii=False), encoding="utf-8")
    return file


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    main()
