"""``langgraph dev`` on Holdfast: its checkpointer, and its threads after it was killed."""

from __future__ import annotations

import asyncio
import json
import logging
import urllib.error
import urllib.request
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from holdfast.adapters.langgraph.saver import AGENT, HoldfastSaver
from holdfast.client import SyncClient
from holdfast.errors import AdapterError, InvalidArgumentError
from holdfast.verbs.thread_names import thread_of

logger = logging.getLogger("holdfast")

SERVER = "http://127.0.0.1:2024"
"""Where ``langgraph dev`` listens unless told otherwise."""
_SECONDS = 30


@asynccontextmanager
async def dev_checkpointer() -> AsyncIterator[HoldfastSaver]:
    """Open the checkpointer of ``langgraph dev``, on the store that ``holdfast`` finds here.

    In langgraph.json: ``"checkpointer": {"path": "holdfast.adapters.langgraph.dev_checkpointer"}``.
    The server enters it for each of its event loops and leaves it at shutdown.
    """
    # In a thread: the server raises an error where its loop would wait for a disk.
    saver = await asyncio.to_thread(HoldfastSaver.open)
    try:
        yield saver
    finally:
        await saver.aclose()


def bring_back_threads(
    server: str = SERVER,
    client: SyncClient | None = None,
    *,
    agent_id: str = AGENT,
    graph_id: str | None = None,
) -> list[str]:
    """Make a ``langgraph dev`` server know the threads of a store again, and return their ids.

    Its own table of threads is in memory: a server that was killed has lost the newest. Their
    state, interrupts and history are in the store, and are back once the server knows the threads.
    ``graph_id`` names the graph of those that do not say it, for they came from elsewhere.
    """
    if urlsplit(server).scheme not in ("http", "https"):
        raise InvalidArgumentError("the server is named by a URL such as " + SERVER)
    if client is None:
        with SyncClient.open() as opened:
            return bring_back_threads(server, opened, agent_id=agent_id, graph_id=graph_id)
    known = []
    for thread_id, graph in sorted(_graphs(client, agent_id).items()):
        if not _is_uuid(thread_id):
            logger.warning("thread %r stays away: the server takes UUIDs only", thread_id)
            continue
        if (graph or graph_id) is None:
            logger.warning("thread %r names no graph: give bring_back_threads graph_id", thread_id)
        _post(server, thread_id, graph or graph_id)
        known.append(thread_id)
    return known


def _graphs(client: SyncClient, agent_id: str) -> dict[str, str | None]:
    """Return the threads of a store, each with its graph if that is recorded."""
    graphs: dict[str, str | None] = {}
    for session in client.sessions(agent_id):
        thread_id, namespace = thread_of(session.session_id)
        if not namespace:
            graphs[thread_id] = session.head.metadata.get("graph_id")
    return graphs


def _is_uuid(thread_id: str) -> bool:
    try:
        uuid.UUID(thread_id)
    except ValueError:
        return False
    return True


def _post(server: str, thread_id: str, graph_id: str | None) -> None:
    body: dict[str, Any] = {"thread_id": thread_id, "if_exists": "do_nothing"}
    if graph_id is not None:
        body["metadata"] = {"graph_id": graph_id}
    request = urllib.request.Request(  # noqa: S310  (http or https, as was checked)
        server.rstrip("/") + "/threads",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    # No proxy: what is said to this server is said to no other.
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        direct.open(request, timeout=_SECONDS).close()
    except urllib.error.HTTPError as error:
        with error:
            raise AdapterError(
                f"{server} refused thread {thread_id!r} ({error.code}): {error.read(500)!r}"
            ) from error
    except OSError as error:
        raise AdapterError(
            f"{server} does not answer ({error}): is langgraph dev running there?"
        ) from error
