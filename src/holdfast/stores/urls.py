"""Stores by their URL."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from holdfast.errors import InvalidArgumentError
from holdfast.stores import discovery
from holdfast.stores.base import Store
from holdfast.stores.shared.secrets import masked

_SCHEMES = (
    "memory://, file:///directory, sqlite:///path.db, redis://host:6379/0 "
    "or postgresql://host/database"
)
_REDIS = (
    *("redis", "rediss", "unix"),
    *(f"{tls}+{kind}" for tls in ("redis", "rediss") for kind in ("cluster", "sentinel")),
)


def located(url: str | None) -> str:
    """Return a URL as it is; without one that of the store which is meant in this directory."""
    return discovery.find_or_make().url if url is None else url


def open_store(url: str | None = None) -> Store:
    """Open the store of a URL; without one that which is meant in this directory."""
    url = located(url)
    if not isinstance(url, str) or "://" not in url:
        # Not shown in full: what was given may hold a password.
        raise InvalidArgumentError(f"a store is named by a URL such as {_SCHEMES}")
    try:
        parts = urlsplit(url)
    except ValueError:  # whose words may show a password
        raise InvalidArgumentError(f"{masked(url)!r} is no URL") from None
    if parts.fragment:
        raise InvalidArgumentError("a store's URL has no part after #: write %23 for one in a path")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if any(name.startswith("blobs") for name in options):
        from holdfast.stores.objects.store import open_with_blobs

        return open_with_blobs(url, open_store)
    if parts.scheme == "memory":
        store: Store = _memory(options)
    elif parts.scheme == "sqlite":
        store = _sqlite(_path(url, parts.netloc, parts.path), options)
    elif parts.scheme == "file":
        store = _file(_path(url, "", parts.netloc + parts.path), options)
    elif parts.scheme in _REDIS:
        store = _redis(url)
    elif parts.scheme in ("postgres", "postgresql"):
        store = _postgres(url, options)
    else:
        raise InvalidArgumentError(f"no store is called {parts.scheme!r}; there are {_SCHEMES}")
    return store


def shareable(url: str) -> str | None:
    """Return the URL by which a process elsewhere opens the same store; None if none can."""
    scheme, _, rest = url.partition(":///")
    if url.startswith("memory:"):
        return None
    if scheme == "sqlite" and not rest.startswith("/"):
        return f"sqlite:///{os.path.join(os.getcwd(), rest)}"
    return url


def _path(url: str, netloc: str, path: str) -> Path:
    """Three slashes and a relative path, or four and an absolute one, as SQLAlchemy writes them."""
    if netloc:
        raise InvalidArgumentError(
            f"{masked(url)!r} has two slashes: write sqlite:///relative.db or sqlite:////absolute/path.db"
        )
    if not path.strip("/"):
        raise InvalidArgumentError(f"{masked(url)!r} names no path")
    return Path(unquote(path if url.startswith("file") else path[1:]))


def _none_left(options: dict[str, str]) -> None:
    if options:
        raise InvalidArgumentError(f"no such option for this store: {', '.join(sorted(options))}")


def _memory(options: dict[str, str]) -> Store:
    from holdfast.stores.memory import MemoryStore

    _none_left(options)
    return MemoryStore()


def _sqlite(path: Path, options: dict[str, str]) -> Store:
    from holdfast.stores.sqlite.store import SqliteStore

    durability = options.pop("durability", "full")
    _none_left(options)
    return SqliteStore(path, durability)  # type: ignore[arg-type]


def _file(path: Path, options: dict[str, str]) -> Store:
    from holdfast.stores.file.store import FileStore

    fmt = options.pop("fmt", "json")
    _none_left(options)
    return FileStore(path, fmt)  # type: ignore[arg-type]


def _redis(url: str) -> Store:
    from holdfast.stores.redis.store import RedisStore

    return RedisStore(url)


def _postgres(url: str, options: dict[str, str]) -> Store:
    from holdfast.stores.postgres.store import PostgresStore

    own: dict[str, Any] = {}
    for name, read in (("schema", str), ("pool_size", int), ("timeout", float)):
        if name in options:
            try:
                own[name] = read(options.pop(name))
            except ValueError:
                raise InvalidArgumentError(f"{name} in the URL is a number") from None
    # What is left is for PostgreSQL itself, sslmode for instance.
    dsn = urlunsplit(urlsplit(url)._replace(query=urlencode(options)))
    return PostgresStore(dsn, **own)
