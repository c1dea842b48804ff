"""The kind of what only pickle can keep: made and read where the user allows that, nowhere else."""

from __future__ import annotations

import pickle
from typing import Any

from holdfast.core.kinds.plain_shapes import BYTES
from holdfast.core.kinds.table import Kind, Reviver, Revives, Unkeepable, add
from holdfast.errors import SerializationError

PICKLE = 60


def stable_pickle(value: Any) -> bytes:
    """Return the pickle of a value; what is loaded from it pickles to the same bytes again."""
    try:
        return pickle.dumps(pickle.loads(pickle.dumps(value, 5)), 5)  # noqa: S301
    except Exception as error:
        raise Unkeepable(f"cannot be pickled either ({error}); exclude it") from error


def _revive_pickle(plain: bytes, _: Reviver) -> Any:
    try:
        return pickle.loads(plain)  # noqa: S301
    except Exception as error:
        raise SerializationError("$", f"a pickled value cannot be loaded ({error!r})") from error


add(Kind(PICKLE, "pickle", stable_pickle, _revive_pickle, Revives.ANYTHING, BYTES))
