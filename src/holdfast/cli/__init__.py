"""The command line.

Each command is a module of ``commands`` that sets up a parser and what it runs:
``run(options, terminal)``, which returns an exit code of ``exits.py``. ``access`` finds what is
meant in a store, ``output`` shows it, ``hooks`` is for coding agents.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from holdfast._version import __version__
from holdfast.cli import interrupts


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``holdfast``; returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if sys.stdout is None:  # closed by who started this
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if words in (["--version"], ["-V"]):
        print(f"holdfast {__version__}")
        return 0
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


def _run(words: list[str]) -> int:
    from holdfast.cli.exits import FAILED, Fault
    from holdfast.cli.output.terminal import Terminal, report
    from holdfast.cli.parsing import command_of, overview, parser_of, split
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
        code = report(error, as_json)
        # To a coding agent 2 says that the tool call is forbidden: no event is told so.
        is_event = name == "hook" and not {"install", "uninstall"} & set(rest)
        return FAILED if is_event else code
    except SystemExit as end:  # argparse has printed the help
        return int(end.code or 0)
    except Exception as error:
        interrupts.check()
        if os.environ.get("HOLDFAST_DEBUG"):
            raise
        return report(Fault(error), as_json)
