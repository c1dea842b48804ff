"""``holdfast migrate``: a store is brought up to the format of this Holdfast."""

from __future__ import annotations

import logging
import sqlite3
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

from holdfast.cli.access.opening import location_of, open_location
from holdfast.cli.exits import OK
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.parsing import Parser
from holdfast.stores.discovery import StoreLocation
from holdfast.system.terminal_text import clean

_SERVERS = ("postgres", "redis", "unix")


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "Whatever opens a store of an earlier Holdfast does this; the command does it at a time "
        "of your\nchoosing, tells how far it has come, and says what it did. It may be killed: it "
        "goes on there the\nnext time. An older Holdfast cannot open the store afterwards.",
        "holdfast migrate",
        "holdfast migrate --store postgresql://localhost/agents --json",
    )
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Bring the store up to date."""
    location = location_of(options)
    before = format_of(location)
    with _steps_told(terminal), open_location(location) as client:
        name = client.store.name
    after = current_format(location)
    if terminal.json:
        terminal.emit({"store": name, "from": before, "to": after, "migrated": before != after})
    elif before is None:
        terminal.line(f"{clean(name)} is at format {after}")
    elif before == after:
        terminal.line(f"{clean(name)} is at format {after} already")
    else:
        terminal.line(f"{clean(name)} was brought from format {before} to {after}")
    return OK


@contextmanager
def _steps_told(terminal: Terminal) -> Iterator[None]:
    """Say what the store tells of its steps while it is opened."""
    logger, told = logging.getLogger("holdfast"), logging.Handler(logging.INFO)
    told.emit = lambda record: terminal.hint(record.getMessage())  # type: ignore[method-assign]
    before = logger.level
    logger.addHandler(told)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(before)
        logger.removeHandler(told)


def format_of(location: StoreLocation) -> int | None:
    """Return the format of a store before it is opened; None where only opening it tells."""
    scheme = urlsplit(location.url).scheme
    if scheme != "sqlite":
        # Servers are asked by opening them; the others have had one format only.
        return None if scheme.startswith(_SERVERS) else current_format(location)
    path = location.path
    if path is None or not path.exists():
        return current_format(location)
    return _version_of(path)


def _version_of(path: Path) -> int | None:
    with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as db:
        try:
            (version,) = db.execute("PRAGMA user_version").fetchone()
        except sqlite3.DatabaseError:  # no SQLite file: opening it says so
            return None
    return int(version)


def current_format(location: StoreLocation) -> int:
    """Return the format that this Holdfast writes in such a store."""
    scheme = urlsplit(location.url).scheme
    if scheme == "sqlite":
        from holdfast.stores.sqlite.schema import VERSION

        return VERSION
    if scheme.startswith("postgres"):
        from holdfast.stores.postgres.schema import VERSION as POSTGRES_VERSION

        return POSTGRES_VERSION
    if scheme in ("file", "memory"):
        from holdfast.stores.file.document import FORMAT

        return FORMAT
    from holdfast.stores.redis.keys import VERSION as REDIS_VERSION

    return REDIS_VERSION
