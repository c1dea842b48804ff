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
    """``module:function`` below ``holdfast.cli``; the function is given the parser."""

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
    ("init", START, "make a store here, in .holdfast/", "commands.start:init"),
    ("status", START, "which store this is, what is in it and what waits", "commands.start:status"),
    (
        "demo",
        START,
        "watch an agent being killed, resumed, rolled back and forked",
        "commands.demo:demo",
    ),
    (
        "doctor",
        START,
        "check versions, the store, permissions and the clock",
        "commands.doctor:doctor",
    ),
    ("sessions", LOOK, "every session, the one touched last first", "commands.sessions:sessions"),
    ("log", LOOK, "the checkpoints of a session, as a list or a tree", "commands.log:log"),
    ("show", LOOK, "one checkpoint: its state, messages, plan and calls", "commands.show:show"),
    ("diff", LOOK, "what changed between two checkpoints", "commands.diff:diff"),
    (
        "replay",
        LOOK,
        "what was recorded, step by step; nothing is executed",
        "commands.replay:replay",
    ),
    ("bisect", LOOK, "find the first checkpoint that is bad", "commands.bisect:bisect"),
    ("watch", LOOK, "show new checkpoints as they come", "commands.watch:watch"),
    ("rollback", GO, "take a session back to a checkpoint", "commands.rollback:rollback"),
    ("undo", GO, "undo the last rollback of a session", "commands.rollback:undo"),
    ("fork", GO, "begin a new session at a checkpoint", "commands.fork:fork"),
    ("snapshot", GO, "keep a directory as it is now", "commands.files:snapshot"),
    ("restore", GO, "put the files of a checkpoint into a directory", "commands.files:restore"),
    ("tasks", PLAN, "the plan of a session, and how far it has come", "commands.tasks:tasks"),
    (
        "effects",
        PLAN,
        "the tool calls of a session, and what became of them",
        "commands.tasks:effects",
    ),
    ("pending", PLAN, "calls that wait for approval", "commands.approvals:pending"),
    ("approve", PLAN, "allow a call that waits", "commands.approvals:approve"),
    ("deny", PLAN, "refuse a call that waits", "commands.approvals:deny"),
    ("resolve", PLAN, "say how a call of unknown end ended", "commands.resolve:resolve"),
    ("handoff", TOGETHER, "offer a checkpoint to another agent", "commands.handoffs:handoff"),
    ("inbox", TOGETHER, "what was offered to an agent", "commands.handoffs:inbox"),
    (
        "stats",
        KEEP,
        "how much the store holds, and how much of it is shared",
        "commands.upkeep:stats",
    ),
    ("verify", KEEP, "read everything and name what is damaged", "commands.upkeep:verify"),
    ("prune", KEEP, "remove checkpoints that a policy does not keep", "commands.upkeep:prune"),
    ("gc", KEEP, "remove what has expired and what no checkpoint needs", "commands.upkeep:gc"),
    ("export", KEEP, "write checkpoints to a bundle file", "commands.export:export"),
    (
        "import",
        KEEP,
        "bring in a bundle, or the checkpoints of a LangGraph saver",
        "commands.import_:import_",
    ),
    ("migrate", KEEP, "bring a store up to the current format", "commands.migrate:migrate"),
    ("hook", AGENTS, "record what a coding agent does, from its hooks", "hooks.hook:hook"),
    ("mcp", AGENTS, "serve checkpoints over the Model Context Protocol", "commands.mcp_server:mcp"),
    (
        "completion",
        AGENTS,
        "print the completion script of a shell",
        "commands.completion:completion",
    ),
    ("__complete", HIDDEN, "what a word can be completed to", "commands.completion:complete"),
    ("__pages", HIDDEN, "write the pages about all commands", "commands.pages:pages"),
)

COMMANDS = {row[0]: Command(*row) for row in _ROWS}
