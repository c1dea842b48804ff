"""What frameworks leave behind is not held against the test that happens to run when it is seen."""

import pytest

_LEFT_OPEN = (
    "ignore:Exception ignored in. <socket.socket fd=.* family=1,",
    "ignore:Exception ignored in. <function BaseEventLoop.__del__",
)
"""Event loops, with the sockets that they wake themselves by; no other sockets, and no files."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for pattern in _LEFT_OPEN:
            mark = f"{pattern}:pytest.PytestUnraisableExceptionWarning"
            item.add_marker(pytest.mark.filterwarnings(mark))
