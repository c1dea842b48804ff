"""``holdfast __complete``: what a word can be completed to, for the scripts of shells."""

from __future__ import annotations

from argparse import REMAINDER, Action, Namespace
from collections.abc import Iterator

from holdfast.cli.access.opening import open_client
from holdfast.cli.commands import COMMANDS, HIDDEN
from holdfast.cli.exits import OK
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.parsing import Parser, parser_of
from holdfast.cli.words import split
from holdfast.errors import HoldfastError

_NAMES = 200


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.add_argument("words", nargs=REMAINDER, help="what was typed, the unfinished word last")
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Print what fits."""
    *before, word = options.words or [""]
    for each in sorted(set(candidates(before, word))):
        if each.startswith(word):
            terminal.line(each)
    return OK


def candidates(before: list[str], word: str) -> Iterator[str]:
    """Yield what may stand in the place of a word."""
    name, rest = split(before)
    if name is None:
        yield from ("--store", "--help", "--version") if word.startswith("-") else _commands()
        return
    if name not in COMMANDS:
        return
    parser = parser_of(COMMANDS[name])
    option = next((a for a in parser._actions if rest and rest[-1] in a.option_strings), None)
    if option is not None and option.nargs != 0:
        yield from _values(option, rest)
    elif word.startswith("-"):
        for action in parser._actions:
            yield from action.option_strings
    else:
        for action in parser._actions:
            if not action.option_strings:
                yield from _values(action, rest)


def _commands() -> Iterator[str]:
    return (command.name for command in COMMANDS.values() if command.group != HIDDEN)


def _values(action: Action, rest: list[str]) -> Iterator[str]:
    if action.choices is not None:
        yield from map(str, action.choices)
    elif action.metavar in ("SESSION", "ID"):
        yield from _known(rest, with_steps=action.metavar == "ID")


def _known(rest: list[str], with_steps: bool) -> Iterator[str]:
    """Yield sessions, or names of checkpoints, of the store that is meant, if there is one."""
    store = rest[rest.index("--store") + 1] if "--store" in rest[:-1] else None
    try:
        with open_client(Namespace(store=store)) as client:
            sessions = [each.session_id for each in client.sessions(limit=_NAMES)]
            infos = client.find(limit=_NAMES) if with_steps else []
    except HoldfastError:  # a completion has nobody to tell
        return
    if not with_steps:
        yield from sessions
        return
    yield from ("@", "@-")
    yield from (f"{each}@" for each in sessions)
    yield from (info.step_name for info in infos if info.step_name)
