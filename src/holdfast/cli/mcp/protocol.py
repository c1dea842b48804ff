"""What is answered to a client, in every published version of the protocol; without any I/O.

Until 2025-11-25 a client says ``initialize`` first, and both agree on a version. Since 2026-07-28
each request carries its version in ``_meta``. Both are served side by side, request by request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from holdfast._version import __version__
from holdfast.cli.mcp.json_rpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Id,
    Message,
    RpcError,
)

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS_VERSIONS = ("2026-07-28",)
WITH_BATCHES = ("2025-03-26",)
UNSUPPORTED_VERSION = -32022

_VERSION = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_CLIENT = "io.modelcontextprotocol/clientInfo"
_SERVER = "io.modelcontextprotocol/serverInfo"
_CACHED = {"ttlMs": 300_000, "cacheScope": "public"}

SERVER = {"name": "holdfast", "title": "Holdfast", "version": __version__}
CAPABILITIES: dict[str, Any] = {"tools": {"listChanged": False}}
ABOUT = (
    "Checkpoints of the files in this workspace: what you and your hooks recorded. Call checkpoint "
    "before anything risky and after anything that works. log lists the points, diff compares "
    "them, rollback puts all files back (what shell commands did too), fork tries another way, "
    "rewind prepares going back with the conversation. A checkpoint is named by its id or the "
    "beginning of it, its name, @ (the newest) or @~2 (two before)."
)


@dataclass(frozen=True)
class Call:
    """A tool that is to be called."""

    id: Id | None
    tool: str
    arguments: dict[str, Any]
    meta: dict[str, Any]
    client: str
    """What the client calls itself."""
    is_stateless: bool = False


class Protocol:
    """One client, and what was agreed on with it."""

    def __init__(self, tools: Sequence[dict[str, Any]]) -> None:
        self._tools = tools
        self._names = {tool["name"] for tool in tools}
        self._client = ""
        self.version: str | None = None

    @property
    def takes_batches(self) -> bool:
        """Whether several messages may come as one array."""
        return self.version in WITH_BATCHES

    def answer(self, request: Message) -> dict[str, Any] | Call:
        """Return the result of a request, or the call that gives it; else raise an RpcError."""
        meta = _meta(request)
        if request.method == "initialize":
            return self._initialize(request.params)
        if _VERSION in meta:
            return self._stateless(request, meta)
        if request.method == "ping":
            return {}
        if request.method == "tools/list":
            return self._list(request.params)
        if request.method == "tools/call":
            return self._call(request, meta, self._client)
        raise _unknown(request.method)

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        asked = params.get("protocolVersion")
        if not isinstance(asked, str):
            raise RpcError(INVALID_PARAMS, "protocolVersion is a string such as 2025-11-25")
        self._client = _name(params.get("clientInfo"))
        self.version = asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        return {
            "protocolVersion": self.version,
            "capabilities": CAPABILITIES,
            "serverInfo": SERVER,
            "instructions": ABOUT,
        }

    def _stateless(self, request: Message, meta: dict[str, Any]) -> dict[str, Any] | Call:
        _check_version(meta)
        if request.method == "tools/call":
            return self._call(request, meta, _name(meta.get(_CLIENT)), is_stateless=True)
        if request.method == "tools/list":
            return complete({**self._list(request.params), **_CACHED})
        if request.method == "server/discover":
            return complete(
                {
                    "supportedVersions": [*STATELESS_VERSIONS],
                    "capabilities": CAPABILITIES,
                    "instructions": ABOUT,
                    **_CACHED,
                }
            )
        raise _unknown(request.method)

    def _list(self, params: dict[str, Any]) -> dict[str, Any]:
        if params.get("cursor") is not None:
            raise RpcError(INVALID_PARAMS, "there is one page of tools, and no cursor was given")
        return {"tools": list(self._tools)}

    def _call(
        self, request: Message, meta: dict[str, Any], client: str, is_stateless: bool = False
    ) -> Call:
        tool, arguments = request.params.get("name"), request.params.get("arguments")
        if not isinstance(tool, str) or tool not in self._names:
            known = ", ".join(sorted(self._names))
            raise RpcError(INVALID_PARAMS, f"there is no such tool; there are {known}")
        if arguments is not None and not isinstance(arguments, dict):
            raise RpcError(INVALID_PARAMS, "arguments are an object")
        return Call(request.id, tool, arguments or {}, meta, client, is_stateless)


def complete(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result as it is since 2026-07-28."""
    return {"resultType": "complete", "_meta": {_SERVER: SERVER}, **result}


def _meta(request: Message) -> dict[str, Any]:
    meta = request.params.get("_meta")
    if meta is not None and not isinstance(meta, dict):
        raise RpcError(INVALID_PARAMS, "_meta is an object")
    return meta or {}


def _check_version(meta: dict[str, Any]) -> None:
    asked = meta[_VERSION]
    if not isinstance(asked, str):
        raise RpcError(INVALID_PARAMS, f"{_VERSION} is a string")
    if asked not in STATELESS_VERSIONS:
        raise RpcError(
            UNSUPPORTED_VERSION,
            "Unsupported protocol version",
            {"supported": [*STATELESS_VERSIONS, *reversed(HANDSHAKE_VERSIONS)], "requested": asked},
        )
    if not isinstance(meta.get(_CAPABILITIES), dict):
        raise RpcError(INVALID_PARAMS, f"_meta has no {_CAPABILITIES}")


def _name(client: Any) -> str:
    name = client.get("name") if isinstance(client, dict) else None
    return name if isinstance(name, str) else ""


def _unknown(method: str) -> RpcError:
    return RpcError(METHOD_NOT_FOUND, "Method not found", method[:200])


def refused_batch() -> RpcError:
    """Return what is said to an array where the version has none."""
    return RpcError(INVALID_REQUEST, "several messages in one are a thing of 2025-03-26 alone")
