"""The page itself: one document for all its addresses, and the files it is made of.

The files stand below a name that is made of all that is in them, so that a browser never asks for
the same one twice.
"""

from __future__ import annotations

import hashlib
import json
import mimetypes
import re
from html import escape
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as Address

from holdfast._version import __version__
from holdfast.ui.guard import path_within

STATIC = Path(__file__).with_name("static")
ADDRESSES = {
    "/": ("sessions.js",),
    "/session": ("session.js", "conversation.js"),
    "/compare": ("compare.js",),
    "/inbox": ("inbox.js",),
    "/storage": ("storage.js",),
}
"""Where the page is found, and the modules that draw what is there."""
_IMPORT = re.compile(rb'^(?:import|export)\b[^;"]*"\./([\w.]+)";$', re.MULTILINE)
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class Pages:
    """Gives the document, filled in for where the application is mounted, and static files."""

    def __init__(self, read_only: bool, title: str | None) -> None:
        told = {"read_only": read_only, "version": __version__, "title": title}
        self._settings = escape(json.dumps(told), quote=True)
        self._title = None if title is None else escape(title)
        # Only what is listed here is given: no name leads out of the directory.
        self._files = {
            path.relative_to(STATIC).as_posix(): path.read_bytes()
            for path in sorted(STATIC.rglob("*"))
            if path.is_file()
        }
        self._edition = _tag(b"".join(self._files.values()))[:16]

    def addresses(self) -> list[Address]:
        """Return where all this is found."""
        made = [Address(each, self._document, methods=["GET"]) for each in ADDRESSES]
        return [*made, Address("/static/{name:path}", self._file, methods=["GET"])]

    def _modules(self, path: str) -> str:
        """Tell a browser of the modules that it needs: else it finds each in the one before."""
        needed: dict[str, None] = {}
        wanted = ["main.js", *ADDRESSES[path]]
        while wanted:
            name = wanted.pop()
            if name not in needed:
                needed[name] = None
                wanted += [each.decode() for each in _IMPORT.findall(self._files[name])]
        return "".join(f'<link rel="modulepreload" href="static/{name}" />' for name in needed)

    async def _document(self, request: Request) -> Response:
        text = self._files["index.html"].decode()
        root = escape(str(request.scope.get("root_path", "")), quote=True)
        text = text.replace("{root_path}", root).replace("{settings}", self._settings)
        text = text.replace("{modules}", self._modules(path_within(request.scope)))
        text = text.replace('"static/', f'"static/{self._edition}/')
        # The title last: what stands in it is filled in nowhere.
        if self._title is not None:
            text = text.replace("<title>Holdfast</title>", f"<title>{self._title}</title>")
        return _answer(request, text.encode(), _TYPES[".html"])

    async def _file(self, request: Request) -> Response:
        asked = request.path_params["name"]
        name = asked.removeprefix(f"{self._edition}/")
        body = self._files.get(name)
        if body is None or name == "index.html":
            raise HTTPException(404)
        kind = _TYPES.get(Path(name).suffix) or mimetypes.guess_type(name)[0]
        cache = "no-cache" if name == asked else "private, max-age=31536000, immutable"
        return _answer(request, body, kind or "application/octet-stream", cache)


def _tag(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:32]


def _answer(request: Request, body: bytes, kind: str, cache: str = "no-cache") -> Response:
    tag = f'"{_tag(body)}"'
    headers = {"etag": tag, "cache-control": cache}
    given = request.headers.get("if-none-match", "")
    if tag in (each.strip().removeprefix("W/") for each in given.split(",")):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type=kind)
