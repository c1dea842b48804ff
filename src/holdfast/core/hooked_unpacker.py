"""Unpacking msgpack with a hook of ours, so that whatever the hook raises comes out of it."""

from __future__ import annotations

from typing import Any

import ormsgpack

from holdfast.core.nesting import Descent
from holdfast.errors import CheckpointIntegrityError

_HOOK_FAILED = "ext_hook failed"


class HookedUnpacker:
    """Unpacks values; ``meet`` says what stands for an extension, and may unpack what is in it."""

    __slots__ = ("_descent", "_error")

    def __init__(self) -> None:
        self._descent = Descent()
        self._error: BaseException | None = None

    def meet(self, code: int, data: bytes) -> Any:
        """Return the value of an extension."""
        raise NotImplementedError

    def unpack(self, data: bytes) -> Any:
        """Return the value of these bytes."""
        self._descent.down(data)
        try:
            return ormsgpack.unpackb(data, ext_hook=self._hook)
        except (ValueError, RecursionError) as error:
            # msgpack hides what the hook raised, so the hook leaves it here.
            cause, self._error = self._error, None
            if cause is not None:
                raise cause from None
            if str(error) == _HOOK_FAILED and self._goes_through(data):
                raise KeyboardInterrupt from None
            raise CheckpointIntegrityError(None, f"unreadable value ({error})") from None
        finally:
            self._descent.up()

    def _hook(self, code: int, data: bytes) -> Any:
        try:
            return self.meet(code, data)
        except BaseException as error:
            if self._error is None:
                self._error = error
            raise

    def _goes_through(self, data: bytes) -> bool:
        """Return whether the hook, which failed and left nothing, works on the same bytes now.

        Then it was not the data: an interrupt struck as the hook was entered, before it could catch
        anything.
        """
        try:
            ormsgpack.unpackb(data, ext_hook=self._hook)
        except (ValueError, RecursionError):
            failed, self._error = self._error, None
            return failed is not None
        return True
