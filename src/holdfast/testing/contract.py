"""The suite that every store has to pass."""

from __future__ import annotations

from holdfast.testing.commits import CommitSuite
from holdfast.testing.fences import FenceSuite
from holdfast.testing.handles import HandleSuite
from holdfast.testing.listing import ListingSuite
from holdfast.testing.notes import NoteSuite
from holdfast.testing.order import OrderSuite
from holdfast.testing.queries import QuerySuite
from holdfast.testing.suite import OpenStore
from holdfast.testing.upkeep import UpkeepSuite

__all__ = ["OpenStore", "StoreContract"]


class StoreContract(
    CommitSuite,
    ListingSuite,
    QuerySuite,
    OrderSuite,
    UpkeepSuite,
    NoteSuite,
    FenceSuite,
    HandleSuite,
):
    """What a store promises, as tests; subclass it and say how the store is opened.

    Override the fixture ``open_store`` with a function that opens the store, and set
    ``persistent = False`` if what was committed is gone when the store is opened again.
    """
