"""What is believed of an SQLite file before anything is read from it: nothing.

A file may come from anybody. It may hold views and triggers, which run when a table is used; an
index over a function; a tree of pages that leads in circles; a value that claims a gigabyte; a
journal that has SQLite delete a file of another program. So every connection is told to trust
nothing (``harden``), the tables have to be exactly those that this Holdfast makes (``check``), and
what is read may not be more than the file can hold (``Allowance``).
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain, repeat
from pathlib import Path

from holdfast.core.chunk_format import MAX_CHUNK
from holdfast.errors import CheckpointIntegrityError, StoreFormatError
from holdfast.stores.shared.rows import Row
from holdfast.stores.sqlite import schema as sql

LONGEST = 2 * MAX_CHUNK
"""Bytes of the largest value; a stored chunk has half of it at most, and a little more."""
_LONGEST_SCHEMA = 2**16
_MOST_ENTRIES = 1000
_SHOWN = 3

_ENTRIES = "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master LIMIT ?"
_SUPER_JOURNAL = bytes.fromhex("d9d505f920a163d7")
_STATISTICS = {  # made by ANALYZE, and read by SQLite alone
    "sqlite_stat1": "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
    "sqlite_stat4": "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
}

STEPS = 100_000
"""Instructions of SQLite's machine between two looks at the allowance."""
_FREE = 50_000_000 // STEPS
_BYTES = STEPS // 16
"""A listing takes about one instruction for each byte of the file: no more than 16 are given."""
_FREE_BYTES = 16 * 2**20
_FRESH = 0.5
"""Seconds for which the size of a file is believed."""


def harden(db: sqlite3.Connection) -> None:
    """Make a connection trust nothing that the file says; before its first look at the file."""
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
    db.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    db.setlimit(sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 1)
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA cell_size_check = ON")
    if sys.version_info >= (3, 12):
        db.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE)
        db.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)
        db.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW, False)


def check_journal(path: Path) -> None:
    """Refuse a journal that names a file: SQLite would delete that file when it rolls back.

    Only a transaction over several files leaves such a journal, and no store has any.
    """
    journal = Path(f"{os.path.realpath(path)}-journal")
    try:
        with journal.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 16))
            end = file.read(16)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreFormatError(
            f"{journal} cannot be read ({error.strerror}), and it may belong to {path}: "
            "check what it is"
        ) from None
    length = int.from_bytes(end[:4], "big")
    if end[8:] == _SUPER_JOURNAL and 0 < length <= size - 16:
        raise StoreFormatError(
            f"{journal} names another file for SQLite to delete, which no journal of Holdfast "
            f"does: move it away if {path} is to be opened"
        )


def check(db: sqlite3.Connection, path: Path, version: int) -> None:
    """Refuse a file whose tables are not exactly those of that version, and tables alone.

    Plain tables beside them are left alone, as tools that copy databases keep some. The caller is
    in a transaction, so that what is checked is what is read.
    """
    encoding, entries = _read(db)
    if encoding != "UTF-8":
        raise StoreFormatError(f"{path} keeps its text as {encoding}, which no Holdfast makes")
    if len(entries) > _MOST_ENTRIES:
        raise StoreFormatError(f"{path} has more than {_MOST_ENTRIES} tables: it is no store")
    problem = _problem(db, entries, *_expected(version))
    if problem:
        raise StoreFormatError(
            f"{path} is not as Holdfast makes its files: {problem}. Nothing was read from it; "
            "if it is yours, remove what was added"
        )


def _read(db: sqlite3.Connection) -> tuple[str, list[Row]]:
    before = db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_SCHEMA)
    try:
        entries = db.execute(_ENTRIES, (_MOST_ENTRIES + 1,)).fetchall()
        (encoding,) = db.execute("PRAGMA encoding").fetchone()
    finally:
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, before)
    return encoding, entries


def _problem(
    db: sqlite3.Connection,
    entries: list[Row],
    expected: dict[str, Row],
    indexed: dict[str, set[str]],
) -> str:
    names = [str(name).lower() for _, name, *_ in entries]
    if len({*names}) != len(names):
        return "two of its tables have one name"
    pages = [page for *_, page, _ in entries if page]
    if len({*pages}) != len(pages):
        return "two of its tables lie in one place"
    found = {str(name): (kind, table, _plain(text)) for kind, name, table, _, text in entries}
    for name, entry in found.items():
        kind, table, text = entry
        wanted = expected.get(name)
        if wanted is not None and wanted != entry:
            return f"{_shown(name)} is another {_shown(kind)} than it should be"
        if wanted is None and not _is_harmless(name, kind, text):
            return f"it has a {_shown(kind)} {_shown(name)}"
    missing = sorted(expected.keys() - found.keys())
    if missing:
        return f"it has no {', '.join(missing[:_SHOWN])}"
    for table, indexes in indexed.items():
        # The text of an index says what it is over, whatever the entry of the index says.
        added = _indexes_of(db, table) - indexes
        if added:
            return f"{table} has an index {_shown(min(added))}"
    return ""


def _is_harmless(name: str, kind: object, text: str | None) -> bool:
    """Return whether what is not ours is a plain table, or an index, and so is never run."""
    if name in _STATISTICS:
        return kind == "table" and text == _STATISTICS[name]
    if kind == "index":
        return True
    return kind == "table" and text is not None and text.upper().startswith("CREATE TABLE ")


def _shown(name: object) -> str:
    """Return a name that somebody else chose, for a message."""
    return ascii(str(name))[1:-1][:80]


def _plain(text: object) -> str | None:
    return " ".join(text.split()) if isinstance(text, str) else None


def _indexes_of(db: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in db.execute(f"PRAGMA index_list({table})")}


@cache
def _expected(version: int) -> tuple[dict[str, Row], dict[str, set[str]]]:
    """Return what a file of that version holds: kind, table and text by name; indexes by table."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    try:
        for statement in sql.statements(0, version):
            db.execute(statement)
        entries = db.execute(_ENTRIES, (_MOST_ENTRIES,)).fetchall()
        tables = sorted({table for _, _, table, *_ in entries})
        indexed = {table: _indexes_of(db, table) for table in tables}
    finally:
        db.close()
    return {name: (kind, table, _plain(text)) for kind, name, table, _, text in entries}, indexed


class Allowance:
    """How much may be read from a file in one go: no more than it can hold."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = f"{path}-wal"
        self._looks, self._until = 0, 0.0

    def size(self) -> int:
        """Return bytes of the file and its log."""
        size = 0
        for file in (self._path, self._log):
            try:
                size += os.stat(file).st_size
            except OSError:  # not there (yet), or not to be looked at: then it counts for nothing
                continue
        return size

    def begin(self, db: sqlite3.Connection) -> None:
        """Count from here on: a statement that takes more steps than the file is large ends.

        The counter is of C alone. A signal that struck in a function of Python called by SQLite
        would be lost.
        """
        now = time.monotonic()
        if now > self._until:
            self._looks, self._until = _FREE + self.size() // _BYTES, now + _FRESH
        db.set_progress_handler(chain(repeat(0, self._looks), repeat(1)).__next__, STEPS)

    def measure(self) -> Callable[[int], None]:
        """Count bytes that were read; once there are more than in the file, refuse."""
        total, enough = 0, _FREE_BYTES

        def add(size: int) -> None:
            nonlocal total, enough
            total += size
            if total > enough:
                enough = max(_FREE_BYTES, self.size())
                if total > enough:
                    raise CheckpointIntegrityError(
                        None, f"{self._path}: more is read from it than it can hold"
                    )

        return add

    def measured(self, rows: Iterable[Row], column: int) -> Iterator[Row]:
        """Yield the same rows, unless a column of them has more bytes in all than there are."""
        measure = self.measure()
        for row in rows:
            value = row[column]
            if type(value) is bytes or type(value) is str:
                measure(len(value))
            yield row


ENDLESS = "reading it takes more steps than a file of its size can need: it is damaged, or made so"
