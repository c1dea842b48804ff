"""What goes wrong with a PostgreSQL database, in Holdfast's own words."""

from __future__ import annotations

import psycopg

from holdfast.errors import (
    HoldfastError,
    InvalidArgumentError,
    StoreConnectionError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
)

FAILURES = (psycopg.Error, OSError, UnicodeEncodeError)
"""Everything that psycopg raises."""
_REMEDIES = {
    "authentication failed": "check user and password",
    "does not exist": "check user and database",
    "too many": "lower pool_size or use a pooler",
    "connection slots": "lower pool_size or use a pooler",
    "": "check that the server runs and takes connections there",
}
"""By the words of a server that refuses a connection: it gives no code that could be told by."""


class NoAnswer(psycopg.OperationalError):
    """The server was silent for too long."""


class CannotConnect(psycopg.OperationalError):
    """There is no connection to be had."""


def is_failure(error: Exception) -> bool:
    """Return whether an error is the database's, not one of ours."""
    return isinstance(error, FAILURES) and not isinstance(error, HoldfastError)


def is_conflict(error: Exception) -> bool:
    """Return whether others got in the way of a transaction, which may go well the next time."""
    return getattr(error, "sqlstate", None) in ("40001", "40P01")


def is_lost(error: Exception) -> bool:
    """Return whether an error says that there is no connection, or no longer."""
    state = getattr(error, "sqlstate", None)
    if state is None:
        return isinstance(error, (psycopg.OperationalError, OSError))
    return bool(state.startswith(("08", "57P")))


def is_cut(error: Exception) -> bool:
    """Return whether a connection was there and is lost, so that another may do."""
    return is_lost(error) and not isinstance(error, (NoAnswer, CannotConnect, HoldfastError))


def translated(error: Exception, name: str, timeout: float, password: str | None) -> HoldfastError:
    """Return the error of ours that says what happened and what to do, without the password."""
    state = getattr(error, "sqlstate", None) or ""
    said = _said(error, password)
    if isinstance(error, NoAnswer):
        return StoreConnectionError(
            f"{name} has not answered for {timeout:g} s; what was being saved may "
            "have been kept or not: check the server and the network, then look"
        )
    if state == "25006":
        return StoreReadOnlyError(
            f"{name} is read-only: connect to the primary, or check "
            f"default_transaction_read_only ({said})"
        )
    if state == "42501":
        return StoreReadOnlyError(f"{name}: GRANT what is missing to the role: {said}")
    if state == "53100":
        return StoreFullError(f"{name} has no space left: free some and save again")
    if state == "54000":
        return InvalidArgumentError(f"{name}: an id or key is too long to be kept: {said}")
    if isinstance(error, (psycopg.DataError, UnicodeEncodeError)):
        return InvalidArgumentError(f"{name}: text that PostgreSQL cannot hold: {said}")
    if is_lost(error):
        remedy = next(_REMEDIES[words] for words in _REMEDIES if words in said)
        return StoreConnectionError(f"{name} cannot be reached: {remedy} ({said})")
    return StoreError(f"{name} failed: {said}")


def _said(error: Exception, password: str | None) -> str:
    told = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    text = " ".join((told or str(error)).split())
    return text.replace(password, "…") if password else text
