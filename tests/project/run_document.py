"""Run what a Markdown file shows, from top to bottom, in the current directory.

    python tests/project/run_document.py README.md

- ```python           runs; all such blocks of a file share one namespace
- ```python title=F   is written to the file F, which a later block has to use
- ```console          `$ holdfast ...` and `$ python ...` run; the output shown below a command,
                      if any, has to match, with `...` standing for anything

Blocks in other languages are text: use ```sh for what cannot run here, such as an installation.
"""

import doctest
import os
import re
import subprocess
import sys
import sysconfig
import textwrap
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r" *(?P<ticks>`{3,}) *(?P<info>[^`]*)")
RUNNABLE = re.compile(r"(\w+=\S* +)*(holdfast|python3?)\b")


class DocumentError(Exception):
    """What a document shows is not what happens."""


@dataclass(frozen=True)
class Block:
    """A fenced block, and the line of the file its text starts on."""

    info: str
    text: str
    line: int


def main(path: Path) -> None:
    blocks = list(parse(path.read_text("utf-8")))
    sys.path[0] = ""  # files the document writes can be imported
    # Classes defined in an example live in __main__, as they do in a reader's script.
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    for number, block in enumerate(blocks):
        try:
            match block.info.split(maxsplit=1):
                case ["python"]:
                    run_python(block, path, module)
                case ["python", title] if title.startswith("title="):
                    write_file(block, title.removeprefix("title=").strip("\"'"), blocks[number:])
                case ["console"]:
                    run_console(block)
                case ["python" | "python3" | "py" | "pycon" | "console", *_]:
                    raise DocumentError("the only forms are python, python title=... and console")
        except DocumentError as error:
            sys.exit(f"{path}:{block.line}: ```{block.info}: {error}")


def parse(text: str) -> Iterator[Block]:
    ticks, info, lines, first = "", "", list[str](), 0
    for number, line in enumerate(text.splitlines(), start=1):
        fence = FENCE.fullmatch(line)
        if not ticks and fence:
            ticks, info, lines, first = fence["ticks"], fence["info"].strip(), [], number + 1
        elif fence and not fence["info"] and len(fence["ticks"]) >= len(ticks):
            yield Block(info, textwrap.dedent("\n".join(lines)) + "\n", first)
            ticks = ""
        else:
            lines.append(line)
    if ticks:
        raise DocumentError(f"the block that starts on line {first} has no end")


def run_python(block: Block, path: Path, module: types.ModuleType) -> None:
    # Blank lines in front make a traceback point into the document.
    exec(compile("\n" * (block.line - 1) + block.text, path, "exec"), module.__dict__)


def write_file(block: Block, name: str, later: list[Block]) -> None:
    if not any(re.search(rf"\b{re.escape(Path(name).stem)}\b", b.text) for b in later[1:]):
        raise DocumentError(f"no later block runs or imports {name}")
    Path(name).write_text(block.text, "utf-8")


def run_console(block: Block) -> None:
    for entry in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, shown = entry.partition("\n")
        if RUNNABLE.match(command):
            run_command(command, shown.rstrip())


def run_command(command: str, shown: str) -> None:
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
    done = subprocess.run(
        command,
        shell=True,
        env=os.environ | {"PATH": path, "COLUMNS": "100", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    printed = "\n".join(line.rstrip() for line in done.stdout.rstrip().splitlines())
    if shown:
        if not doctest.OutputChecker().check_output(shown, printed, doctest.ELLIPSIS):
            raise DocumentError(f"`{command}` printed\n{printed}\nbut the document shows\n{shown}")
    elif done.returncode != 0:
        raise DocumentError(f"`{command}` ended with {done.returncode}\n{printed}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
