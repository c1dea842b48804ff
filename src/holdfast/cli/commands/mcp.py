"""``holdfast mcp``: checkpoints of one directory, over the Model Context Protocol.

The server is confined to its workspace: no tool takes a path, and a checkpoint with the files of
another directory is refused.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast._version import __version__
from holdfast.cli.access.naming import Names
from holdfast.cli.access.opening import location_of, open_location
from holdfast.cli.access.trees import compare_trees
from holdfast.cli.exits import OK, CommandError, Fault, Refused, UsageError
from holdfast.cli.output.checkpoints import checkpoint_json
from holdfast.cli.output.escaping import printable
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.parsing import Parser
from holdfast.client.with_files import save_with_files, snapshot_of
from holdfast.core.json_form import to_json
from holdfast.core.short_repr import brief
from holdfast.errors import HoldfastError, MissingPackageError

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.workspace import Workspace

_MOST = 1000
_LONGEST = 2000
_LONGEST_NAME = 500
_ABOUT = (
    "Checkpoints of the files in this workspace. Call checkpoint before anything risky and after "
    "anything that works; log lists them, diff compares, rollback puts the files back, fork tries "
    "another way. A checkpoint is named by its id, part of it, its name, @ (the newest) or @~2."
)


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "Serves the tools checkpoint, log, diff, rollback and fork on standard input and output, "
        "with the\nofficial SDK (pip install 'holdfast[mcp]'). It works on one directory and "
        "never outside of it.",
        "holdfast mcp --workspace .",
        "claude mcp add holdfast -- holdfast mcp",
    )
    parser.add_argument(
        "--workspace", type=Path, default=Path(), metavar="DIR", help="the directory (here)"
    )
    parser.add_argument(
        "--agent", default="mcp", metavar="NAME", help="the agent's name (%(default)s)"
    )
    parser.add_argument(
        "--session", metavar="NAME", help="the session (default: one for the directory)"
    )
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Serve until the client goes."""
    from holdfast.workspace import Workspace

    server, error = _server()
    folder = options.workspace.resolve()
    if not folder.is_dir():
        raise CommandError(f"{folder} is no directory")
    os.chdir(folder)  # the store is looked for from there
    location = location_of(options, create=True)
    with (
        open_location(location, create=True) as client,
        Workspace(folder, store=client) as workspace,
    ):
        tools = Tools(client, workspace, options.agent, options.session or workspace.name)
        for tool in (tools.checkpoint, tools.log, tools.diff, tools.rollback, tools.fork):
            server.tool()(_telling(tool, error))
        with _streams_of_its_own():
            server.run("stdio")
    return OK


@contextmanager
def _streams_of_its_own() -> Iterator[None]:
    """Give the server streams that it may close at its end, as one version of the SDK does."""
    known = sys.stdin, sys.stdout
    with (
        open(os.dup(0), encoding="utf-8") as sys.stdin,
        open(os.dup(1), "w", encoding="utf-8") as sys.stdout,
    ):
        try:
            yield
        finally:
            sys.stdin, sys.stdout = known


def _server() -> tuple[Any, type[Exception]]:
    """Return a server of the SDK that is installed, and the error by which its tools tell things.

    Agent frameworks want the first version of it or the second, so both serve.
    """
    try:
        import mcp.server
    except ImportError:
        raise MissingPackageError("holdfast mcp", "mcp", "mcp") from None
    told: dict[str, Any] = {"instructions": _ABOUT, "log_level": "WARNING"}
    if hasattr(mcp.server, "MCPServer"):
        from mcp.server.mcpserver.exceptions import ToolError

        return mcp.server.MCPServer("holdfast", version=__version__, **told), ToolError
    from mcp.server.fastmcp import FastMCP
    from mcp.server.fastmcp.exceptions import ToolError

    server = FastMCP("holdfast", **told)
    server._mcp_server.version = __version__  # else it would tell the version of the SDK
    return server, ToolError


def _telling(
    tool: Callable[..., dict[str, Any]], told_by: type[Exception]
) -> Callable[..., dict[str, Any]]:
    """Return a tool whose errors the model is told of; the SDK hides those it does not know."""

    @wraps(tool)
    def called(*args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            return tool(*args, **kwargs)
        except (HoldfastError, OSError) as error:
            raise told_by(printable(str(error))[:_LONGEST]) from error
        except Exception as error:
            raise told_by(printable(str(Fault(error)))) from error

    return called


def _check_name(name: str) -> None:
    if not 0 < len(name) <= _LONGEST_NAME or "\0" in name:
        raise UsageError(f"a name has 1 to {_LONGEST_NAME} characters and no NUL: {brief(name)}")


class Tools:
    """What the server offers; the words of the methods are what a model reads."""

    def __init__(self, client: SyncClient, workspace: Workspace, agent: str, session: str) -> None:
        self._client = client
        self._workspace = workspace
        self._agent = agent
        self._session = session

    def checkpoint(self, name: str, note: str | None = None) -> dict[str, Any]:
        """Keep all files of the workspace as they are now, under a short name."""
        _check_name(name)
        checkpoint_id, kept = save_with_files(
            self._client,
            self._workspace,
            agent_id=self._agent,
            session_id=self._session,
            name=name,
            state={} if note is None else {"note": note},
            tags={},
        )
        return {
            "checkpoint_id": checkpoint_id,
            "session_id": self._session,
            "files": kept.files,
            "new_bytes": kept.new_bytes,
        }

    def log(self, limit: int = 20) -> dict[str, Any]:
        """Return the checkpoints of the current session, the newest first."""
        if not 0 < limit <= _MOST:
            raise UsageError(f"limit is a number from 1 to {_MOST}, not {brief(limit)}")
        infos = self._client.find(agent_id=self._agent, session_id=self._session, limit=limit)
        names = ("checkpoint_id", "step_name", "created_at", "parent_id")
        shown = [checkpoint_json(info) for info in infos]
        return {
            "session_id": self._session,
            "checkpoints": [{name: each[name] for name in names} for each in shown],
        }

    def diff(self, old: str, new: str | None = None, text: bool = False) -> dict[str, Any]:
        """Return what changed from one checkpoint to another, or to the files as they are now.

        With text the changed lines are given.
        """
        from holdfast.cli.commands.diff import files_json

        before = self._own(old)
        if new is None:
            changed = self._workspace.diff(before.checkpoint_id, text=text)
            return {"from": before.checkpoint_id, "to": None, "files": files_json(changed)}
        after = self._own(new)
        files = compare_trees(self._client, before, after, text)
        state = self._client.diff(before.checkpoint_id, after.checkpoint_id).part("$")
        return {
            "from": before.checkpoint_id,
            "to": after.checkpoint_id,
            "files": None if files is None else files_json(files),
            "state": to_json(state.as_dict()),
        }

    def rollback(self, checkpoint: str) -> dict[str, Any]:
        """Put the files of the workspace back to a checkpoint.

        They are kept first as they are: rolling back to the checkpoint "before rollback" undoes it.
        """
        from holdfast.cli.access.session_run import SessionFiles, opened

        target = self._own(checkpoint)
        session = Names(self._client).session(f"{self._agent}/{self._session}")
        tree = snapshot_of(self._client, target)
        assert tree is not None
        planned = self._workspace.restore(tree, dry_run=True)
        files = SessionFiles(self._workspace, tree.as_value())
        with opened(self._client, session, files) as run:
            done = run.rollback(target.checkpoint_id)
        return {
            "checkpoint_id": done.checkpoint_id,
            "target": target.checkpoint_id,
            "written": list(planned.written),
            "removed": list(planned.removed),
        }

    def fork(self, checkpoint: str, name: str) -> dict[str, Any]:
        """Begin a new session at a checkpoint, put its files into the workspace, and go on there.

        The session before keeps all its checkpoints, the first of them the files as they were.
        """
        _check_name(name)
        source = self._own(checkpoint)
        self.checkpoint(f"before fork {name}"[:_LONGEST_NAME])
        made = self._client.fork(source.checkpoint_id, session_id=name)
        tree = snapshot_of(self._client, source)
        assert tree is not None
        self._workspace.restore(tree)
        before, self._session = self._session, name
        return {"checkpoint_id": made, "session_id": name, "left": before}

    def _own(self, given: str) -> CheckpointInfo:
        """Return a checkpoint of this workspace; any other is refused."""
        info = Names(self._client).checkpoint(given, self._whole_session(given))
        tree = snapshot_of(self._client, info)
        if tree is None or tree.workspace != self._workspace.name:
            raise Refused(
                f"checkpoint {info.checkpoint_id!r} does not hold files of this workspace"
            )
        return info

    def _whole_session(self, given: str) -> str | None:
        is_known = self._client.find(agent_id=self._agent, session_id=self._session, limit=1)
        return f"{self._agent}/{self._session}" if is_known else None
