"""Measure what grows: ``python -m benchmarks.scale [--sizes 10000,1000000] [--stores sqlite]``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.environment import describe
from benchmarks.measure import scratch
from benchmarks.scale import long_session, tables
from benchmarks.scale.clock import QUICK, Cost, Effort, Timed, by_turns
from benchmarks.scale.load import load, load_expiring
from benchmarks.scale.long_session import KINDS, Opened
from benchmarks.scale.places import PLACES, AnyPlace, checkpoints_in, place_of
from benchmarks.scale.questions import QUESTIONS, SAVE, Question, Subject
from benchmarks.scale.shape import Shape
from benchmarks.scale.upkeep import WHAT, Kept, look_after

PARTS = ("questions", "upkeep", "session")
_SIZES, _CALLS = "10000,1000000", "100,1000,10000,100000"
_QUICK_SIZES, _QUICK_CALLS = "600,1200", "10,40"
_LENGTH, _QUICK_LENGTH = 200, 40
_EXPIRING = 20
"""One checkpoint of so many expires, before a sweep."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the tables; a whole run writes them into the page."""
    options = _parser().parse_args(arguments)
    sizes = options.sizes or _numbers(_QUICK_SIZES if options.quick else _SIZES)
    calls = options.calls or _numbers(_QUICK_CALLS if options.quick else _CALLS)
    with scratch(options.dir) as home:
        facts = describe(home)
        sections = {}
        for kind in options.stores:
            if {"questions", "upkeep"} & {*options.only}:
                stores = _Stores(kind, sizes, home, options.quick)
                sections[kind] = stores.measured(options.only)
        if "session" in options.only:
            sections["session"] = tables.sessions(_sessions(calls, home))
    names = ("Python", "system", "SQLite", "fsync of 4 KB", "holdfast")
    made_with = tables.made_with({name: facts[name] for name in names})
    for name, section in sections.items():
        text = f"{section}\n\nMade with:\n\n{made_with}"
        print(f"## {name}\n\n{text}\n")
        if options.write:
            tables.write(name, text)


class _Stores:
    """Stores of one kind, one of each size, and what they cost."""

    def __init__(self, kind: str, sizes: Sequence[int], home: Path, is_quick: bool) -> None:
        self._kind = kind
        self._effort = QUICK if is_quick else Effort()
        length = _QUICK_LENGTH if is_quick else _LENGTH
        self._shapes = {size: Shape(size, length) for size in sizes}
        self._places: dict[int, AnyPlace] = {}
        for size in sizes:
            directory = home / f"{kind}-{size}"
            directory.mkdir()
            self._places[size] = place_of(kind, directory, size)

    def measured(self, parts: Sequence[str]) -> str:
        """Load them and measure; return the tables."""
        with ExitStack() as last_first:
            for place in self._places.values():
                last_first.callback(place.remove)
            room = {size: self._loaded(size) for size in self._places}
            texts = [tables.room(room)]
            if "questions" in parts:
                found = self._questions()
                largest = max(room)
                count, taken, _ = room[largest]
                texts.append(tables.fleet(taken / count, found[SAVE][largest]))
                texts.append(tables.questions(found, self._kind == "postgres"))
            if "upkeep" in parts:
                texts.append(tables.upkeep({what: self._upkeep(what) for what in WHAT}))
        return "\n\n".join(texts)

    def _loaded(self, size: int) -> tuple[int, int, float]:
        place, began = self._places[size], time.perf_counter()
        with place.loading() as url:
            load(url, self._shapes[size])
        took = time.perf_counter() - began
        count = checkpoints_in(place.url)
        _say(f"{self._kind}, {count:,} checkpoints: loaded in {took:.1f} s")
        return count, place.bytes(), count / took

    def _questions(self) -> dict[str, dict[int, Cost]]:
        with ExitStack() as last_first:
            subjects = {}
            for size, place in self._places.items():
                subjects[size] = Subject(place.url, self._shapes[size])
                last_first.callback(subjects[size].close)
            return {each.name: self._asked(each, subjects) for each in QUESTIONS}

    def _asked(self, question: Question, subjects: dict[int, Subject]) -> dict[int, Cost]:
        timed = {
            size: Timed(_of(question, subject), self._places[size].cpu)
            for size, subject in subjects.items()
        }
        costs = by_turns(timed, self._effort)
        said = ", ".join(f"{cost.cpu * 1e3:.2f} ms at {size:,}" for size, cost in costs.items())
        _say(f"{self._kind}, {question.name}: {said}")
        return costs

    def _upkeep(self, what: str) -> dict[int, Kept]:
        found = {}
        for size, place in self._places.items():
            if what == "sweep":
                with place.loading() as url:
                    load_expiring(url, size // _EXPIRING, seconds=1.0)
                time.sleep(1.0)
            found[size] = look_after(what, place.url, self._effort.rest)
            _say(f"{self._kind}, {what} at {size:,}: {found[size]}")
        return found


def _of(question: Question, subject: Subject) -> Callable[[], object]:
    return lambda: question.ask(subject)


def _sessions(counts: Sequence[int], home: Path) -> dict[str, dict[int, Opened]]:
    found: dict[str, dict[int, Opened]] = {}
    for kind in KINDS:
        found[kind] = {}
        for count in counts:
            place = home / f"{kind}-{count}.db"
            long_session.make(f"sqlite:///{place}?durability=normal", kind, count)
            found[kind][count] = long_session.measure(f"sqlite:///{place}")
            _say(f"a session of {count:,} {kind}: {found[kind][count]}")
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument(
        "--sizes", type=_numbers, help=f"checkpoints of each store, by comma (default: {_SIZES})"
    )
    parser.add_argument(
        "--stores", type=_among(PLACES), default=list(PLACES), help="some of them (default: all)"
    )
    parser.add_argument(
        "--calls", type=_numbers, help=f"how old the session is, by comma (default: {_CALLS})"
    )
    parser.add_argument(
        "--only", type=_among(PARTS), default=list(PARTS), help=f"some of {', '.join(PARTS)}"
    )
    parser.add_argument("--quick", action="store_true", help="small stores: does it run at all?")
    parser.add_argument("--write", action="store_true", help="put the tables into SCALE.md")
    parser.add_argument("--dir", type=Path, help="a directory on the disk to measure")
    return parser


def _numbers(text: str) -> list[int]:
    numbers = [int(each.replace("_", "")) for each in text.split(",") if each.strip()]
    if not numbers or min(numbers) < 1:
        raise argparse.ArgumentTypeError("give numbers from 1, by comma")
    return sorted(numbers)


def _among(known: Sequence[str]) -> Callable[[str], list[str]]:
    def chosen(text: str) -> list[str]:
        wanted = [each.strip() for each in text.split(",") if each.strip()]
        unknown = [each for each in wanted if each not in known]
        if unknown or not wanted:
            raise argparse.ArgumentTypeError(f"choose of {', '.join(known)}, not {text!r}")
        return [each for each in known if each in wanted]

    return chosen


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
