"""CrewAI tells its makers of every run unless it is told not to, before it is imported."""

import os
import tempfile
from pathlib import Path

import pytest

os.environ |= {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "CREWAI_STORAGE_DIR": tempfile.mkdtemp(prefix="holdfast-crewai-tests-"),
    "OTEL_SDK_DISABLED": "true",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let CrewAI use what it has deprecated itself."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::DeprecationWarning"))
