"""The contenders by name."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.contenders import graphs
from benchmarks.contenders.base import Contender, Lister, SyncContender
from benchmarks.contenders.checkpnt import Checkpnt
from benchmarks.contenders.diskcache import DiskCache
from benchmarks.contenders.files import JsonFile, PickleFile
from benchmarks.contenders.graphs import GraphContender, PostgresGraph
from benchmarks.contenders.holdfast import AsyncHoldfast, Holdfast
from benchmarks.contenders.langgraph import AsyncSqliteSaver, SqliteSaver
from benchmarks.contenders.runs import DbosWorkflow, HoldfastRun, RunContender
from benchmarks.contenders.servers import (
    ALWAYS,
    EVERYSEC,
    RedisCheckpnt,
    ServedAsyncHoldfast,
    ServedHoldfast,
    ServedSaver,
)
from benchmarks.contenders.trees import HoldfastTree, ShadowGit, TreeContender

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
GRAPH_OURS_POSTGRES = "LangGraph on Holdfast, postgres"
GRAPH_SAVER_POSTGRES = "LangGraph on PostgresSaver"

HOLDFAST_REDIS = "Holdfast, redis"
HOLDFAST_REDIS_ASYNC = "Holdfast, redis async"
HOLDFAST_REDIS_ALWAYS = "Holdfast, redis always"
HOLDFAST_POSTGRES = "Holdfast, postgres"
HOLDFAST_POSTGRES_ASYNC = "Holdfast, postgres async"
SAVER_REDIS = "LangGraph RedisSaver"
SAVER_POSTGRES = "LangGraph PostgresSaver"
CHECKPNT_REDIS = "checkpnt redis"
CHECKPNT_REDIS_ALWAYS = "checkpnt redis, always"

RUN_OURS = "Holdfast run"
RUN_OURS_NORMAL = "Holdfast run, normal"
RUN_DBOS = "DBOS workflow"

TREE_OURS = "Holdfast workspace"
TREE_WATCHING = "Holdfast workspace, watching"
TREE_WATCHING_NORMAL = "Holdfast workspace, watching, normal"
TREE_GIT = "git in a shadow repository"

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
POSTGRES_GRAPHS: dict[str, Callable[[], GraphContender]] = {
    GRAPH_OURS_POSTGRES: lambda: PostgresGraph(GRAPH_OURS_POSTGRES, graphs.ours_postgres),
    GRAPH_SAVER_POSTGRES: lambda: PostgresGraph(GRAPH_SAVER_POSTGRES, graphs.official_postgres),
}
_SERVED: dict[str, Callable[[], Contender]] = {
    HOLDFAST_REDIS: lambda: ServedHoldfast(HOLDFAST_REDIS, EVERYSEC),
    HOLDFAST_REDIS_ASYNC: lambda: ServedAsyncHoldfast(HOLDFAST_REDIS_ASYNC, EVERYSEC),
    HOLDFAST_REDIS_ALWAYS: lambda: ServedHoldfast(HOLDFAST_REDIS_ALWAYS, ALWAYS),
    HOLDFAST_POSTGRES: lambda: ServedHoldfast(HOLDFAST_POSTGRES),
    HOLDFAST_POSTGRES_ASYNC: lambda: ServedAsyncHoldfast(HOLDFAST_POSTGRES_ASYNC),
    SAVER_REDIS: lambda: ServedSaver(
        SAVER_REDIS, "langgraph.checkpoint.redis", "RedisSaver", EVERYSEC
    ),
    SAVER_POSTGRES: lambda: ServedSaver(
        SAVER_POSTGRES, "langgraph.checkpoint.postgres", "PostgresSaver"
    ),
    CHECKPNT_REDIS: lambda: RedisCheckpnt(CHECKPNT_REDIS, EVERYSEC),
    CHECKPNT_REDIS_ALWAYS: lambda: RedisCheckpnt(CHECKPNT_REDIS_ALWAYS, ALWAYS),
}
"""On a server that the run starts."""
RUNS: dict[str, Callable[[], RunContender]] = {
    RUN_OURS: lambda: HoldfastRun(RUN_OURS),
    RUN_OURS_NORMAL: lambda: HoldfastRun(RUN_OURS_NORMAL, durability="normal"),
    RUN_DBOS: lambda: DbosWorkflow(RUN_DBOS),
}
"""Programs whose calls are journaled."""
TREES: dict[str, Callable[[], TreeContender]] = {
    TREE_OURS: lambda: HoldfastTree(TREE_OURS),
    TREE_WATCHING: lambda: HoldfastTree(TREE_WATCHING, watch=True),
    TREE_WATCHING_NORMAL: lambda: HoldfastTree(
        TREE_WATCHING_NORMAL, watch=True, durability="normal"
    ),
    TREE_GIT: lambda: ShadowGit(TREE_GIT),
}
"""Snapshots of a directory."""
ALL: dict[str, Callable[[], Contender]] = {
    **_OURS,
    HOLDFAST_ASYNC: lambda: AsyncHoldfast(HOLDFAST_ASYNC),
    **_SAVERS,
    SAVER_ASYNC: lambda: AsyncSqliteSaver(SAVER_ASYNC),
    CHECKPNT: lambda: Checkpnt(CHECKPNT),
    PICKLE: lambda: PickleFile(PICKLE),
    JSON: lambda: JsonFile(JSON),
    DISKCACHE: lambda: DiskCache(DISKCACHE),
    **_SERVED,
    **GRAPHS,
    **POSTGRES_GRAPHS,
    **RUNS,
    **TREES,
}

__all__ = ["ALL", "GRAPHS", "POSTGRES_GRAPHS", "SYNC", "Contender", "Lister", "SyncContender"]
