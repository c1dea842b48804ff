"""What goes wrong with a directory of documents, in Holdfast's own words."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.errors import (
    CheckpointIntegrityError,
    HoldfastError,
    StoreConnectionError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
)

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NOT_ALLOWED = (errno.EROFS, errno.EACCES, errno.EPERM)


@contextmanager
def translating(name: str, writing: bool) -> Iterator[None]:
    """Say what went wrong with the store of that name in Holdfast's own words."""
    try:
        yield
    except HoldfastError:
        raise
    except OSError as error:
        raise _translated(error, name, writing) from error


def _translated(error: OSError, name: str, writing: bool) -> StoreError:
    if error.errno in _FULL:
        return StoreFullError(f"{name} has no space left: free some and save again")
    if writing and error.errno in _NOT_ALLOWED:
        return StoreReadOnlyError(f"{name} may not be written to: {error}")
    return StoreConnectionError(f"{name} cannot be used: {error}")


@contextmanager
def naming(checkpoint_id: str) -> Iterator[None]:
    """Name the checkpoint in errors that do not know it."""
    try:
        yield
    except CheckpointIntegrityError as error:
        if error.checkpoint_id is not None:
            raise
        raise CheckpointIntegrityError(checkpoint_id, error.reason) from None
