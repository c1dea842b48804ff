"""``holdfast restore``: put the files of a checkpoint into a directory."""

from __future__ import annotations

import shlex
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.access.opening import open_client
from holdfast.cli.exits import OK, Refused
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import many
from holdfast.cli.parsing import Parser, add_checkpoint, add_session
from holdfast.system.terminal_text import clean

if TYPE_CHECKING:
    from holdfast.workspace import Restored

_LISTED = 20


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "Without --to, the directory that the files were captured in, if you are in it. What is "
        "there is\nkept first: the tree that is named at the end leads back. A new directory is "
        "made as it is.",
        "holdfast restore @~2 --dry-run",
        "holdfast restore before-the-refactoring src/main.py --yes",
        "holdfast restore 019a9563e5d2 --to ../copy",
    )
    add_checkpoint(parser, nargs=None, help="a checkpoint that has files, or the id of a tree")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="only these files or directories")
    parser.add_argument("--to", type=Path, metavar="DIR", help="the directory")
    add_session(parser)
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Show what would be done to the files, ask, and do it."""
    from holdfast.cli.access.putting_back import put_back
    from holdfast.cli.access.trees import find_tree, folder_of

    with open_client(options) as client:
        tree = find_tree(client, options.checkpoint, options.session)
        target = options.to or folder_of(tree)
        if target is None:
            raise Refused(
                f"the files are of another directory ({tree.workspace}): go there, or say where "
                "to with --to DIR"
            )
        with put_back(client, tree, target, options.paths) as putting:
            planned = putting.planned
            if planned is not None and not terminal.json:
                _preview(planned, target, terminal)
            if options.dry_run or not putting.is_needed:
                if terminal.json:
                    terminal.emit(putting.as_json(planned, options.dry_run))
                elif planned is None:
                    _say_new(tree.files, target, "would write", terminal)
                return OK
            if planned is not None:
                terminal.confirm(f"Change the files in {target}?")
            done_ = putting.carry_out(terminal.progress("files"))
    if terminal.json:
        terminal.emit(putting.as_json(done_, False))
    elif done_ is None:
        _say_new(tree.files, target, "wrote", terminal)
    else:
        there = f" --to {shlex.quote(str(options.to))}" if options.to else ""
        terminal.line(f"done; `holdfast restore {done_.undo_tree}{there}` leads back")
        for each in done_.stayed:
            terminal.line(f"  stays, as something in it is ignored or new: {clean(each)}")
        for each in done_.late:
            terminal.line(
                f"  was changed meanwhile, and is in the tree that leads back: {clean(each)}"
            )
        for each in done_.held:
            terminal.line(f"  was open for writing, and is kept as {clean(each)}")
    return OK


def _preview(planned: Restored, target: Path, terminal: Terminal) -> None:
    if not planned.changed:
        terminal.line(f"the files in {clean(str(target))} are so already")
        return
    lines = [
        *(terminal.paint(f"write  {clean(each)}", "good") for each in planned.written),
        *(terminal.paint(f"remove {clean(each)}", "bad") for each in planned.removed),
        *(terminal.paint(f"touch  {clean(each)}", "dim") for each in planned.touched),
    ]
    for line in lines[:_LISTED]:
        terminal.line(line)
    if len(lines) > _LISTED:
        terminal.line(f"… and {len(lines) - _LISTED} more")


def _say_new(files: int, target: Path, done: str, terminal: Terminal) -> None:
    terminal.line(f"{done} {many(files, 'file')} to {clean(str(target))}")
