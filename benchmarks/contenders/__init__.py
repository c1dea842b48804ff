"""The contenders by name."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.contenders.base import Contender, Lister, SyncContender
from benchmarks.contenders.checkpnt import Checkpnt
from benchmarks.contenders.diskcache import DiskCache
from benchmarks.contenders.files import JsonFile, PickleFile
from benchmarks.contenders.holdfast import AsyncHoldfast, Holdfast
from benchmarks.contenders.langgraph import AsyncSqliteSaver, SqliteSaver

HOLDFAST = "Holdfast"
HOLDFAST_NORMAL = "Holdfast, normal"
HOLDFAST_APPEND = "Holdfast, append_only"
HOLDFAST_ASYNC = "Holdfast, async"
SAVER = "LangGraph SqliteSaver"
SAVER_NORMAL = "LangGraph SqliteSaver, NORMAL"
SAVER_UNSAFE = "LangGraph SqliteSaver, OFF"
SAVER_ASYNC = "LangGraph AsyncSqliteSaver"
CHECKPNT = "checkpnt sqlite"
PICKLE = "pickle file"
JSON = "JSON file"
DISKCACHE = "diskcache"

_OURS: dict[str, Callable[[], Lister]] = {
    HOLDFAST: lambda: Holdfast(HOLDFAST),
    HOLDFAST_NORMAL: lambda: Holdfast(HOLDFAST_NORMAL, durability="normal"),
    HOLDFAST_APPEND: lambda: Holdfast(HOLDFAST_APPEND, append_only="messages"),
}
_SAVERS: dict[str, Callable[[], Lister]] = {
    SAVER: lambda: SqliteSaver(SAVER),
    SAVER_NORMAL: lambda: SqliteSaver(SAVER_NORMAL, synchronous="NORMAL"),
    SAVER_UNSAFE: lambda: SqliteSaver(SAVER_UNSAFE, synchronous="OFF"),
}
SYNC = {**_OURS, **_SAVERS}
"""Those that threads and worker processes can drive, and that can list."""
ALL: dict[str, Callable[[], Contender]] = {
    **_OURS,
    HOLDFAST_ASYNC: lambda: AsyncHoldfast(HOLDFAST_ASYNC),
    **_SAVERS,
    SAVER_ASYNC: lambda: AsyncSqliteSaver(SAVER_ASYNC),
    CHECKPNT: lambda: Checkpnt(CHECKPNT),
    PICKLE: lambda: PickleFile(PICKLE),
    JSON: lambda: JsonFile(JSON),
    DISKCACHE: lambda: DiskCache(DISKCACHE),
}

__all__ = ["ALL", "SYNC", "Contender", "Lister", "SyncContender"]
