"""All commands, with one line about each. A command is the module of its name in this package,
which has ``set_up(parser)`` and ``run(options, terminal)``; only the one that is used is imported.
That of a layer above is named with its package.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from keyword import iskeyword
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.cli.parsing import Parser


@dataclass(frozen=True)
class Command:
    """A command: its group in the overview, and what it does."""

    name: str
    group: str
    summary: str
    module: str | None = None
    """Where it is, if not in the module of its name here."""

    def set_up(self, parser: Parser) -> None:
        """Add its arguments to a parser, and what it runs."""
        own = self.name.strip("_") + ("_" if iskeyword(self.name) else "")
        import_module(self.module or f"{__name__}.{own}").set_up(parser)


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

_ROWS: tuple[tuple[str, ...], ...] = (
    ("init", START, "make a store here, in .holdfast/"),
    ("status", START, "which store this is, what is in it and what waits"),
    ("demo", START, "watch an agent being killed, resumed, rolled back and forked"),
    ("doctor", START, "check versions, the store, permissions and the clock"),
    ("sessions", LOOK, "every session, the one touched last first"),
    ("log", LOOK, "the checkpoints of a session, as a list or a tree"),
    ("show", LOOK, "one checkpoint: its state, messages, plan and calls"),
    ("diff", LOOK, "what changed between two checkpoints"),
    ("replay", LOOK, "what was recorded, step by step; nothing is executed"),
    ("bisect", LOOK, "find the first checkpoint that is bad"),
    ("watch", LOOK, "show new checkpoints as they come"),
    ("ui", LOOK, "see, compare and steer runs in a browser", "holdfast.ui.command"),
    ("rollback", GO, "take a session back to a checkpoint"),
    ("rewind", GO, "take files and conversation of a coding agent back together"),
    ("undo", GO, "undo the last rollback or rewind of a session"),
    ("fork", GO, "begin a new session at a checkpoint"),
    ("adopt", GO, "have a session go on from the head of another"),
    ("snapshot", GO, "keep a directory as it is now"),
    ("restore", GO, "put the files of a checkpoint into a directory"),
    ("tasks", PLAN, "the plan of a session, and how far it has come"),
    ("effects", PLAN, "the tool calls of a session, and what became of them"),
    ("pending", PLAN, "calls that wait for approval"),
    ("approve", PLAN, "allow a call that waits"),
    ("deny", PLAN, "refuse a call that waits"),
    ("resolve", PLAN, "say how a call of unknown end ended"),
    ("handoff", TOGETHER, "offer a checkpoint to another agent"),
    ("continue", TOGETHER, "go on with a session in another framework"),
    ("inbox", TOGETHER, "what was offered to an agent"),
    ("stats", KEEP, "how much the store holds, and how much of it is shared"),
    ("verify", KEEP, "read everything and name what is damaged"),
    ("prune", KEEP, "remove checkpoints that a policy does not keep"),
    ("gc", KEEP, "remove what has expired and what no checkpoint needs"),
    ("export", KEEP, "write checkpoints to a bundle file"),
    ("import", KEEP, "bring in a bundle, or the checkpoints of a LangGraph saver"),
    ("migrate", KEEP, "bring a store up to the current format"),
    ("hook", AGENTS, "record what a coding agent does, from its hooks"),
    ("wrap", AGENTS, "run any program, and keep the files it works on"),
    ("mcp", AGENTS, "serve checkpoints over the Model Context Protocol"),
    ("completion", AGENTS, "print the completion script of a shell"),
    ("__complete", HIDDEN, "what a word can be completed to"),
    ("__pages", HIDDEN, "write the pages about all commands"),
)

COMMANDS = {row[0]: Command(*row) for row in _ROWS}
