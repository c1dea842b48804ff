"""The contenders by name."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.contenders import graphs
from benchmarks.contenders.base import Contender, Lister, SyncContender
from benchmarks.contenders.checkpnt import Checkpnt
from benchmarks.contenders.diskcache import DiskCache
from benchmarks.contenders.files import JsonFile, PickleFile
from benchmarks.contenders.graphs import GraphContender
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

GRAPH_OURS = "LangGraph on Holdfast"
GRAPH_OURS_NORMAL = "LangGraph on Holdfast, normal"
GRAPH_OURS_ASYNC = "LangGraph on Holdfast, async"
GRAPH_OURS_DELTA = "LangGraph on Holdfast, DeltaChannel"
GRAPH_SAVER = "LangGraph on SqliteSaver"
GRAPH_SAVER_ASYNC = "LangGraph on AsyncSqliteSaver"
GRAPH_SAVER_DELTA = "LangGraph on SqliteSaver, DeltaChannel"

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
GRAPHS: dict[str, Callable[[], GraphContender]] = {
    GRAPH_OURS: lambda: GraphContender(GRAPH_OURS, graphs.ours),
    GRAPH_OURS_NORMAL: lambda: GraphContender(GRAPH_OURS_NORMAL, graphs.ours_normal),
    GRAPH_OURS_ASYNC: lambda: GraphContender(GRAPH_OURS_ASYNC, graphs.ours, is_async=True),
    GRAPH_OURS_DELTA: lambda: GraphContender(GRAPH_OURS_DELTA, graphs.ours, delta=True),
    GRAPH_SAVER: lambda: GraphContender(GRAPH_SAVER, graphs.official),
    GRAPH_SAVER_ASYNC: lambda: GraphContender(
        GRAPH_SAVER_ASYNC, graphs.official_async, is_async=True
    ),
    GRAPH_SAVER_DELTA: lambda: GraphContender(GRAPH_SAVER_DELTA, graphs.official, delta=True),
}
"""A whole step of a graph, on a saver each."""
ALL: dict[str, Callable[[], Contender]] = {
    **_OURS,
    HOLDFAST_ASYNC: lambda: AsyncHoldfast(HOLDFAST_ASYNC),
    **_SAVERS,
    SAVER_ASYNC: lambda: AsyncSqliteSaver(SAVER_ASYNC),
    CHECKPNT: lambda: Checkpnt(CHECKPNT),
    PICKLE: lambda: PickleFile(PICKLE),
    JSON: lambda: JsonFile(JSON),
    DISKCACHE: lambda: DiskCache(DISKCACHE),
    **GRAPHS,
}

__all__ = ["ALL", "GRAPHS", "SYNC", "Contender", "Lister", "SyncContender"]
