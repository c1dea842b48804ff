"""What all parts of the contract suite share: the store they are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from holdfast.stores.base import Store

OpenStore = Callable[[], Store]
"""Opens a store; called again, it opens the same place another time."""


class Suite:
    """Tests of a store; a subclass says how it is opened."""

    persistent = True
    """Whether a store that is opened again holds what was committed before."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """Override this: a function that opens the store to be tested, empty the first time."""
        raise NotImplementedError("give your class a fixture open_store; see StoreContract")

    @pytest.fixture
    def store(self, open_store: OpenStore) -> Iterator[Store]:
        """Give the store to be tested, closed at the end."""
        with open_store() as store:
            yield store
