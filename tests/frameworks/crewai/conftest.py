"""CrewAI tells its makers of every run unless it is told not to, before it is imported."""

import os
import tempfile

os.environ |= {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "CREWAI_STORAGE_DIR": tempfile.mkdtemp(prefix="holdfast-crewai-tests-"),
    "OTEL_SDK_DISABLED": "true",
}
