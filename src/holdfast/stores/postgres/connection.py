"""One connection to a PostgreSQL database: where it leads, and what is said on it."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Generator
from typing import Any

import psycopg
from psycopg import adapt, generators, pq
from psycopg.errors import error_from_result

from holdfast.errors import HoldfastError, InvalidArgumentError
from holdfast.stores.postgres.errors import NoAnswer, translated
from holdfast.stores.postgres.reads import Statement

AnyConnection = psycopg.Connection[Any] | psycopg.AsyncConnection[Any]

_BINARY = adapt.PyFormat.BINARY
_FAILED = (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE, pq.ExecStatus.EMPTY_QUERY)


class ServerAddress:
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
        """Return what went wrong, in Holdfast's own words."""
        return translated(error, self.name, self.timeout, self._password)


def _parsed(dsn: object) -> dict[str, str]:
    """Return the options of a DSN, completed from the environment as libpq does."""
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
    """Let go, in a forked child, of a socket that is the parent's, without a word to the server."""
    if not connection.closed:
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, connection.fileno())
        os.close(nowhere)
        abandon(connection)
