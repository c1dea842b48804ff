"""One connection to a PostgreSQL database: where it leads, what is said on it, what goes wrong."""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Generator
from typing import Any

from holdfast.errors import (
    HoldfastError,
    InvalidArgumentError,
    MissingPackageError,
    StoreConnectionError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
)

try:
    import psycopg
    from psycopg import adapt, generators, pq
    from psycopg.errors import error_from_result
except ImportError:
    raise MissingPackageError("the PostgreSQL store", "psycopg", "postgres") from None

from holdfast.stores.postgres.steps import Statement

AnyConnection = psycopg.Connection[Any] | psycopg.AsyncConnection[Any]

ATTEMPTS = 6
"""How often an operation is begun that others get in the way of."""
_LONGEST_WAIT = 0.05
_BINARY = adapt.PyFormat.BINARY
_FAILED = (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE, pq.ExecStatus.EMPTY_QUERY)


class NoAnswer(psycopg.OperationalError):
    """The server was silent for too long."""


class CannotConnect(psycopg.OperationalError):
    """There is no connection to be had."""


_REMEDIES = {
    "authentication failed": "check user and password",
    "does not exist": "check user and database",
    "too many": "lower pool_size or use a pooler",
    "connection slots": "lower pool_size or use a pooler",
    "": "check that the server runs and takes connections there",
}
"""By the words of a server that refuses a connection: it gives no code that could be told by."""


class Place:
    """Where a database is, how to connect to it, and how to tell of it without its password."""

    def __init__(self, dsn: str, schema: str, timeout: float) -> None:
        self.timeout = timeout
        options = _parsed(dsn)
        self._password = options.get("password")
        host = options.get("host") or options.get("hostaddr") or "localhost"
        where = f"{host}:{options.get('port')}/{options.get('dbname') or options.get('user')}"
        self.name = f"the PostgreSQL store {schema} at {where}"
        self.options: dict[str, Any] = {
            "conninfo": dsn,
            "autocommit": True,
            "prepare_threshold": None,  # a pooler may run the next statement elsewhere
            "client_encoding": "UTF8",
        }
        defaults = {
            "application_name": "holdfast",
            "connect_timeout": math.ceil(timeout),
            # A connection that a router has forgotten is noticed while there is time for another.
            "tcp_user_timeout": math.ceil(timeout * 500),
            "keepalives_idle": 60,
        }
        named = {option.keyword.decode() for option in _named(dsn)}
        self.options |= {name: value for name, value in defaults.items() if name not in named}

    def translated(self, error: Exception) -> HoldfastError:
        """What went wrong, in Holdfast's own words."""
        state = getattr(error, "sqlstate", None) or ""
        said = self._said(error)
        if isinstance(error, NoAnswer):
            return StoreConnectionError(
                f"{self.name} has not answered for {self.timeout:g} s; what was being saved may "
                "have been kept or not: check the server and the network, then look"
            )
        if state == "25006":
            return StoreReadOnlyError(
                f"{self.name} is read-only: connect to the primary, or check "
                f"default_transaction_read_only ({said})"
            )
        if state == "42501":
            return StoreReadOnlyError(f"{self.name}: GRANT what is missing to the role: {said}")
        if state == "53100":
            return StoreFullError(f"{self.name} has no space left: free some and save again")
        if state == "54000":
            return InvalidArgumentError(f"{self.name}: an id or key is too long to be kept: {said}")
        if isinstance(error, (psycopg.DataError, UnicodeEncodeError)):
            return InvalidArgumentError(f"{self.name}: text that PostgreSQL cannot hold: {said}")
        if is_lost(error):
            remedy = next(_REMEDIES[words] for words in _REMEDIES if words in said)
            return StoreConnectionError(f"{self.name} cannot be reached: {remedy} ({said})")
        return StoreError(f"{self.name} failed: {said}")

    def _said(self, error: Exception) -> str:
        told = error.diag.message_primary if isinstance(error, psycopg.Error) else None
        text = " ".join((told or str(error)).split())
        return text.replace(self._password, "…") if self._password else text


def _parsed(dsn: object) -> dict[str, str]:
    """The options of a DSN, completed from the environment as libpq does."""
    try:
        if not isinstance(dsn, str):
            raise TypeError
        named = _named(dsn)
    except (TypeError, UnicodeEncodeError, psycopg.Error):  # whose text may show a password
        raise InvalidArgumentError(
            "a PostgreSQL store is named by a DSN such as postgresql://user@host:5432/database"
        ) from None
    options = [*pq.Conninfo.get_defaults(), *named]
    return {option.keyword.decode(): option.val.decode() for option in options if option.val}


def _named(dsn: str) -> list[pq.ConninfoOption]:
    return [option for option in pq.Conninfo.parse(dsn.encode()) if option.val]


def is_lost(error: Exception) -> bool:
    """Whether an error says that there is no connection, or no longer."""
    state = getattr(error, "sqlstate", None)
    if state is None:
        return isinstance(error, (psycopg.OperationalError, OSError))
    return bool(state.startswith(("08", "57P")))


class Attempts:
    """How often an operation was begun, and whether it may be once more."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._failed = 0
        self.lost = False
        """Whether the connection of an attempt was lost, so that nobody knows what it did."""

    def failed(self, error: Exception) -> float:
        """The seconds to wait before the next attempt; if there is none, raises why."""
        self._failed += 1
        if getattr(error, "sqlstate", None) in ("40001", "40P01") and self._failed < ATTEMPTS:
            return random.uniform(0, _LONGEST_WAIT)  # noqa: S311
        hopeless = isinstance(error, (NoAnswer, CannotConnect))
        if is_lost(error) and not hopeless and not self.lost:
            self.lost = True  # the next one gets a connection of its own
            return 0
        raise self._place.translated(error) from error


def exchange(
    connection: AnyConnection, statement: Statement, seconds: float
) -> Generator[Any, Any, list[Any]]:
    """Send a statement and read its rows, as a generator that psycopg can wait for or await.

    It speaks to libpq directly: a cursor of psycopg takes as long as a small statement itself.
    NoAnswer is raised when the server gives no sign for so many seconds.
    """
    text, values = statement
    rows = adapt.Transformer(connection)
    if values is None:  # may be a whole script
        connection.pgconn.send_query(text.encode())
    else:
        sent = rows.dump_sequence(values, [_BINARY] * len(values))
        connection.pgconn.send_query_params(
            text.encode(), sent, rows.types, rows.formats, pq.Format.BINARY
        )
    results = yield from _bounded(generators.execute(connection.pgconn), seconds)
    for result in results:
        if result.status in _FAILED:
            raise error_from_result(result, "utf-8")
    rows.set_pgresult(results[-1])
    return rows.load_rows(0, results[-1].ntuples, tuple)


def _bounded(waiting: Generator[Any, Any, Any], seconds: float) -> Generator[Any, Any, Any]:
    last = time.monotonic()
    try:
        wanted = next(waiting)
        while True:
            ready = yield wanted
            if ready:
                last = time.monotonic()
            elif time.monotonic() - last > seconds:
                raise NoAnswer("no answer")
            wanted = waiting.send(ready)
    except StopIteration as end:
        return end.value


def abandon(connection: AnyConnection) -> None:
    """Close a connection from any thread, whatever it is doing."""
    connection.pgconn.finish()


def leave_to_parent(connection: AnyConnection) -> None:
    """In a forked child: let go of a socket that is the parent's, without a word to the server."""
    if not connection.closed:
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, connection.fileno())
        os.close(nowhere)
        abandon(connection)
