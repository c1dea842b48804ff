"""CrewAI tells its makers of every run unless it is told not to, before it is imported."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pytest

PLACE = tempfile.mkdtemp(prefix="holdfast-crewai-tests-")
atexit.register(shutil.rmtree, PLACE, ignore_errors=True)
os.environ |= {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "CREWAI_STORAGE_DIR": PLACE,
    "OTEL_SDK_DISABLED": "true",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let CrewAI use what it has deprecated itself."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::DeprecationWarning"))
