"""What tests of the core share."""

from collections.abc import Iterator

import pytest

from tests.unit.attacks import ran


@pytest.fixture
def nothing_ran() -> Iterator[None]:
    """See that no code ran which the data chose."""
    ran.clear()
    yield
    assert ran == []
