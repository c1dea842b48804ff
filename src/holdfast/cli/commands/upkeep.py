"""``holdfast stats``, ``verify``, ``prune`` and ``gc``: looking after a store."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from holdfast.cli.access.naming import Names
from holdfast.cli.access.opening import open_client
from holdfast.cli.access.short_ids import ShortIds
from holdfast.cli.exits import DAMAGED, OK, UsageError
from holdfast.cli.output.checkpoints import checkpoint_json, step_of
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import age, many, size, span
from holdfast.cli.parsing import Parser, count
from holdfast.stores.base import Collected
from holdfast.system.terminal_text import clean

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.verbs.prune import Keep, Pruned

_LISTED = 20


def stats(parser: Parser) -> None:
    """Set up the command."""
    parser.explain("", "holdfast stats", "holdfast stats --json")
    parser.set_defaults(run=_stats)


def _stats(options: Namespace, terminal: Terminal) -> int:
    with open_client(options) as client:
        with terminal.waiting("counting"):
            found = client.stats()
        name = client.store.name
    if terminal.json:
        terminal.emit(
            {
                "store": name,
                "checkpoints": found.checkpoints,
                "sessions": found.sessions,
                "chunks": found.chunks,
                "logical_bytes": found.logical_bytes,
                "stored_bytes": found.stored_bytes,
                "sharing": found.sharing,
            }
        )
        return OK
    terminal.line(f"store        {clean(name)}")
    terminal.line(f"checkpoints  {found.checkpoints:,}")
    terminal.line(f"sessions     {found.sessions:,}")
    terminal.line(f"chunks       {found.chunks:,}")
    terminal.line(f"logical      {size(found.logical_bytes)} (every state counted whole)")
    terminal.line(f"stored       {size(found.stored_bytes)} (shared and compressed, with files)")
    terminal.line(f"sharing      {found.sharing:.1f} times")
    return OK


def verify(parser: Parser) -> None:
    """Set up the command."""
    parser.explain(
        "Ends with 6 if anything is damaged.", "holdfast verify", "holdfast verify --json"
    )
    parser.set_defaults(run=_verify)


def _verify(options: Namespace, terminal: Terminal) -> int:
    with open_client(options) as client:
        found = client.verify(terminal.progress("verifying"))
    if terminal.json:
        damaged, loose = (
            [{"checkpoint_id": each.checkpoint_id, "reason": each.reason} for each in some]
            for some in (found.damaged, found.loose)
        )
        terminal.emit(
            {"ok": found.ok, "checkpoints": found.checkpoints, "damaged": damaged, "loose": loose}
        )
    else:
        for word, style, some in (
            ("loose  ", "dim", found.loose),
            ("damaged", "bad", found.damaged),
        ):
            for each in some:
                terminal.line(
                    f"{terminal.paint(word, style)}  {clean(each.checkpoint_id)}  "
                    f"{clean(each.reason)}"
                )
        whole = "all whole" if found.ok else f"{len(found.damaged):,} damaged"
        terminal.line(f"{many(found.checkpoints, 'checkpoint')} read, {whole}")
    return OK if found.ok else DAMAGED


def prune(parser: Parser) -> None:
    """Set up the command."""
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
    parser.set_defaults(run=_prune)


def _prune(options: Namespace, terminal: Terminal) -> int:
    with open_client(options) as client:
        policy = _policy(client, options)
        with terminal.waiting("looking"):
            found = client.prune(policy, dry_run=True)
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
            with terminal.waiting("removing"):
                found = client.prune(policy)
    if terminal.json:
        terminal.emit(_json(found))
    else:
        said = "would be removed" if found.dry_run else "removed"
        terminal.line(f"{many(len(found), 'checkpoint')} {said}, {found.kept:,} kept")
        if found.removed and not found.dry_run:
            terminal.line("holdfast gc frees their room: what is older than an hour at once")
    return OK


def _json(found: Pruned) -> dict[str, Any]:
    removed = [checkpoint_json(info) for info in found.removed]
    return {"dry_run": found.dry_run, "kept": found.kept, "removed": removed}


def _policy(client: SyncClient, options: Namespace) -> Keep:
    from holdfast.verbs.prune import Keep

    agent, session = options.agent, options.session
    if session is not None:
        meant = Names(client).session(f"{agent}/{session}" if agent else session)
        agent, session = meant.agent_id, meant.session_id
    return Keep(
        last=options.last,
        within=None if options.within is None else span(options.within),
        named=options.named is not None if not options.named else options.named,
        tags=dict(_tag(each) for each in options.tag),
        agent_id=agent,
        session_id=session,
    )


def _tag(text: str) -> tuple[str, Any]:
    """A tag as it is kept: numbers and true or false are what they look like."""
    import json

    name, sign, value = text.partition("=")
    if not sign:
        raise UsageError(f"a tag is written NAME=VALUE, not {text!r}")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def gc(parser: Parser) -> None:
    """Set up the command."""
    parser.explain(
        "What was written within the grace period is left alone, so that saves in flight are "
        "safe.\nForks and exports that a killed process left unfinished are removed too, and "
        "named.",
        "holdfast gc --dry-run",
        "holdfast gc --grace 0",
    )
    parser.add_argument(
        "--grace", metavar="TIME", default="1h", help="leave alone what is younger (%(default)s)"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    parser.set_defaults(run=_gc)


def _gc(options: Namespace, terminal: Terminal) -> int:
    grace = span(options.grace)
    with open_client(options) as client, terminal.waiting("collecting"):
        found = client.gc(grace, options.dry_run)
        unneeded = client.gc(0, dry_run=True) if grace else None
    left = Collected(0, 0)
    if unneeded is not None:  # a dry run has removed nothing yet
        gone = found if options.dry_run else left
        left = Collected(unneeded.chunks - gone.chunks, unneeded.bytes - gone.bytes)
    if terminal.json:
        told = {"dry_run": options.dry_run, "chunks": found.chunks, "bytes": found.bytes}
        waiting = {"waiting_chunks": left.chunks, "waiting_bytes": left.bytes}
        terminal.emit({**told, **waiting, "grace_seconds": grace})
        return OK
    said = "would be removed" if options.dry_run else "removed"
    terminal.line(f"{many(found.chunks, 'chunk')} {said}, {size(found.bytes)}")
    for path in found.unfinished:
        terminal.line(f"left behind by a process that died, {said}: {clean(path)}")
    if left.chunks > 0:
        terminal.line(
            f"{many(left.chunks, 'chunk')} more ({size(left.bytes)}) no checkpoint needs, but "
            f"younger than {options.grace}: run it again then,"
        )
        terminal.line("or, while no program saves to this store, holdfast gc --grace 0")
    return OK
