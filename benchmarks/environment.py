"""What a run was made with: enough to judge its figures, nothing that names the machine."""

from __future__ import annotations

import os
import platform
import sqlite3
import statistics
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

from holdfast import __version__

_PACKAGES = (
    "langgraph-checkpoint-sqlite",
    "langgraph-checkpoint-postgres",
    "langgraph-checkpoint-redis",
    "langgraph-checkpoint",
    "checkpnt",
    "diskcache",
    "pydantic",
    "langchain-core",
)
_SYNCHRONOUS = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}


def describe(directory: Path) -> dict[str, str]:
    """Facts by name; `directory` is where the stores are made."""
    return {
        "Python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "SQLite": f"{sqlite3.sqlite_version}, synchronous={_synchronous(directory)} in WAL",
        "fsync of 4 KB": f"{_fsync(directory) * 1e6:.0f} µs",
        "holdfast": __version__,
        **{name: _version(name) for name in _PACKAGES},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "from the source tree" if find_spec(package) else "not installed"


def _synchronous(directory: Path) -> str:
    """What a peer gets that turns WAL on and says nothing more."""
    connection = sqlite3.connect(directory / "probe.db")
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        return _SYNCHRONOUS[connection.execute("PRAGMA synchronous").fetchone()[0]]
    finally:
        connection.close()


def _fsync(directory: Path) -> float:
    """Median time to append and fsync; far below 50 µs, the disk does not take part."""
    took = []
    with open(directory / "probe", "wb", buffering=0) as file:
        for _ in range(30):
            start = perf_counter()
            file.write(bytes(4096))
            os.fsync(file.fileno())
            took.append(perf_counter() - start)
    return statistics.median(took)
