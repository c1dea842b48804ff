"""Carries out calls: arguments are checked, the store is opened, errors are what a model reads."""

from __future__ import annotations

import os
from argparse import Namespace
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.exits import Fault, NotFound, Refused
from holdfast.cli.mcp.arguments import ArgumentError, checked
from holdfast.cli.mcp.caller import Caller, caller_of
from holdfast.cli.mcp.protocol import Call
from holdfast.cli.mcp.tool_table import SCHEMAS
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.cli.mcp.tools import Answer

_LONGEST = 2000
"""Characters of an error."""
_SAY_PROJECT = ("claude-code", "gemini-cli")
"""Programs that set CLAUDE_PROJECT_DIR."""


class Calls:
    """Carries out one call after the other.

    The store is opened anew for each: it may have been made, moved or removed since.
    """

    def __init__(self, options: Namespace) -> None:
        self._options = options
        self._session: str | None = options.session
        self._began_in = os.path.abspath(options.workspace or ".")

    def __call__(self, call: Call | None) -> dict[str, Any]:
        """Return the result of a call; without one, get ready for the first."""
        if call is None:
            with suppress(Exception):  # which a call meets again, and tells
                import_module("holdfast.cli.mcp.tools")
            return {}
        try:
            answer = self._answer(call, checked(call.arguments, SCHEMAS[call.tool]))
        except (ArgumentError, HoldfastError, OSError) as error:
            return _failed(error)
        except Exception as error:
            if os.environ.get("HOLDFAST_DEBUG"):
                raise
            return _failed(Fault(error))
        return {**_said(answer.text), "structuredContent": answer.data, "isError": False}

    def _answer(self, call: Call, arguments: dict[str, Any]) -> Answer:
        from holdfast.cli.access.opening import location_of, open_location
        from holdfast.cli.mcp.tools import Tools
        from holdfast.workspace import Workspace

        caller = caller_of(call)
        os.chdir(self._project(caller))  # the store is looked for from there
        location = location_of(self._options, create=True)
        root = self._root(location.folder)
        if call.tool != "checkpoint" and location.path is not None and not location.path.exists():
            return _nothing_yet(call.tool, root)
        with (
            open_location(location, create=True) as client,
            Workspace(root, store=client) as workspace,
        ):
            tools = Tools(client, workspace, caller, self._options.agent, self._session)
            answer: Answer = getattr(tools, call.tool)(**arguments)
            self._session = tools.session
        return answer

    def _project(self, caller: Caller) -> str:
        """Return where the program works; in others the variable is that of who runs them."""
        if self._options.workspace is None and caller.program in _SAY_PROJECT:
            return os.environ.get("CLAUDE_PROJECT_DIR") or self._began_in
        return self._began_in

    def _root(self, above: Path | None) -> Path:
        """Return the directory that is kept: the one that was named, else the project's."""
        from holdfast.coding_agents.hook_project import is_everything, root_of

        here = os.path.realpath(".")
        if self._options.workspace is not None:
            return Path(here)
        root = root_of(None if above is None else os.path.realpath(above), here)
        if is_everything(root):
            raise Refused(
                f"{root} is no project, and is not kept as a whole: start the program in the "
                "directory of the project, or name that with holdfast mcp --workspace DIR"
            )
        return Path(root)


def _nothing_yet(tool: str, root: Path) -> Answer:
    """Return what is said where no store is: to look at what is not there makes none."""
    from holdfast.cli.mcp.tools import Answer
    from holdfast.workspace.registry import default_name

    if tool != "log":
        raise NotFound("there are no checkpoints yet: make one with the tool checkpoint")
    session = default_name(os.fsencode(root))
    return Answer({"session_id": session, "checkpoints": []}, "no checkpoints yet")


def _failed(error: Exception) -> dict[str, Any]:
    return {**_said(str(error), _LONGEST), "isError": True}


def _said(text: str, longest: int | None = None) -> dict[str, Any]:
    """Return text as it may be shown: names come from stored data, and steer no terminal."""
    from holdfast.cli.output.escaping import printable

    return {"content": [{"type": "text", "text": printable(text)[:longest]}]}
