"""For tests of your own: the suite every store has to pass, and crash points to be killed at.

A store is proven by a class with one fixture::

    from holdfast.testing import OpenStore, StoreContract

    class TestMyStore(StoreContract):
        @pytest.fixture
        def open_store(self, tmp_path) -> OpenStore:
            return lambda: MyStore(tmp_path / "place")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.testing import crash_points

if TYPE_CHECKING:
    from holdfast.testing.contract import OpenStore, StoreContract

__all__ = ["OpenStore", "StoreContract", "crash_points"]

_SUITES = ("commits", "contract", "handles", "listing", "notes", "queries", "upkeep")


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'holdfast.testing' has no attribute {name!r}")
    try:
        import pytest
    except ImportError:
        from holdfast.errors import MissingPackageError

        raise MissingPackageError(f"holdfast.testing.{name}", "pytest") from None
    # Before they are imported, so that a failed assertion shows its values.
    pytest.register_assert_rewrite(*(f"holdfast.testing.{suite}" for suite in _SUITES))
    from holdfast.testing import contract

    return getattr(contract, name)
