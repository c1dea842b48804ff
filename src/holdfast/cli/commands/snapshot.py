"""``holdfast snapshot``: keep a directory as it is."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from holdfast.cli.access.opening import open_client
from holdfast.cli.exits import OK
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import many, size
from holdfast.cli.parsing import Parser
from holdfast.system.terminal_text import clean

_LISTED = 20


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "Adds a checkpoint that holds the files. It costs what changed since the last time. What\n"
        ".gitignore and .holdfastignore name is left out.",
        'holdfast snapshot -m "before the refactoring"',
        "holdfast snapshot ~/site --session site",
    )
    parser.add_argument(
        "directory", nargs="?", type=Path, default=Path(), metavar="DIR", help="which (here)"
    )
    parser.add_argument("-m", "--message", metavar="NAME", help="the step name of the checkpoint")
    parser.add_argument(
        "--agent", metavar="NAME", default="files", help="of this agent (%(default)s)"
    )
    parser.add_argument(
        "--session", metavar="NAME", help="in this session (default: one for the directory)"
    )
    parser.add_argument("--include-ignored", action="store_true", help="ignored files too")
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Keep a directory as a checkpoint."""
    from holdfast.client.with_files import save_with_files
    from holdfast.workspace import Workspace

    with (
        open_client(options) as client,
        Workspace(
            options.directory, store=client, include_ignored=options.include_ignored
        ) as workspace,
    ):
        checkpoint_id, kept = save_with_files(
            client,
            workspace,
            agent_id=options.agent,
            session_id=options.session or workspace.name,
            name=options.message,
            state={},
            tags={},
            progress=terminal.progress("files"),
        )
    if terminal.json:
        terminal.emit(
            {
                "checkpoint_id": checkpoint_id,
                "session_id": options.session or workspace.name,
                "tree_id": kept.tree_id,
                "files": kept.files,
                "bytes": kept.bytes,
                "new_bytes": kept.new_bytes,
                "skipped": [{"path": each.path, "reason": each.reason} for each in kept.skipped],
            }
        )
        return OK
    terminal.line(
        f"kept {many(kept.files, 'file')} ({size(kept.bytes)}, {size(kept.new_bytes)} new) as "
        f"{checkpoint_id}"
    )
    for each in kept.skipped[:_LISTED]:
        terminal.line(f"  left out: {clean(each.path)} ({clean(each.reason)})")
    if len(kept.skipped) > _LISTED:
        terminal.line(f"  … and {len(kept.skipped) - _LISTED} more")
    return OK
