"""All commands: where each is, and one line about it. Only the one that is used is imported."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.cli.parsing import Parser


@dataclass(frozen=True)
class Command:
    """A command: its group in the overview, what it does, and the function that sets it up."""

    name: str
    group: str
    summary: str
    place: str
    """``module:function``; the function is given the parser of the command."""

    def set_up(self, parser: Parser) -> None:
        """Add its arguments to a parser, and what it runs."""
        module, _, function = self.place.partition(":")
        found: Callable[[Parser], None] = getattr(import_module(f"holdfast.cli.{module}"), function)
        found(parser)


START, LOOK, GO, PLAN, TOGETHER, KEEP, AGENTS, HIDDEN = (
    "start",
    "look at what happened",
    "go back, branch off",
    "plans, calls and approval",
    "work together",
    "look after the store",
    "other programs",
    "hidden",
)
GROUPS = (START, LOOK, GO, PLAN, TOGETHER, KEEP, AGENTS)

_ROWS = (
    ("init", START, "make a store here, in .holdfast/", "start:init"),
    ("status", START, "which store this is, what is in it and what waits", "start:status"),
    ("demo", START, "watch an agent being killed, resumed, rolled back and forked", "demo:demo"),
    ("doctor", START, "check versions, the store, permissions and the clock", "doctor:doctor"),
    ("sessions", LOOK, "every session, the one touched last first", "sessions:sessions"),
    ("log", LOOK, "the checkpoints of a session, as a list or a tree", "log:log"),
    ("show", LOOK, "one checkpoint: its state, messages, plan and calls", "show:show"),
    ("diff", LOOK, "what changed between two checkpoints", "diff:diff"),
    ("replay", LOOK, "what was recorded, step by step; nothing is executed", "replay:replay"),
    ("bisect", LOOK, "find the first checkpoint that is bad", "bisect:bisect"),
    ("watch", LOOK, "show new checkpoints as they come", "watch:watch"),
    ("rollback", GO, "take a session back to a checkpoint", "rollback:rollback"),
    ("undo", GO, "undo the last rollback of a session", "rollback:undo"),
    ("fork", GO, "begin a new session at a checkpoint", "fork:fork"),
    ("snapshot", GO, "keep a directory as it is now", "files:snapshot"),
    ("restore", GO, "put the files of a checkpoint into a directory", "files:restore"),
    ("tasks", PLAN, "the plan of a session, and how far it has come", "plan:tasks"),
    ("effects", PLAN, "the tool calls of a session, and what became of them", "plan:effects"),
    ("pending", PLAN, "calls that wait for approval", "approvals:pending"),
    ("approve", PLAN, "allow a call that waits", "approvals:approve"),
    ("deny", PLAN, "refuse a call that waits", "approvals:deny"),
    ("resolve", PLAN, "say how a call of unknown end ended", "resolve:resolve"),
    ("handoff", TOGETHER, "offer a checkpoint to another agent", "handoffs:handoff"),
    ("inbox", TOGETHER, "what was offered to an agent", "handoffs:inbox"),
    ("stats", KEEP, "how much the store holds, and how much of it is shared", "upkeep:stats"),
    ("verify", KEEP, "read everything and name what is damaged", "upkeep:verify"),
    ("prune", KEEP, "remove checkpoints that a policy does not keep", "upkeep:prune"),
    ("gc", KEEP, "remove what has expired and what no checkpoint needs", "upkeep:gc"),
    ("export", KEEP, "write checkpoints to a bundle file", "bundles:export"),
    (
        "import",
        KEEP,
        "bring in a bundle, or the checkpoints of a LangGraph saver",
        "import_:import_",
    ),
    ("migrate", KEEP, "bring a store up to the current format", "migrate:migrate"),
    ("hook", AGENTS, "record what a coding agent does, from its hooks", "hook:hook"),
    ("mcp", AGENTS, "serve checkpoints over the Model Context Protocol", "mcp_server:mcp"),
    ("completion", AGENTS, "print the completion script of a shell", "completion:completion"),
    ("__complete", HIDDEN, "what a word can be completed to", "completion:complete"),
    ("__pages", HIDDEN, "write the pages about all commands", "pages:pages"),
)

COMMANDS = {row[0]: Command(*row) for row in _ROWS}
