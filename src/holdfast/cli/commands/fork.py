"""``holdfast fork``."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from holdfast.cli.access.forking import forked_json, free_name
from holdfast.cli.access.links import link, say_hook, say_linked
from holdfast.cli.access.naming import Names
from holdfast.cli.access.opening import open_client
from holdfast.cli.exits import OK, NotFound
from holdfast.cli.output.checkpoints import step_of
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.parsing import Parser, add_checkpoint, add_session
from holdfast.system.terminal_text import clean


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "The new session has the state, plan and files of the checkpoint; the old one is left as "
        "it is.\nWith --to its files are put into a new directory. It belongs to this store from "
        "then on: the command\nline, the library and hooks there mean it, and the first session "
        "that the same coding agent begins\nthere follows the fork.",
        "holdfast fork",
        "holdfast fork tests-pass --as bolder",
        "holdfast fork @~2 --as bolder --to ../bolder",
    )
    add_checkpoint(parser)
    add_session(parser)
    parser.add_argument(
        "--as", dest="name", metavar="NAME", help="the new session (default: SESSION.1, .2, …)"
    )
    parser.add_argument("--to", type=Path, metavar="DIR", help="put its files here; must be new")
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Fork the checkpoint that is named."""
    with open_client(options) as client:
        names = Names(client)
        source = names.checkpoint(options.checkpoint, options.session)
        name = options.name or free_name(names, source)
        if options.to is not None:
            from holdfast.cli.access.trees import unpack
            from holdfast.client.with_files import snapshot_of

            tree = snapshot_of(client, source)
            if tree is None:
                raise NotFound(f"checkpoint {source.checkpoint_id!r} was saved without files")
            unpack(client, tree, options.to, terminal.progress("files"))
        made = client.fork(source.checkpoint_id, session_id=name)
    is_linked = options.to is not None and link(options, options.to, source.agent_id, made)
    if terminal.json:
        directory = None if options.to is None else str(options.to)
        terminal.emit(forked_json(source, made, name, directory, is_linked))
    else:
        step = step_of(source)
        terminal.line(f"session {clean(name)} begins at {step} ({made})")
        if options.to is not None:
            terminal.line(f"its files are in {clean(str(options.to))}")
            say_linked(is_linked, terminal)
            say_hook(source, options.to, terminal)
    return OK
