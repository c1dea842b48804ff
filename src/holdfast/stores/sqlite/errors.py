"""What goes wrong with an SQLite file, in Holdfast's own words."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from holdfast.errors import (
    CheckpointIntegrityError,
    HoldfastError,
    StoreConnectionError,
    StoreError,
    StoreFormatError,
    StoreFullError,
    StoreReadOnlyError,
)
from holdfast.stores.sqlite.guard import ENDLESS


def is_busy(error: Exception) -> bool:
    """Return whether another holds the lock that a statement needs."""
    return isinstance(error, sqlite3.OperationalError) and _code_of(error) in (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
    )


def _code_of(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def translated(error: sqlite3.Error, name: str, path: Path) -> HoldfastError:
    """Return the error of ours that says what happened and what to do."""
    code = _code_of(error)
    if code == sqlite3.SQLITE_FULL:
        return StoreFullError(f"{name} has no space left: free some and save again")
    if code == sqlite3.SQLITE_READONLY or (code == sqlite3.SQLITE_CANTOPEN and _kept_out(path)):
        return StoreReadOnlyError(
            f"{name} is read-only: check the permissions of {path} and its directory"
        )
    if code == sqlite3.SQLITE_NOTADB:
        return StoreFormatError(f"{path} is not an SQLite file; choose another path")
    if code == sqlite3.SQLITE_CANTOPEN:
        return StoreConnectionError(f"{name} cannot be opened: check the path and permissions")
    if code == sqlite3.SQLITE_CORRUPT or "decode to UTF-8" in str(error):
        return CheckpointIntegrityError(
            None, f"{path}: {error}; run verify() to see which checkpoints are affected"
        )
    if code in (sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_INTERRUPT) or "overflow" in str(error):
        why = ENDLESS if code == sqlite3.SQLITE_INTERRUPT else f"{error}; it is damaged"
        return CheckpointIntegrityError(None, f"{path}: {why}")
    if is_busy(error):
        return StoreConnectionError(f"{name} is locked by another program: {error}")
    if code == sqlite3.SQLITE_IOERR:
        return StoreError(f"{name} failed: {error}; check the disk and save again")
    return StoreError(f"{name} failed: {error}")


def _kept_out(path: Path) -> bool:
    """Return whether the file is there, in a directory that SQLite may not write to."""
    return path.exists() and not os.access(
        path.parent, os.W_OK, effective_ids=os.access in os.supports_effective_ids
    )
