"""``holdfast ui``: runs seen, compared and steered in a browser."""

from __future__ import annotations

import errno
import ipaddress
import os
import secrets
import socket
import sys
import threading
import webbrowser
from argparse import Namespace
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.cli.access.given_functions import add_import, imported
from holdfast.cli.access.opening import location_of, open_location
from holdfast.cli.exits import OK, CommandError, UsageError
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.parsing import Parser, count
from holdfast.errors import MissingPackageError

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from uvicorn import Server

_HIGHEST = 65535
_USUAL = 80
"""The port that browsers leave out."""
_SECONDS_TO_END = 1


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "Serves a page on this machine and opens it in the browser, until Ctrl-C. The link works "
        "once: whoever\nopens it first gets a cookie, and all others are refused. The page reads "
        "the store as the other\ncommands do and shows what any process writes as it comes. It "
        "needs pip install 'holdfast[ui]'.",
        "holdfast ui",
        "holdfast ui --read-only --no-browser --port 8642",
    )
    parser.add_argument(
        "--port", type=count, default=0, metavar="N", help="the port (default: one that is free)"
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="H",
        help="the address to be reached at (%(default)s: from this machine alone)",
    )
    parser.add_argument("--read-only", action="store_true", help="change nothing from the page")
    add_import(parser)
    parser.add_argument("--no-browser", action="store_true", help="print the link, open nothing")
    parser.add_argument(
        "--print-key",
        action="store_true",
        help="print a key for programs too, to be sent as Authorization: Bearer",
    )
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Serve the page until Ctrl-C."""
    _check_packages()
    if options.port > _HIGHEST:
        raise UsageError(f"--port is a number from 0 to {_HIGHEST}, not {options.port}")
    if not options.host.strip("[]"):
        raise UsageError("--host is a name or an address of this machine, and not empty")
    from holdfast.ui.application import app

    location = location_of(options)
    open_location(location).close()  # that it can be is known before anybody asks
    with _bound(options.host, options.port) as bound:
        address, port = bound.getsockname()[:2]
        token = secrets.token_urlsafe(32)
        key = secrets.token_urlsafe(32) if options.print_key else None
        application = app(
            location.url,
            read_only=options.read_only,
            token=token,
            key=key,
            allowed_hosts=_allowed(options.host, address, port),
            tools=imported(options.modules),
        )
        origin = f"http://{_named(options.host, address)}:{port}"
        if not ipaddress.ip_address(address).is_loopback:
            terminal.hint(_warning(options))
        _tell(options, terminal, f"{origin}/?token={token}", location.shown, key)
        if not options.no_browser and _has_desktop():
            _browse(f"{origin}/?token={application.state.entrance.own_token()}")
        _server(application).run(sockets=[bound])
    return OK


def _check_packages() -> None:
    for package in ("starlette", "uvicorn"):
        try:
            __import__(package)
        except ImportError:
            raise MissingPackageError("holdfast ui", package, "ui") from None


def _bound(host: str, port: int) -> socket.socket:
    """Return a socket that listens: the address is printed once it can be asked."""
    try:
        kind, _, _, _, address = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        raise CommandError(f"there is no address {host!r} on this machine: {error}") from None
    bound = socket.socket(kind, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(128)
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            raise CommandError(
                f"port {port} of {host} is in use: give another with --port, or none for a free one"
            ) from None
        reason = error.strerror or str(error)
        raise CommandError(f"{host} port {port} cannot be listened at: {reason}") from None
    return bound


def _written(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _is_every(address: str) -> bool:
    return ipaddress.ip_address(address).is_unspecified


def _named(host: str, address: str) -> str:
    """Return the name in the link: one that leads to this machine."""
    if not _is_every(address):
        return _written(host)
    return "[::1]" if ":" in address else "127.0.0.1"


def _allowed(host: str, address: str, port: int) -> list[str]:
    """Return what a Host header may say; a server on every address is asked by any of them."""
    names = ["127.0.0.1", "localhost", "[::1]", _written(host), _written(address)]
    if _is_every(address):
        names.append(socket.gethostname())
    return [f"{name}:{port}" for name in names] + (names if port == _USUAL else [])


def _server(application: Starlette) -> Server:
    """Return a server that ends open streams with Ctrl-C, and then ends at once."""
    from uvicorn import Config, Server

    class Ending(Server):
        # Not where the signal is handled: that may be in the middle of what ends them.
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            application.state.live.hush()
            await super().shutdown(sockets)

    return Ending(
        Config(
            application,
            access_log=False,  # addresses may hold the token
            log_config=None,
            log_level="warning",
            lifespan="on",
            ws="none",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_SECONDS_TO_END,
        )
    )


def _warning(options: Namespace) -> str:
    return (
        f"{options.host} is reached from other machines: whoever has the link or the cookie can "
        "read all states, files and messages"
        + ("" if options.read_only else ", and change them")
        + "; all others are refused. Nothing on the way is encrypted"
    )


def _tell(options: Namespace, terminal: Terminal, url: str, store: str, key: str | None) -> None:
    if terminal.json:
        said = {"url": url, "store": store, "read_only": options.read_only}
        terminal.emit_line({**said, "key": key})
        return
    terminal.now(f"{store}{' (read-only)' if options.read_only else ''}")
    terminal.now(f"{terminal.paint(url, 'name')}  (works once; Ctrl-C ends)")
    if key is not None:
        terminal.now(f"Authorization: Bearer {key}")


def _has_desktop() -> bool:
    """Return whether a browser would open beside the terminal, and not in it."""
    named = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME")
    return sys.platform != "linux" or any(os.environ.get(each) for each in named)


def _browse(url: str) -> None:
    """Open the link, in a thread: some browsers are started only as others end."""

    def opened() -> None:
        with suppress(webbrowser.Error, OSError):  # the link is printed
            webbrowser.open(url)

    threading.Thread(target=opened, name="holdfast-ui-browser", daemon=True).start()
