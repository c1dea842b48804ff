"""``holdfast diff``: what changed between two checkpoints, in state, plan and files."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast.cli.access.naming import Names
from holdfast.cli.access.opening import open_client
from holdfast.cli.access.plumbing import MESSAGES, without_plumbing
from holdfast.cli.exits import OK, NotFound
from holdfast.cli.output.file_changes import MANY, changed_files, lines_by_file, plus_minus
from holdfast.cli.output.messages import Known, MessageChanges, said_since
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import many
from holdfast.cli.output.values import short
from holdfast.cli.parsing import Parser, add_checkpoint, add_session
from holdfast.core.diff import Diff, is_below
from holdfast.core.json_form import to_json
from holdfast.errors import AdapterError
from holdfast.system.terminal_text import clean, clean_lines

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.workspace import TreeDiff

PARTS = {"state": "$", "context": "context", "tasks": "tasks", "effects": "effects"}
_STYLES = {"+": "good", "-": "bad", "~": "warn", ">": "dim"}


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "With one checkpoint: what it changed since the one before it. With none: the head.\n"
        "+ added, - removed, ~ changed, > moved. Without options all but the record of calls; of\n"
        "a session of a framework its messages, values and files: not what it keeps for itself; of "
        "a coding\nagent its files first, with the lines that came and went, and then what was "
        "said.",
        "holdfast diff",
        "holdfast diff @~3 @",
        "holdfast diff fix-42@ fix-42.1@ --state",
        "holdfast diff @~3 @ --files --text",
        "holdfast diff @ . --files",
    )
    add_checkpoint(parser, "a", help="the older checkpoint, or the one to look at")
    add_checkpoint(parser, "b", help="the newer checkpoint, or . for the files as they are now")
    add_session(parser)
    for name in PARTS:
        parser.add_argument(f"--{name}", action="store_true", help=f"the {name}")
    parser.add_argument("--files", action="store_true", help="the files")
    parser.add_argument("--text", action="store_true", help="with --files: the changed lines")
    parser.add_argument("--all", action="store_true", help="also what a framework keeps for itself")
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Compare two checkpoints."""
    chosen = [name for name in PARTS if getattr(options, name)]
    files_only = (options.files or options.text) and not chosen
    with open_client(options) as client:
        names = Names(client)
        with_now = options.b == "."
        new = names.checkpoint(
            options.a if options.b in (None, ".") else options.b, options.session
        )
        if options.b is None:
            old = _parent(names, new)
        else:
            old = new if with_now else names.checkpoint(options.a, options.session)
        seen = Compared()
        if not files_only and not with_now:
            seen = compared(client, old, new, chosen, options.all)
        changes, said, hidden = seen.changes, seen.said, seen.hidden
        files = None
        is_coding = "program" in old.metadata and "program" in new.metadata
        lines: dict[str, tuple[int, int]] = {}
        if files_only or options.files or with_now or not chosen:
            after = None if with_now else new
            files = files_changed(client, old, after, options.text)
            if files and is_coding and not options.text and changed_files(files) <= MANY:
                texts = files_changed(client, old, after, text=True)
                lines = lines_by_file("" if texts is None else texts.text or "")
    if terminal.json:
        terminal.emit(diff_json(old, None if with_now else new, changes, files, said))
        return OK
    shown = file_lines(files, terminal, lines) if files else []
    spoken = said.lines(terminal) if said else []
    for line in (*shown, *spoken) if is_coding else spoken:
        terminal.line(line)
    if said is not None:
        changes = without(changes, MESSAGES)
    for line in diff_lines(changes, terminal):
        terminal.line(line)
    for line in () if is_coding else shown:
        terminal.line(line)
    if not changes and not files and not said:
        whose = "hook notes beside" if is_coding else "framework keeps for itself"
        own = f" (but {many(hidden, 'change')} in what the {whose}: --all)"
        terminal.line("no changes" + (own if hidden else ""))
    return OK


@dataclass(frozen=True)
class Compared:
    """What changed between two checkpoints, but for their files."""

    changes: Diff = field(default_factory=Diff)
    said: MessageChanges | None = None
    hidden: int = 0
    """How many changes are left out, as a framework or a hook keeps them for itself."""


def compared(
    client: SyncClient,
    old: CheckpointInfo,
    new: CheckpointInfo,
    chosen: Sequence[str] = (),
    every: bool = False,
) -> Compared:
    """Compare the chosen parts of two checkpoints; without any, all but the record of calls."""
    changes = client.diff(old.checkpoint_id, new.checkpoint_id)
    left_out = [part for part in PARTS if part not in chosen] if chosen else ["effects"]
    for part in left_out:
        changes = without(changes, PARTS[part])
    said = _said(client, old, new) if changes and not chosen and not every else None
    changes = without(changes, "workspace")
    if every:
        return Compared(changes, said)
    kept = without_plumbing(changes, new.framework, said is not None)
    if "program" in old.metadata and "program" in new.metadata and not chosen:
        kept = without(kept, "$")
    return Compared(kept, said, _count(changes) - _count(kept))


def _said(client: SyncClient, old: CheckpointInfo, new: CheckpointInfo) -> MessageChanges | None:
    """Return what was said meanwhile in a session of a framework; None if that is not known.

    In the state of a program of one's own messages are shown where they are.
    """
    is_coding = "program" in old.metadata and "program" in new.metadata
    if not is_coding and "custom" in (old.framework.value, new.framework.value):
        return None
    try:
        kept = [client.restore(info.checkpoint_id, on_unknown="raw") for info in (old, new)]
        before, now = map(Known.of, kept)
    except AdapterError:  # whose state is none of the framework's is compared by its paths
        return None
    return said_since(before, now) if before.messages or now.messages else None


def _count(changes: Diff) -> int:
    return sum(len(getattr(changes, name)) for name in ("added", "removed", "changed", "moved"))


def _parent(names: Names, info: CheckpointInfo) -> CheckpointInfo:
    if info.parent_id is None:
        raise NotFound(f"checkpoint {info.checkpoint_id!r} is the first: name another to compare")
    return names.checkpoint(info.parent_id)


def diff_json(
    old: CheckpointInfo,
    new: CheckpointInfo | None,
    changes: Diff,
    files: TreeDiff | None,
    said: MessageChanges | None,
) -> dict[str, Any]:
    """Return what changed, in JSON."""
    return {
        "from": old.checkpoint_id,
        "to": None if new is None else new.checkpoint_id,
        "added": {path: to_json(value) for path, value in changes.added.items()},
        "removed": {path: to_json(value) for path, value in changes.removed.items()},
        "changed": {
            path: {"old": to_json(old), "new": to_json(new)}
            for path, (old, new) in changes.changed.items()
        },
        "moved": dict(changes.moved),
        "messages": None if said is None else said.as_dict(),
        "files": None if files is None else files_json(files),
    }


def files_json(files: TreeDiff) -> dict[str, Any]:
    """Return what changed in files, in JSON."""
    return {
        "added": list(files.added),
        "removed": list(files.removed),
        "modified": list(files.modified),
        "renamed": [list(pair) for pair in files.renamed],
        "mode": list(files.mode),
        "touched": list(files.touched),
        "text": files.text,
    }


def without(changes: Diff, root: str) -> Diff:
    """Changes, but for those below a root."""
    kept = Diff()
    for name in ("added", "removed", "changed", "moved"):
        for path, value in getattr(changes, name).items():
            if not is_below(path, root):
                getattr(kept, name)[path] = value
    return kept


def diff_lines(changes: Diff, terminal: Terminal) -> list[str]:
    """Changes, one line each; where a change is too long for one, the old and the new have one."""
    columns = min(terminal.width, 160)
    lines: list[tuple[str, str]] = []
    for path, (old, new) in changes.changed.items():
        line = f"{path}: {short(old, columns)} -> {short(new, columns)}"
        if len(line) + 2 <= columns:
            lines.append(("~", line))
        else:
            room = columns - len(path) - 6
            lines += [("~", f"{path}:"), ("-", f"    {short(old, room)}")]
            lines += [("+", f"    {short(new, room)}")]
    for sign, part in (("-", changes.removed), ("+", changes.added)):
        for path, value in part.items():
            lines.append((sign, f"{path}: {short(value, max(columns - len(path) - 4, 30))}"))
    lines += [(">", f"{old}: moved to {new}") for old, new in changes.moved.items()]
    return [terminal.paint(clean(f"{sign} {line}"), _STYLES[sign]) for sign, line in lines]


def files_changed(
    client: SyncClient, old: CheckpointInfo, new: CheckpointInfo | None, text: bool
) -> TreeDiff | None:
    """Return what changed in files; None if either checkpoint has none."""
    from holdfast.cli.access.trees import compare_now, compare_trees

    return compare_now(client, old, text) if new is None else compare_trees(client, old, new, text)


def file_lines(
    files: TreeDiff, terminal: Terminal, lines: Mapping[str, tuple[int, int]] | None = None
) -> list[str]:
    """Return what changed in files, as git says it; with the lines of each where they are known."""
    lines = lines or {}
    if files.text is not None:
        styles = {"+": "good", "-": "bad", "@": "head"}
        text = clean_lines(files.text).splitlines()
        return [terminal.paint(line, styles.get(line[:1], "dim")) if line else "" for line in text]
    signs = {"A": "good", "D": "bad", "M": "warn", "R": "warn", "m": "dim"}
    return [
        terminal.paint(clean(line), signs.get(line[:1], "dim"))
        + (f"  {plus_minus(*lines[line[2:]], terminal.unicode)}" if line[2:] in lines else "")
        for line in str(files).splitlines()
    ]
