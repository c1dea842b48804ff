"""``holdfast sessions``."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from typing import TYPE_CHECKING

from holdfast.cli.access.langgraph_threads import is_thread
from holdfast.cli.access.opening import LazyClient, open_lazily
from holdfast.cli.access.short_ids import ShortIds
from holdfast.cli.exits import OK
from holdfast.cli.output.checkpoints import checkpoint_json, plans_of, step_of
from holdfast.cli.output.tasks import TaskProgress
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import age, many
from holdfast.cli.parsing import Parser, count
from holdfast.coding_agents.recorded import main_session_of
from holdfast.system.terminal_text import clean, pad, width

if TYPE_CHECKING:
    from holdfast.model import CheckpointInfo
    from holdfast.stores.base import SessionInfo


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain("", "holdfast sessions", "holdfast sessions --agent coder --json")
    parser.add_argument("--agent", metavar="NAME", help="only those of this agent")
    parser.add_argument("-n", "--limit", type=count, metavar="N", help="at most so many")
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """List the sessions."""
    with open_lazily(options) as client:
        found = client.store.heads(options.agent, limit=options.limit)
        heads = [each.head for each in found]
        plans = plans_of(client, heads)
        short = ShortIds(client.store, heads)
        asked = _asked(client, heads)
    if terminal.json:
        shown = [
            {
                **_json(each, plans.get(each.head.checkpoint_id)),
                "interrupts": asked[each.head.checkpoint_id],
            }
            for each in found
        ]
        terminal.emit({"sessions": shown})
        return OK
    found = _with_subagents(found)
    shown_names = {each.head.checkpoint_id: _name(each) for each in found}
    names = max(map(width, shown_names.values()), default=0)
    agents = max((width(clean(each.agent_id)) for each in found), default=0)
    has_steps = any("program" in each.head.metadata for each in found)
    counts = max((len(many(each.checkpoints, "checkpoint")) for each in found), default=0)
    counts = counts if has_steps else 0
    for each in found:
        progress = plans.get(each.head.checkpoint_id)
        line = [
            terminal.paint(pad(shown_names[each.head.checkpoint_id], names), "session"),
            pad(clean(each.agent_id), agents),
            terminal.paint(short(each.head.checkpoint_id), "id"),
            pad(age(each.head.created_at), 8),
            pad(many(each.checkpoints, "checkpoint"), counts),
            *([f"{progress} tasks"] if progress else []),
        ]
        if "program" in each.head.metadata:  # recorded of a coding agent: what it did last
            line.append(terminal.paint(_did(each), "dim"))
        if asked[each.head.checkpoint_id]:
            line.append(terminal.paint("waits for an answer: holdfast pending", "warn"))
        failed = terminal.paint("  (failed)", "bad") if each.head.metadata.get("failed") else ""
        terminal.line("  ".join(line) + failed)
    if not found:
        terminal.line("no sessions yet")
    return OK


def _with_subagents(found: list[SessionInfo]) -> list[SessionInfo]:
    """Return sessions in their order, but those of subagents behind that of their parent."""
    known = {(each.agent_id, each.session_id) for each in found}
    beside: dict[tuple[str, str], list[SessionInfo]] = {}
    for each in found:
        if (main := (each.agent_id, main_session_of(each.head))) in known:
            beside.setdefault(main, []).append(each)
    ordered: list[SessionInfo] = []
    for each in found:
        main = (each.agent_id, main_session_of(each.head))
        group = beside.pop(main, [each] if main not in known else [])
        ordered += sorted(group, key=lambda one: one.session_id != main[1])
    return ordered


def _name(session: SessionInfo) -> str:
    is_beside = main_session_of(session.head) != session.session_id
    return f"{'  ' if is_beside else ''}{clean(session.session_id)}"


def _did(session: SessionInfo) -> str:
    kind = session.head.metadata.get("subagent_type")
    return (
        f"{clean(kind)}: {step_of(session.head)}"
        if isinstance(kind, str)
        else step_of(session.head)
    )


def _asked(client: LazyClient, heads: list[CheckpointInfo]) -> Counter[str]:
    """Return how many questions wait at each head, if there are threads among them at all."""
    if not any(map(is_thread, heads)):
        return Counter()
    return Counter(each.checkpoint_id for each in client.interrupts())


def _json(session: SessionInfo, progress: TaskProgress | None) -> dict[str, object]:
    return {
        "agent_id": session.agent_id,
        "session_id": session.session_id,
        "checkpoints": session.checkpoints,
        "head": checkpoint_json(session.head),
        "progress": None if progress is None else progress.as_dict(),
    }
