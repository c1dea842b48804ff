"""Every command with each of its options, made from the parsers: a new command is among them."""

import io
import sys
import unicodedata
from argparse import Action
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

from holdfast.cli import main
from holdfast.cli.commands import COMMANDS, HIDDEN
from holdfast.cli.parsing import Parser, parser_of
from tests.cli.kit import Done

LEFT_OUT = ("demo", "mcp", "ui", "wrap")
"""They start programs of their own or serve, and have tests of their own."""
ENDING = {"watch": ["--timeout", "0"], "bisect": ["--python", "state != 1"]}
"""What a command needs to end, or to begin."""
GIVEN = {"hook": '{"session_id": "s", "hook_event_name": "Stop"}'}
"""What a command reads from its standard input."""


def commands() -> list[str]:
    return [
        each.name
        for each in COMMANDS.values()
        if each.group != HIDDEN and each.name not in LEFT_OUT
    ]


def writings(name: str, words: dict[str, str]) -> Iterator[list[str]]:
    """A command as it can be written: plain, with each option alone, and each of these in JSON.

    ``words`` says what stands for a session, a checkpoint and so on, by what the help calls it.
    """
    parser = parser_of(COMMANDS[name])
    needed = ENDING.get(name, [])
    own = [a for a in parser._actions if a.option_strings and a.dest != "help"]
    extra: list[list[str]] = [[]] + [
        _written(action, words)
        for action in own
        if action.option_strings[0] not in (*needed, "--store", "--json", "--color", "--no-pager")
    ]
    for positional in _positional(parser, words):
        for option in extra:
            for how in ([], ["--json"]):
                yield [name, *needed, *option, *how, *positional]


def _positional(parser: Parser, words: dict[str, str]) -> Iterator[list[str]]:
    """The words without an option: all of them, and those alone that are needed."""
    actions = [a for a in parser._actions if not a.option_strings]
    every = [_word(action, words) for action in actions]
    least = [_word(a, words) for a in actions if a.nargs not in ("?", "*")]
    yield ["--", *every] if every else []
    if least != every:
        yield ["--", *least] if least else []


def _written(action: Action, words: dict[str, str]) -> list[str]:
    name = max(action.option_strings, key=len)
    return [name] if action.nargs == 0 else [f"{name}={_word(action, words)}"]


def _word(action: Action, words: dict[str, str]) -> str:
    if action.choices is not None:
        return str(next(iter(action.choices)))
    return words.get(str(action.metavar), words.get("NAME", "odd"))


class _Input(io.TextIOWrapper):
    def isatty(self) -> bool:
        return False


def run(arguments: list[str], given: str = "") -> Done:
    """The command, in this very process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    stdin = _Input(io.BytesIO(given.encode("utf-8", "surrogateescape")), "utf-8")
    with mock.patch.object(sys, "stdin", stdin), redirect_stdout(out), redirect_stderr(err):
        code = main(arguments)
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    return Done(code, *texts)


def faults(done: Done, codes: range = range(8)) -> list[str]:
    """What is wrong with how a command ended: nothing, if all is well."""
    found = []
    if done.code not in codes:
        found.append(f"it ended with {done.code}")
    if "Traceback" in done.err or "fault of holdfast" in done.err:
        found.append(done.err[-300:])
    steering = {c for c in done.out + done.err if _steers(c)}
    if steering:
        found.append(f"it printed {sorted(map(ascii, steering))}")
    if done.code and not done.err.startswith(("holdfast: ", '{"error"')) and not done.out:
        found.append(f"it ended with {done.code} and says nothing")
    return found


def _steers(character: str) -> bool:
    return character not in "\n\t" and unicodedata.category(character) in (
        "Cc",
        "Cf",
        "Cs",
        "Zl",
        "Zp",
    )


def store_of(path: Path) -> str:
    return f"sqlite:///{path}"
