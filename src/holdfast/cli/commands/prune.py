"""``holdfast prune``: remove checkpoints that a policy does not keep."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from holdfast.cli.access.opening import open_client
from holdfast.cli.access.short_ids import ShortIds
from holdfast.cli.access.upkeep import policy, pruned_json
from holdfast.cli.exits import OK
from holdfast.cli.output.checkpoints import step_of
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import age, many
from holdfast.cli.parsing import Parser, count
from holdfast.system.terminal_text import clean

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.verbs.prune import Keep

_LISTED = 20


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "A checkpoint is kept if any rule says so. What a kept session was forked from, and open "
        "handoffs,\nare always kept. The room is freed by holdfast gc.",
        "holdfast prune --last 20 --dry-run",
        "holdfast prune --last 5 --within 7d --named --yes",
        "holdfast prune --last 0 --session try-3 --yes",
    )
    parser.add_argument("--last", type=count, metavar="N", help="keep the newest N of each session")
    parser.add_argument("--within", metavar="TIME", help="keep what is younger, such as 12h or 7d")
    parser.add_argument(
        "--named", nargs="*", metavar="NAME", help="keep those with a step name, or with these"
    )
    parser.add_argument(
        "--tag", action="append", default=[], metavar="NAME=VALUE", help="keep those with all tags"
    )
    parser.add_argument("--agent", metavar="NAME", help="look at this agent only")
    parser.add_argument("--session", metavar="SESSION", help="look at this session only")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Show what would be removed, ask, and remove it."""
    with open_client(options) as client:
        keep = _policy(client, options)
        found = client.prune(keep, dry_run=True, progress=terminal.progress("looking"))
        short = ShortIds(client.store, found.removed[:_LISTED])
        if not terminal.json:
            for info in found.removed[:_LISTED]:
                terminal.line(
                    f"remove  {terminal.paint(short(info.checkpoint_id), 'id')}  "
                    f"{clean(info.session_id)}  {step_of(info)}"
                    f"  {age(info.created_at)}"
                )
            if len(found) > _LISTED:
                terminal.line(f"… and {len(found) - _LISTED:,} more")
        if found.removed and not options.dry_run:
            terminal.confirm(f"Remove {many(len(found), 'checkpoint')}?")
            found = client.prune(keep, progress=terminal.progress("removing"))
    if terminal.json:
        terminal.emit(pruned_json(found))
    else:
        said = "would be removed" if found.dry_run else "removed"
        terminal.line(f"{many(len(found), 'checkpoint')} {said}, {found.kept:,} kept")
        if found.removed and not found.dry_run:
            terminal.line("holdfast gc frees their room: what is older than an hour at once")
    return OK


def _policy(client: SyncClient, options: Namespace) -> Keep:
    return policy(
        client,
        last=options.last,
        within=options.within,
        named=options.named is not None if not options.named else options.named,
        tags=options.tag,
        agent=options.agent,
        session=options.session,
    )
