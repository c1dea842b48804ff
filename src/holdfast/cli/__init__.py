"""The command line.

Each command is a module of ``commands`` that sets up a parser and what it runs:
``run(options, terminal)``, which returns an exit code of ``exits.py``. ``access`` finds what is
meant in a store, ``output`` shows it, ``hooks`` is for coding agents.
"""

from __future__ import annotations

import os
import sys

from holdfast._version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``holdfast``; returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if sys.stdout is None:  # closed by who started this
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if words in (["--version"], ["-V"]):
        print(f"holdfast {__version__}")
        return 0
    if "hook" in words and (event := _event_of(words)) is not None:
        return _record(event)
    from holdfast.cli import interrupts

    interrupts.note()
    try:
        code = _run(words)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has gone. What is left in the buffer must not raise once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except BaseException as error:
        if not (interrupts.came() or isinstance(error, KeyboardInterrupt)):
            raise
        print("holdfast: interrupted", file=sys.stderr)
        return 130
    finally:
        interrupts.leave()
    return code


def _event_of(words: list[str]) -> list[str] | None:
    """Return the words of a hook that records an event; None for any other command."""
    from holdfast.cli.words import split
    from holdfast.coding_agents.hook_options import is_event

    name, rest = split(words)
    return rest if name == "hook" and is_event(rest) else None


def _record(words: list[str]) -> int:
    """Record an event; ends with 0 or 1 whatever happens, as 2 forbids the agent to go on."""
    try:
        from holdfast.coding_agents.entry import record

        outcome = record(words)
        if outcome.problem or "--json" in words or os.isatty(0):
            from holdfast.cli.commands.hook import tell

            tell(outcome, "--json" in words)
        return 1 if outcome.problem else 0
    except BaseException:  # of which the log has been told, if that was possible
        return 1


def _run(words: list[str]) -> int:
    from holdfast.cli import interrupts
    from holdfast.cli.exits import Fault
    from holdfast.cli.output.terminal import Terminal, report
    from holdfast.cli.parsing import command_of, overview, parser_of
    from holdfast.cli.words import split
    from holdfast.errors import HoldfastError

    name, rest = split(words)
    as_json = "--json" in words[: words.index("--") if "--" in words else None]
    try:
        if name == "help":
            name, rest = (rest[0], ["--help"]) if rest else (None, [])
        if name is None and ("--help" in rest or "-h" in rest or not rest):
            print(overview())
            return 0 if words else 2
        options = parser_of(command_of(name or rest[0])).parse_args(rest)
        terminal = Terminal(options)
        code = int(options.run(options, terminal))
        terminal.flush()
        return code
    except BrokenPipeError:
        raise
    except (HoldfastError, OSError) as error:  # a file may not be written, a disk be full
        interrupts.check()  # which may be the cause of it
        return report(error, as_json)
    except SystemExit as end:  # argparse has printed the help
        return int(end.code or 0)
    except Exception as error:
        interrupts.check()
        if os.environ.get("HOLDFAST_DEBUG"):
            raise
        return report(Fault(error), as_json)
