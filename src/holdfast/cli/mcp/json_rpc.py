"""Messages of JSON-RPC 2.0: read with care, and written on one line each."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any, NoReturn

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

Id = str | int | float


class RpcError(Exception):
    """What a request is answered with where it has no result."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


@dataclass(frozen=True)
class Message:
    """A request, which has an id and is answered, or a notification."""

    method: str
    params: dict[str, Any] = field(default_factory=dict)
    id: Id | None = None


def parse(line: bytes) -> Any:
    """Return the JSON value of a line; what is not JSON is an RpcError."""
    try:
        return json.loads(line.decode(), parse_float=_float, parse_constant=_constant)
    except (ValueError, RecursionError) as error:
        raise RpcError(PARSE_ERROR, f"this is no JSON: {type(error).__name__}") from None


def message_of(value: Any) -> Message | None:
    """Return what a value asks for; None for an answer, as nothing was asked here."""
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'a message is an object with "jsonrpc": "2.0"')
    if "method" not in value and ("result" in value or "error" in value):
        return None
    if "id" in value and id_of(value) is None:
        raise RpcError(INVALID_REQUEST, "an id is a string or a number")
    method, params = value.get("method"), value.get("params")
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "a method is a string")
    if params is not None and not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "params are an object")
    return Message(method, params or {}, id_of(value))


def id_of(value: Any) -> Id | None:
    """Return the id of what was sent; None if it has none that can be answered."""
    found = value.get("id") if isinstance(value, dict) else None
    is_one = isinstance(found, (str, int, float)) and not isinstance(found, bool)
    return found if is_one else None


def result(request_id: Id | None, value: dict[str, Any]) -> bytes:
    """Return the answer to a request."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (_id(request_id), _json(value))


def failure(request_id: Id | None, error: RpcError) -> bytes:
    """Return the answer to a request that cannot be met; its id is null if it is not known."""
    said: dict[str, Any] = {"code": error.code, "message": str(error)}
    if error.data is not None:
        said["data"] = error.data
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (_id(request_id), _json(said))


def _id(request_id: Id | None) -> bytes:
    return json.dumps(request_id).encode()  # as it came, whatever is in it


def _json(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Half of a pair, which names of files may have, is no UTF-8: clients would drop all of it.
    return text.encode("utf-8", "replace")


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("beyond all numbers")
    return value


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")
