"""Who may ask: the token, the names of this server, where a write comes from, and safe headers.

It stands before everything else of the page, so that no address can be forgotten.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from html import escape
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from holdfast.cli.exits import FAILED, MEANINGS, REFUSED
from holdfast.core.short_repr import brief
from holdfast.system.connections import can_tell_users
from holdfast.ui.entrance import Entrance, asking_user

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

logger = logging.getLogger("holdfast.ui")

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
READS = ("GET", "HEAD", "OPTIONS")
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; base-uri 'self'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": CSP,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_AGAIN = (
    "This address needs the link that holdfast ui prints, which works once, or the cookie it "
    "gave. Start holdfast ui again to get a new one"
)


def path_within(scope: Scope) -> str:
    """Return the path below where the application is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    within = path[len(root) :] if root and path.startswith(root) else path
    return within or "/"


def header(scope: Scope, name: str) -> str | None:
    """Return a header of a request, by its name in small letters."""
    return next(iter(_headers(scope, name)), None)


def _headers(scope: Scope, name: str) -> list[str]:
    wanted = name.encode("latin-1")
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == wanted]


_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[^\[\]:@/\\?#\s,]+)(?::(?P<port>[0-9]{1,5}))?")


class Hosts:
    """The names under which the server may be asked; others come of a rebound name."""

    def __init__(self, allowed: Iterable[str]) -> None:
        self._allowed = {each.lower() for each in allowed}
        # A server on every address is asked by any of them; a name that was rebound is none.
        self._wild = {port for name, port in map(_split, self._allowed) if _is_every(name)}

    def admit(self, host: str | None) -> bool:
        """Return whether a Host header names this server."""
        host = (host or "").lower()
        name, port = _split(host)
        if host in self._allowed or name in self._allowed:
            return bool(name)
        return bool(self._wild & {port, ""}) and _address(name) is not None


def _split(host: str) -> tuple[str, str]:
    """Return the name and the port of a Host header; nothing of one that is none."""
    found = _HOST.fullmatch(host)
    return (found["name"], found["port"] or "") if found else ("", "")


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return None


def _is_every(name: str) -> bool:
    found = _address(name)
    return found is not None and found.is_unspecified


class Guard:
    """ASGI middleware: lets through what may be asked, and sets the headers of every answer."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        read_only: bool = False,
        entrance: Entrance | None = None,
        key: str | None = None,
        allowed_hosts: Iterable[str] | None = None,
    ) -> None:
        self._app = app
        self._read_only = read_only
        self._entrance = entrance
        self._key = key
        self._asks = entrance is not None or key is not None
        self._cookie = secrets.token_urlsafe(32)
        self._visitors = Visitors()
        if allowed_hosts is None and self._asks:
            allowed_hosts = LOOPBACK
        self._hosts = None if allowed_hosts is None else Hosts(allowed_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let the application do it."""
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Headed(scope, send)
        problem = self._refusal(scope)
        if problem is not None:
            await _refuse(scope, answer, 403, problem)
        elif self._asks and not self._may(scope):
            await self._let_in(scope, answer)
        elif self._asks and scope["method"] == "GET" and _token_of(scope) is not None:
            await _redirect(scope, answer, None)  # the link once more, with the cookie
        else:
            await self._pass(scope, receive, answer)

    async def _pass(self, scope: Scope, receive: Receive, answer: _Headed) -> None:
        try:
            await self._app(scope, receive, answer)
        except Exception as error:
            logger.exception("%s %s failed", scope["method"], path_within(scope))
            if answer.begun:
                raise
            await _refuse(scope, answer, 500, fault(error), FAILED)

    def _refusal(self, scope: Scope) -> str | None:
        """Return why a request is none that the page or its user makes."""
        hosts = _headers(scope, "host")
        if len(hosts) > 1:
            return "a request names one host"
        host = hosts[0] if hosts else None
        if self._hosts is not None and not self._hosts.admit(host):
            shown = brief(host) if host else "a server without a name"
            return f"this server is not {shown}: name it in allowed_hosts, or with --host"
        if scope["method"] in READS:
            return None
        if not _is_from_here(scope, host):
            return "a write comes from the page of this server alone, not from another site"
        if self._read_only:
            return "this is read-only: nothing is changed from here"
        return None

    def _may(self, scope: Scope) -> bool:
        given = header(scope, "authorization")
        if given is not None and self._key is not None:
            kind, _, said = given.partition(" ")
            if kind.lower() == "bearer" and _equal(said.strip(), self._key):
                return True
        name = _cookie_name(scope)
        if not any(_equal(said, self._cookie) for said in _cookies(scope, name)):
            return False
        return self._visitors.knows(scope)

    async def _let_in(self, scope: Scope, answer: _Headed) -> None:
        given = _token_of(scope) if scope["method"] == "GET" else None
        # Nothing is awaited from the question to its answer: of two at once, one is let in.
        entrance = self._entrance
        if given is not None and entrance is not None and entrance.admits(given, scope):
            self._visitors.let_in(scope)
            await _redirect(scope, answer, self._cookie)
        else:
            await _refuse(scope, answer, 401, _AGAIN)


class Visitors:
    """The users of this machine, or of others, who were let in.

    A browser gives its cookies to every server of a host, whatever its port: those of other users
    of this machine, too. What they show here comes over a connection of theirs, and counts nothing.
    """

    def __init__(self) -> None:
        self._users: set[int | None] = set()

    def let_in(self, scope: Scope) -> None:
        """Know whoever sends a request."""
        self._users.add(asking_user(scope))

    def knows(self, scope: Scope) -> bool:
        """Return whether it is somebody who was let in; True where nobody can say."""
        if not can_tell_users() or None in self._users:
            return True
        return asking_user(scope) in self._users


def fault(error: Exception) -> str:
    """Return what is said of a fault of the program; what the error says may hold anything."""
    return (
        f"{type(error).__name__}. This is a fault of holdfast: please report it, with what the "
        "server has printed about it"
    )


class _Headed:
    """Sends what an application answers, with the headers that every answer has."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope = scope
        self._send = send
        self.begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            headers = list(message.get("headers", ()))
            there = {name.lower() for name, _ in headers}
            wanted = dict(HEADERS)
            if path_within(self._scope).startswith("/api/"):
                wanted["cache-control"] = "no-store"
                headers = [(k, v) for k, v in headers if k.lower() != b"cache-control"]
                there.discard(b"cache-control")
            headers += [
                (name.encode(), value.encode())
                for name, value in wanted.items()
                if name.encode() not in there
            ]
            message = {**message, "headers": headers}
        await self._send(message)


def _equal(given: str, wanted: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "replace"), wanted.encode())


def _is_from_here(scope: Scope, host: str | None) -> bool:
    """Return whether a write comes from the page, or from a program that is no browser."""
    origin, site = header(scope, "origin"), header(scope, "sec-fetch-site")
    if site is not None and site not in ("same-origin", "none"):
        return False
    # Where a proxy gives the server another name, only the browser can tell.
    return origin is None or (site == "same-origin" and origin != "null") or _is_same(origin, host)


def _is_same(origin: str, host: str | None) -> bool:
    try:
        found = urlsplit(origin)
    except ValueError:
        return False
    if found.scheme not in ("http", "https") or not host:
        return False
    usual = {"http": ":80", "https": ":443"}[found.scheme]
    return found.netloc.lower().removesuffix(usual) == host.lower().removesuffix(usual)


def _cookie_name(scope: Scope) -> str:
    """Return the name of the cookie; cookies do not tell ports apart, so that it has to."""
    port = _split(header(scope, "host") or "")[1]
    return f"holdfast_{port if port.isdecimal() else 443 if _is_https(scope) else 80}"


def _is_https(scope: Scope) -> bool:
    return bool(scope.get("scheme") == "https")


def _cookies(scope: Scope, name: str) -> list[str]:
    found = []
    for part in (header(scope, "cookie") or "").split(";"):
        said, _, value = part.strip().partition("=")
        if said == name:
            found.append(value)
    return found


def _query(scope: Scope) -> list[tuple[str, str]]:
    text = bytes(scope.get("query_string", b"")).decode("latin-1")
    return parse_qsl(text, keep_blank_values=True)


def _token_of(scope: Scope) -> str | None:
    return next((value for name, value in _query(scope) if name == "token"), None)


async def _redirect(scope: Scope, send: Send, cookie: str | None) -> None:
    """Send to the same address without the token, and give the cookie."""
    left = urlencode([(name, value) for name, value in _query(scope) if name != "token"])
    path = quote("/" + str(scope["path"]).lstrip("/"))  # never //host
    headers = [("location", f"{path}?{left}" if left else path), ("cache-control", "no-store")]
    if cookie is not None:
        # Lax: an address of the page that somebody sent opens, and other sites' posts have none.
        base = quote(str(scope.get("root_path", ""))) + "/"
        made = f"{_cookie_name(scope)}={cookie}; HttpOnly; SameSite=Lax; Path={base}"
        headers.append(("set-cookie", f"{made}; Secure" if _is_https(scope) else made))
    await _answer(send, 303, headers, b"")


async def _refuse(scope: Scope, send: Send, status: int, message: str, code: int = REFUSED) -> None:
    """Say why not: as JSON to programs, as a small page to people."""
    kind, body = refusal(scope, message, code)
    headers = [("content-type", kind), ("cache-control", "no-store")]
    if status == 401:
        headers.append(("www-authenticate", "Bearer"))
    await _answer(send, status, headers, b"" if scope["method"] == "HEAD" else body)


def refusal(scope: Scope, message: str, code: int) -> tuple[str, bytes]:
    """Return what says why not, and of which type it is."""
    if path_within(scope).startswith("/api/"):
        said = {"error": {"code": code, "kind": MEANINGS[code][0], "message": message}}
        return "application/json", json.dumps(said).encode()
    return "text/html; charset=utf-8", _PAGE.format(escape(message)).encode()


_PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Holdfast</title>'
    "<h1>Holdfast</h1><p>{}.</p></html>"
)


async def _answer(send: Send, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
    written = [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers]
    written.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": written})
    await send({"type": "http.response.body", "body": body})
