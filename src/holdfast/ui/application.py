"""The page and its HTTP interface as one ASGI application.

Every address below ``api/v1`` is a row of ``ROUTES`` in the module of its family, and is answered
in a thread: nothing that asks a store runs on the event loop.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute
from starlette.routing import Route as Address

from holdfast._version import __version__
from holdfast.cli.exits import (
    AMBIGUOUS,
    DAMAGED,
    FAILED,
    NOT_FOUND,
    REFUSED,
    UNREACHABLE,
    USAGE,
    CommandError,
    UsageError,
    code_of,
    error_json,
)
from holdfast.client import Client, SyncClient
from holdfast.errors import HoldfastError, InvalidArgumentError
from holdfast.stores.capabilities import files_of
from holdfast.stores.shared.secrets import masked
from holdfast.ui import (
    actions,
    checkpoint,
    compare,
    files,
    inbox,
    log,
    messages,
    sessions,
    sharing,
    state_tree,
    storage,
)
from holdfast.ui.entrance import Entrance
from holdfast.ui.guard import Guard, fault, refusal
from holdfast.ui.live import EventStream, Live
from holdfast.ui.openapi import description
from holdfast.ui.pages import Pages
from holdfast.ui.routes import Content, Parameters, Route
from holdfast.ui.seen_store import SeenStore

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

logger = logging.getLogger("holdfast.ui")

API = "/api/v1/"
LARGEST_BODY = 1_000_000
STATUSES = {
    USAGE: 400,
    NOT_FOUND: 404,
    AMBIGUOUS: 409,
    REFUSED: 409,
    DAMAGED: 422,
    UNREACHABLE: 503,
}
"""The HTTP status of each kind of error; any other is 500."""

FAMILIES = (
    sessions,
    log,
    checkpoint,
    messages,
    state_tree,
    files,
    compare,
    inbox,
    storage,
    sharing,
    actions,
)
ROUTES: tuple[Route, ...] = tuple(route for family in FAMILIES for route in family.ROUTES)

_INLINE = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "text/plain")
_SANDBOX = "sandbox; default-src 'none'; frame-ancestors 'none'"


def app(
    client: Client | SyncClient | str,
    *,
    read_only: bool = False,
    token: str | None = None,
    key: str | None = None,
    allowed_hosts: Iterable[str] | None = None,
    title: str | None = None,
    tools: Iterable[Callable[..., Any]] = (),
) -> Starlette:
    """Return the page over a client, or over the store of a URL, as an ASGI application.

    To be mounted behind your own login: without a ``token`` nobody is asked who they are. With
    one the address ``/?token=…`` works once and leaves a cookie, and programs may show a ``key``
    as ``Authorization: Bearer``. Give ``allowed_hosts`` whenever there is no login in front of
    it: else a page elsewhere can have its own name lead here. A rollback undoes calls with the
    functions among ``tools``, and no others. A client that is given stays open.
    A page keeps a stream open, so a server that waits for streams wants a limit when it ends, as
    ``uvicorn --timeout-graceful-shutdown 1``.
    """
    served = _Served(client)
    live = Live(served.client)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        live.begin()
        yield
        if live.end():
            await run_in_threadpool(served.close)

    pages = Pages(read_only, title)
    about = Route(
        "about",
        lambda client, given: _about(client, read_only, ROUTES),
        "The version, the store and what may be done",
        schema={"type": "object"},
    )
    every, undoing = (about, *ROUTES), tuple(tools)
    described = description(every, title)
    addresses: list[BaseRoute] = [
        Address(API + each.path, _Endpoint(each, served, undoing), methods=[_method(each)])
        for each in every
    ]
    addresses += [
        Address(API + "events", EventStream(live), methods=["GET"]),
        Address(API + "openapi.json", _Description(described), methods=["GET"]),
        *pages.addresses(),
    ]
    entrance = None if token is None else Entrance(token)
    guard = Middleware(
        Guard, read_only=read_only, entrance=entrance, key=key, allowed_hosts=allowed_hosts
    )
    made = Starlette(
        routes=addresses,
        middleware=[guard],
        exception_handlers={HTTPException: _http_problem},
        lifespan=lifespan,
    )
    made.router.redirect_slashes = False  # to an address that is made of the Host header
    made.state.live = live
    made.state.entrance = entrance
    # The lifespan of an application that is mounted never ends: what was opened goes with it.
    weakref.finalize(made, served.close)
    return made


class _Served:
    """The client that answers: over a store that was given, or one that is opened when needed."""

    def __init__(self, client: Client | SyncClient | str) -> None:
        if not isinstance(client, Client | SyncClient | str):
            raise InvalidArgumentError(
                f"app() takes a client or the URL of a store, not {type(client).__name__}"
            )
        self._lock = threading.Lock()
        self._url = client if isinstance(client, str) else None
        self._client = None if isinstance(client, str) else _seen(client)
        self._file: tuple[int, int] | None = None

    def client(self) -> SyncClient:
        """Return the client; one that was opened here is opened anew if its file was replaced."""
        with self._lock:
            if self._url is not None and self._client is not None:
                file = _file_of(self._client)
                if file is not None and file != self._file:
                    self._client.close()
                    self._client = None
            if self._client is None:
                self._client = _seen(SyncClient.open(self._url))
                self._file = _file_of(self._client)
            return self._client

    def close(self) -> None:
        """Close what was opened here, and nothing that was given."""
        with self._lock:
            if self._url is not None and self._client is not None:
                self._client.close()
                self._client = None


def _file_of(client: SyncClient) -> tuple[int, int] | None:
    """Return which file a store is in; None if it is in none, or that is gone."""
    for path in files_of(client.store)[:1]:
        try:
            found = os.stat(path)
        except OSError:
            return None
        return found.st_dev, found.st_ino
    return None


def _seen(client: Client | SyncClient) -> SyncClient:
    return SyncClient(SeenStore(client.store), url=client.url)


class _Endpoint:
    """Answers one address, as an ASGI application of its own."""

    def __init__(self, route: Route, served: _Served, tools: Sequence[Callable[..., Any]]) -> None:
        self._route = route
        self._served = served
        self._tools = tools

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            body = await _body(request) if self._route.writes else None
        except ClientDisconnect:
            return
        except _TooMuch as problem:
            response = _problem(UsageError(problem.detail), problem.status_code)
        else:
            response = await run_in_threadpool(self._answer, request, body)
        await response(scope, receive, send)

    def _answer(self, request: Request, body: bytes | None) -> Response:
        try:
            given = _asked(request) if body is None else _told(body)
            given.tools = self._tools
            given.check(self._route.parameters)
            found = self._route.answer(self._served.client(), given)
            if isinstance(found, Content):
                return _content(found)
            text = json.dumps(found, allow_nan=False, separators=(",", ":"))
            return Response(text.encode(), media_type="application/json")
        except HoldfastError as error:
            return _problem(error)
        except Exception as error:
            logger.exception("%s failed", self._route.path)
            return _problem(CommandError(fault(error)))


class _TooMuch(HTTPException):
    """A body that is not read."""


async def _body(request: Request) -> bytes:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise _TooMuch(415, "the body is JSON, and says so: Content-Type: application/json")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > LARGEST_BODY:
            raise _TooMuch(413, f"the body has more than {LARGEST_BODY} bytes")
    return bytes(body)


def _asked(request: Request) -> Parameters:
    several: dict[str, list[str]] = {}
    for name, value in request.query_params.multi_items():
        several.setdefault(name, []).append(value)
    return Parameters({name: values[-1] for name, values in several.items()}, several)


def _told(body: bytes) -> Parameters:
    try:
        given = json.loads(body, object_pairs_hook=_object)
        # No halves of characters, and no number that is none.
        json.dumps(given, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise UsageError("the body is no JSON") from None
    if not isinstance(given, dict):
        raise UsageError("the body is a JSON object")
    several = {
        name: value
        for name, value in given.items()
        if isinstance(value, list) and all(isinstance(each, str) for each in value)
    }
    return Parameters(given, several)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise UsageError("the body has a name twice in an object")
    return found


def _content(found: Content) -> Response:
    """Return bytes that somebody stored: they are shown only where they cannot do anything."""
    kind = found.media_type.partition(";")[0].strip().lower()
    response = Response(found.body, media_type=found.media_type)
    response.headers["content-security-policy"] = _SANDBOX
    if found.download_name is not None or kind not in _INLINE:
        name = quote((found.download_name or "content").encode("utf-8", "replace"), safe="")
        response.headers["content-disposition"] = f"attachment; filename*=UTF-8''{name}"
    return response


def _problem(error: HoldfastError, status: int | None = None) -> Response:
    body = json.dumps(error_json(error)).encode()
    code = code_of(error)
    return Response(body, status or STATUSES.get(code, 500), media_type="application/json")


def _http_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = {404: NOT_FOUND, 405: USAGE}.get(error.status_code, FAILED)
    what = {404: "there is nothing at this address", 405: "this address is asked otherwise"}
    message = what.get(error.status_code, error.detail)
    kind, body = refusal(request.scope, message, code)
    return Response(body, error.status_code, dict(error.headers or {}), kind)


class _Description:
    """The answer of ``openapi.json``, which says where the interface is found."""

    def __init__(self, described: dict[str, Any]) -> None:
        self._described = described

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        here = [{"url": quote(str(scope.get("root_path", ""))) + API.rstrip("/")}]
        await JSONResponse({**self._described, "servers": here})(scope, receive, send)


def _method(route: Route) -> str:
    return "POST" if route.writes else "GET"


def _about(client: SyncClient, read_only: bool, routes: Iterable[Route]) -> dict[str, Any]:
    verbs = [] if read_only else sorted(route.path for route in routes if route.writes)
    store = masked(client.url) if client.url is not None else client.store.name
    return {"version": __version__, "store": store, "read_only": read_only, "verbs": verbs}
