"""The page: runs seen, compared and steered in a browser, and the same over HTTP.

``holdfast ui`` serves it on this machine; ``app(client)`` is the same to be mounted elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.errors import MissingPackageError

if TYPE_CHECKING:
    from holdfast.ui.application import app as app

__all__ = ["app"]


def __getattr__(name: str) -> Any:
    if name == "app":
        try:
            from holdfast.ui.application import app
        except ModuleNotFoundError as error:
            if error.name != "starlette":
                raise
            raise MissingPackageError("holdfast.ui.app", "starlette", "ui") from None
        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
