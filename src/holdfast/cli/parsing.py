"""The parser of one command: common options, help that reads well, errors that suggest."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Any, NoReturn

from holdfast.cli.commands import COMMANDS, GROUPS, HIDDEN, Command
from holdfast.cli.exits import UsageError

_LONGEST = 100
_COMPARED = 2000
_DIGITS = 9


class Parser(argparse.ArgumentParser):
    """A parser whose errors are UsageErrors with a suggestion."""

    def __init__(self, command: Command) -> None:
        super().__init__(
            prog=f"holdfast {command.name}",
            description=command.summary[0].upper() + command.summary[1:] + ".",
            # Each argument is formatted once to try it: at any width, as asking for it takes long.
            formatter_class=partial(argparse.RawDescriptionHelpFormatter, width=_LONGEST),
            allow_abbrev=False,
        )

    def format_help(self) -> str:
        """Return the help, as wide as the terminal is."""
        self.formatter_class = argparse.RawDescriptionHelpFormatter
        return super().format_help()

    def explain(self, text: str, *examples: str) -> None:
        """Say more than the summary, with examples."""
        self.description = f"{self.description}\n\n{text}"
        if examples:
            self.epilog = "examples:\n" + "\n".join(f"  {example}" for example in examples)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: None = None
    ) -> argparse.Namespace:
        # Else a list of words would have to be written in one go, before or after all options.
        takes_a_list = any(action.nargs in ("*", "+") for action in self._get_positional_actions())
        parse = self.parse_known_intermixed_args if takes_a_list else self.parse_known_args
        options, unknown = parse(args, namespace)
        if unknown:
            known = [each for action in self._actions for each in action.option_strings]
            raise UsageError(
                f"{self.prog} takes no {unknown[0][:_LONGEST]}{guess(unknown[0], known)}; "
                f"see {self.prog} --help"
            )
        return options


def parser_of(command: Command) -> Parser:
    """Return the parser of a command, ready to be used."""
    parser = Parser(command)
    command.set_up(parser)
    taken = {each for action in parser._actions for each in action.option_strings}
    common = parser.add_argument_group("common options")
    if "--store" not in taken:
        common.add_argument(
            "--store",
            metavar="URL",
            help="the store (default: HOLDFAST_URL, else the nearest .holdfast/ upwards)",
        )
    if "--json" not in taken:
        common.add_argument("--json", action="store_true", help="answer in JSON")
    common.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="colours: on a terminal unless NO_COLOR is set (auto), always or never",
    )
    common.add_argument("--no-pager", action="store_true", help="do not page long output")
    return parser


def count(text: str) -> int:
    """Return a number of things, for arguments that are one."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        raise argparse.ArgumentTypeError(f"{text[:_LONGEST]!r} is no number from 0 to a billion")
    return int(text)


def add_session(parser: argparse.ArgumentParser, positional: bool = False) -> None:
    """Let a command be told which session is meant."""
    meant = "the session: its name, AGENT/NAME or the beginning of it (default: the newest)"
    if positional:
        parser.add_argument("session", nargs="?", metavar="SESSION", help=meant)
    else:
        parser.add_argument("--session", metavar="SESSION", help=meant)


def add_checkpoint(
    parser: argparse.ArgumentParser, name: str = "checkpoint", nargs: str | None = "?", **more: Any
) -> None:
    """Let a command be told which checkpoint is meant."""
    more.setdefault(
        "help",
        "a checkpoint: the beginning of its id, its step name, @ (the head), @- or @~2 (before "
        "it), SESSION@",
    )
    parser.add_argument(name, nargs=nargs, metavar="ID", **more)


def guess(word: str, known: Iterable[str]) -> str:
    """Return a suggestion for a word that was mistyped, to be put behind a message."""
    close = close_to(word, known)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def close_to(word: str, known: Iterable[str]) -> list[str]:
    """Return the known words that are most like a word that was mistyped."""
    import difflib

    if len(word) > _LONGEST:
        return []  # comparing takes as long as both words are, multiplied
    near = sorted(each for each in islice(known, _COMPARED) if len(each) <= _LONGEST)
    return difflib.get_close_matches(word, near, 2, 0.6)


def command_of(name: str) -> Command:
    """Return the command of that name; else an error with a suggestion."""
    if name in COMMANDS:
        return COMMANDS[name]
    shown = [each.name for each in COMMANDS.values() if each.group != HIDDEN]
    raise UsageError(f"there is no command {name!r}{guess(name, shown)}; see holdfast --help")


def overview() -> str:
    """Return what ``holdfast --help`` prints."""
    lines = [
        "usage: holdfast COMMAND [OPTIONS]",
        "",
        "Checkpoint, rewind and fork AI agents.",
    ]
    for group in GROUPS:
        lines += ["", f"{group}:"]
        lines += [f"  {c.name:<11} {c.summary}" for c in COMMANDS.values() if c.group == group]
    lines += [
        "",
        "holdfast COMMAND --help tells more about one; holdfast --version tells the version.",
        "A checkpoint is named by the beginning of its id, its step name, @ (the head of the",
        "newest session), @- or @~2 (its ancestors), or SESSION@. Every command takes --json.",
    ]
    return "\n".join(lines)
