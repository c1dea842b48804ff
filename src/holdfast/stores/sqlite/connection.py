"""Connections to one SQLite file: opening, locking, errors."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Literal, TypeVar
from weakref import WeakSet

from holdfast.errors import (
    CheckpointIntegrityError,
    InvalidArgumentError,
    StoreClosedError,
    StoreConnectionError,
    StoreFormatError,
)
from holdfast.stores.shared.retry import Attempts, Rule, retry
from holdfast.stores.shared.tags import FiledTags
from holdfast.stores.sqlite import guard
from holdfast.stores.sqlite import schema as sql
from holdfast.stores.sqlite.errors import is_busy, translated
from holdfast.stores.sqlite.writes import file_tags
from holdfast.system import forks, patience, private_files

T = TypeVar("T")

Durability = Literal["full", "normal"]

BUSY_SECONDS = 30.0
_SHORTEST_WAIT, _LONGEST_WAIT = 0.0001, 0.003
_READERS_KEPT = 8
_VIEW, _CHANGE = "BEGIN", "BEGIN IMMEDIATE"

_FILED_AT_ONCE, _TOLD = 2000, 100_000
_SESSIONS_KNOWN = 10_000

_openings = count(1)


def _tell(message: str, *args: object) -> None:
    import logging  # which takes as long to import as a small command, and is hardly ever needed

    logging.getLogger("holdfast").info(message, *args)


def _version_of(db: sqlite3.Connection) -> int:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    return int(version)


def _next_version(db: sqlite3.Connection, before: int) -> int:
    """Make the tables of the next version, unless another process has; return which they are of."""
    found = _version_of(db)
    if found != before:
        return found
    after = before + 1 if before else sql.VERSION
    for statement in sql.statements(before, after):
        db.execute(statement)
    db.execute(f"PRAGMA application_id = {sql.APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {after}")
    return after


def _file_some(db: sqlite3.Connection, filed: dict[int, FiledTags]) -> int:
    if _version_of(db) != sql.FILING:  # another process was faster
        return 0
    return file_tags(db, filed, _FILED_AT_ONCE)


class _Link:
    """A connection, opened when it is needed, and the lock of who uses it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.db: sqlite3.Connection | None = None
        self.opening = 0
        self.checked: int | None = None
        """The version of the schema that was found to be ours."""

    def opened(self, connect: Callable[[], sqlite3.Connection]) -> sqlite3.Connection:
        if self.db is None:
            self.db = connect()
            self.opening = next(_openings)
            self.checked = None
        return self.db

    def close(self) -> None:
        db, self.db = self.db, None
        if db is not None:
            db.close()


class Connections:
    """One connection that writes and some that read, each used by one thread at a time.

    An interrupt may strike between any two calls, and whoever catches it may keep its traceback.
    So locks are held by ``with`` in the function that does the work, never by a context manager
    written in Python, which may be left half entered; and a connection whose use was interrupted
    is closed, for cursors in the traceback would hold it in the past.
    """

    def __init__(
        self, path: Path, durability: Durability, in_child: Callable[[], object] = lambda: None
    ) -> None:
        if durability not in ("full", "normal"):
            raise InvalidArgumentError(f'durability is "full" or "normal", not {durability!r}')
        self.path = path
        self._place = Path(os.path.abspath(path))  # the program may go to another directory
        self.name = f"the SQLite store {path}"
        self.durability = durability
        self.closed = False
        self.allowance = guard.Allowance(self._place)
        self._in_child = in_child
        self._busy_seconds = patience.seconds(BUSY_SECONDS)
        waits = (_SHORTEST_WAIT, _LONGEST_WAIT)
        self._rules = (
            Rule(is_busy, seconds=self._busy_seconds, shortest=waits[0], longest=waits[1]),
        )
        self._make_links()
        self._file: tuple[int, int] | None = None
        with self.errors():
            self._make_directory()
            self._file = self._file_there()
            self.writer()
        forks.watch(self)

    def _make_links(self) -> None:
        self._writer, self._watcher = _Link(), _Link()
        self._idle: list[_Link] = []
        self._readers: WeakSet[_Link] = WeakSet()
        self._gate = threading.Lock()

    @property
    def write_lock(self) -> threading.Lock:
        """Return the lock that whoever writes holds."""
        return self._writer.lock

    def writer(self) -> sqlite3.Connection:
        """Return the connection that writes, for who holds ``write_lock``; opened if need be."""
        return self._writer.opened(self._connect_writer)

    def _connect_writer(self) -> sqlite3.Connection:
        db = self._connect()
        try:
            self._prepare(db)
            db.execute("PRAGMA busy_timeout = 0")  # it waits in its own way: _patiently
        except BaseException:
            db.close()
            raise
        return db

    def _before_fork(self) -> None:
        """Close every connection once it is idle; they are opened again when they are needed."""
        self._gate.acquire()
        for link in self._all():
            link.lock.acquire()
            link.close()

    def _after_fork(self, in_child: bool) -> None:
        """Go on, in the child without what threads of the parent had queued."""
        if in_child:
            self._make_links()
            self._in_child()
        else:
            for link in self._all():
                link.lock.release()
            self._gate.release()

    def _all(self) -> list[_Link]:
        return [self._writer, self._watcher, *self._readers]

    def check(self) -> None:
        """Refuse a closed store, and one whose file is gone: nobody would find what is saved."""
        if self.closed:
            raise StoreClosedError(self.name)
        if self._file_there() != self._file:
            raise StoreConnectionError(
                f"{self.name} was removed or replaced while it was open: put its file back, or "
                "open the store anew"
            )

    def _file_there(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._place)
        except FileNotFoundError:
            return None
        except OSError:  # SQLite tells what is wrong
            return self._file
        return found.st_dev, found.st_ino

    def _make_directory(self) -> None:
        try:
            private_files.make_directories(str(self._place.parent))
        except OSError as error:
            raise StoreConnectionError(
                f"{self.name} cannot be opened: {error.strerror}: {self.path.parent}"
            ) from error
        if self._place.is_dir():
            raise StoreConnectionError(
                f"{self.name} cannot be opened: it is a directory, not a file"
            )
        with suppress(OSError):  # SQLite tells why, and gives its other files the same mode
            private_files.make_file(os.path.realpath(self._place))

    def _connect(self) -> sqlite3.Connection:
        guard.check_journal(self._place)
        # isolation_level None: transactions begin and end where this code says so.
        db = sqlite3.connect(
            self._place, timeout=self._busy_seconds, isolation_level=None, check_same_thread=False
        )
        try:
            guard.harden(db)
            self.allowance.begin(db)
            db.execute(f"PRAGMA synchronous = {self.durability.upper()}")
            db.execute("PRAGMA temp_store = MEMORY")
            db.execute("PRAGMA cache_size = -8000")
            # Not mapped into memory: a file that another program cuts short would end this one.
            db.execute("PRAGMA mmap_size = 0")
        except BaseException:
            db.close()
            raise
        return db

    def _prepare(self, db: sqlite3.Connection) -> None:
        db.execute("BEGIN")  # one view: another process may be making the tables just now
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (application,) = db.execute("PRAGMA application_id").fetchone()
        tables = db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None
        if application != sql.APPLICATION_ID and (tables or application):
            raise StoreFormatError(
                f"{self.path} is an SQLite file of another program; choose another path"
            )
        self._check_version(version)
        guard.check(db, self.path, version)
        db.execute("COMMIT")
        if version == sql.VERSION:
            return
        if not tables:
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        self._patiently(db, "PRAGMA journal_mode = WAL")
        if version > 0:
            _tell("%s is brought from format %s to %s", self.name, version, sql.VERSION)
        while version < sql.VERSION:
            # Each is a transaction of its own: whoever is killed goes on there the next time.
            if version == sql.FILING:
                self._file_tags(db)
            version = self._alone(db, partial(_next_version, before=version))

    def _file_tags(self, db: sqlite3.Connection) -> None:
        """File all records by their tags, some at a time."""
        filed: dict[int, FiledTags] = {}
        done = 0
        while found := self._alone(db, partial(_file_some, filed=filed)):
            done += found
            if len(filed) > _SESSIONS_KNOWN:
                filed.clear()
            if done % _TOLD < found:
                _tell("%s: %s checkpoints are filed by their tags", self.name, f"{done:,}")

    def _alone(self, db: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do work before the tables are as they should be, in a transaction."""
        self._patiently(db, _CHANGE)
        try:
            self.allowance.begin(db)
            done = work(db)
            db.execute("COMMIT")
            return done
        except BaseException:
            db.execute("ROLLBACK")
            raise

    def _patiently(self, db: sqlite3.Connection, statement: str) -> Any:
        """Run a statement that needs a lock, asking again shortly while another holds it.

        Returns the first thing it answers.

        A short random wait does better under many writers than SQLite's own, which grows.
        """

        def run() -> Any:
            row = db.execute(statement).fetchone()
            return None if row is None else row[0]

        return retry(Attempts(self._rules, self._locked_out), run)

    def _locked_out(self, error: Exception) -> Exception:
        if not is_busy(error):
            return error
        return StoreConnectionError(
            f"{self.name} has been locked by another program for {self._busy_seconds:.0f} s"
        )

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do work that writes: all or nothing. The caller holds ``write_lock``."""
        self.check()
        with self.errors():
            return self._use(self._writer, self.writer(), _CHANGE, work)

    def read(self, work: Callable[[sqlite3.Connection], T], is_long: bool = False) -> T:
        """Do work that reads, from one unchanging view of the file.

        What may take long has a connection of its own: who writes would have to wait for it.
        """
        self.check()
        with self.errors():
            if not is_long and not self._idle and not self.write_lock.locked():
                # Nobody writes: no connection of its own is needed just to read.
                with self.write_lock:
                    self.check()
                    return self._use(self._writer, self.writer(), _VIEW, work)
            with self._gate:
                link = self._idle.pop() if self._idle else _Link()
                self._readers.add(link)
            with link.lock:
                try:
                    found = self._use(link, link.opened(self._connect), _VIEW, work)
                except BaseException:
                    link.close()
                    raise
            self._idle.append(link)
            while self._idle and (self.closed or len(self._idle) > _READERS_KEPT):
                self._idle.pop().close()
            return found

    def _use(
        self,
        link: _Link,
        db: sqlite3.Connection,
        begin: str,
        work: Callable[[sqlite3.Connection], T],
    ) -> T:
        """Do work in a transaction, for whoever holds the link's lock."""
        try:
            if db.in_transaction:  # of a use that was interrupted twice
                db.execute("ROLLBACK")
            self.allowance.begin(db)
            self._patiently(db, begin)
            self._check_tables(link, db)
            done = work(db)
            db.execute("COMMIT")
            return done
        except Exception:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        except BaseException:
            link.close()
            raise

    def _check_tables(self, link: _Link, db: sqlite3.Connection) -> None:
        """See that the tables are ours, once for each connection and after each change of them.

        Asking is also what a view begins with: it is of when it is first looked at.
        """
        schema = self._patiently(db, "PRAGMA schema_version")
        if schema != link.checked:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            self._check_version(version)
            guard.check(db, self.path, version)
            link.checked = schema

    def _check_version(self, version: int) -> None:
        if not 0 <= version <= sql.VERSION:
            raise StoreFormatError(
                f"{self.path} has format {version}, this Holdfast reads up to {sql.VERSION}: "
                "upgrade Holdfast to open it"
            )

    def data_version(self) -> tuple[int, int]:
        """Return something that differs once any connection, of any process, has written since."""
        self.check()
        with self._watcher.lock, self.errors():
            return self._version(self._watcher, self._watcher.opened(self._connect))

    def others_version(self) -> tuple[int, int]:
        """Return the same but for what this object wrote; the caller holds ``write_lock``."""
        self.check()
        with self.errors():
            return self._version(self._writer, self.writer())

    def _version(self, link: _Link, db: sqlite3.Connection) -> tuple[int, int]:
        (version,) = db.execute("PRAGMA data_version").fetchone()
        return link.opening, version  # versions of two connections cannot be compared

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Say what went wrong in Holdfast's own words."""
        try:
            yield
        except sqlite3.Error as error:
            if self.closed:
                raise StoreClosedError(self.name) from error
            raise translated(error, self.name, self._place) from error
        except UnicodeDecodeError as error:  # raised for the text of an error, too
            raise CheckpointIntegrityError(None, f"{self.path}: text that is no text") from error

    def close(self) -> None:
        with self.write_lock:
            self.closed = True
            while self._idle:
                self._idle.pop().close()
            with self._watcher.lock:
                self._watcher.close()
            self._writer.close()
