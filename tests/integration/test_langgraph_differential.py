"""Whatever is put, asked and deleted, the answers are those of LangGraph's own InMemorySaver."""

import json
from collections.abc import Iterator
from itertools import count, product
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver

from holdfast import SyncClient
from holdfast.adapters.langgraph import HoldfastSaver
from tests.clients import url_of
from tests.graphs import thread

THREADS = ("1", "1|a")
NAMESPACES = ("", "sub:1|deep:2")
CHANNELS = ("a", "b", "messages")
SPECIAL = ("__error__", "__interrupt__", "__resume__", "__scheduled__")

values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3) | st.just(1.5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=4,
)
places = st.tuples(st.sampled_from(THREADS), st.sampled_from(NAMESPACES))
picks = st.integers(0, 3)
"""Which of the checkpoints made so far, counted from the newest."""
sources = st.sampled_from(["input", "loop", "update"])

odd = st.sampled_from([None, True, 1, 1.0, 0, "", "r1", [1], {"a": [True]}, (1, (2,)), [(1,)]])

timed = st.none()
"""A new id of LangGraph's kind, which says when it was made."""
others = st.text(max_size=3).filter(str.strip) | st.sampled_from(
    ["1", "2", "10", "checkpoint-1", "zz", "\u00e9", "0", "2026-01-01", str(uuid4()), "a" * 300]
)


def putting(ids: Any) -> Any:
    """Steps that put, with ids of this kind."""
    return st.fixed_dictionaries(_putting | {"id": ids})


_putting: dict[str, Any] = {
    "do": st.just("put"),
    "place": places,
    "parent": st.none() | picks,
    "new": st.dictionaries(st.sampled_from(CHANNELS), values, max_size=2),
    "gone": st.sets(st.sampled_from(CHANNELS), max_size=1),
    "metadata": st.fixed_dictionaries(
        {"source": sources, "step": st.integers(-1, 3)},
        optional={"run_id": st.sampled_from(["r1", "r2"]), "odd": odd, "thread_id": values},
    ),
    "user": st.sampled_from(["ann", "bob"]),
}
writes = st.fixed_dictionaries(
    {
        "do": st.just("write"),
        "to": picks,
        "writes": st.lists(
            st.tuples(st.sampled_from(CHANNELS + SPECIAL), st.integers(0, 99) | values),
            min_size=1,
            max_size=4,
        ),
        "task": st.sampled_from(["t1", "t2"]),
        "path": st.sampled_from(["", "~b", "~a"]),
    }
)
gets = st.fixed_dictionaries(
    {"do": st.just("get"), "place": places, "id": st.none() | picks | st.just("unknown")}
)
criteria: list[dict[str, Any]] = [
    *({"source": source} for source in ("input", "loop")),
    *({"step": step} for step in (0, 1, True, 1.0)),
    *({"odd": value} for value in (None, True, 1, "r1", [1])),
    *({"run_id": run} for run in ("r1", None)),
    *({"user": user} for user in ("ann", 1)),
]
filters = st.lists(st.sampled_from(criteria), min_size=1, max_size=2).map(
    lambda parts: {name: value for part in parts for name, value in part.items()}
)
lists = st.fixed_dictionaries(
    {
        "do": st.just("list"),
        "of": st.none() | picks,
        "every_namespace": st.booleans(),
        "id": st.none() | picks,
        "filter": st.none() | filters,
        "before": st.none() | picks,
        "limit": st.none() | st.integers(0, 3),
    }
)
deletes = st.fixed_dictionaries({"do": st.just("delete"), "thread": st.sampled_from(THREADS)})


def scripts(puts: Any) -> Any:
    """What is done one after the other, with these ways to put."""
    return st.tuples(
        st.lists(puts, min_size=1, max_size=4),
        st.lists(puts | writes | writes | writes | gets | lists | lists, min_size=6, max_size=12),
        st.lists(deletes, max_size=1),
        st.lists(puts | writes | gets | lists, max_size=4),
    ).map(lambda parts: [step for part in parts for step in part])


class Play:
    """The same steps for every saver; each of their answers has to be that of the first."""

    def __init__(self, *savers: BaseCheckpointSaver) -> None:
        self.savers = savers
        self.made: list[tuple[Any, dict[str, Any], dict[str, str]]] = []
        self.versions = count(1)

    def pick(self, number: Any) -> tuple[Any, dict[str, Any], dict[str, str]] | None:
        return (
            self.made[-1 - number % len(self.made)] if self.made and number != "unknown" else None
        )

    def put(self, step: dict[str, Any]) -> None:
        name, namespace = step["place"]
        parent = None if step["parent"] is None else self.pick(step["parent"])
        _, old, versions = parent or (None, {}, {})
        same_place = parent is not None and parent[0]["configurable"]["thread_id"] == name
        if (
            parent is None
            or not same_place
            or parent[0]["configurable"]["checkpoint_ns"] != namespace
        ):
            old, versions, parent = {}, {}, None
        new = {channel: f"{next(self.versions):032}.0" for channel in {*step["new"], *step["gone"]}}
        held = {k: v for k, v in {**old, **step["new"]}.items() if k not in step["gone"]}
        checkpoint = {
            "v": 4,
            "id": step["id"] or str(uuid6(clock_seq=step["metadata"]["step"])),
            "ts": "2026-01-01T00:00:00+00:00",
            "channel_values": held,
            "channel_versions": {**versions, **new},
            "versions_seen": {"node": dict(versions)},
            "updated_channels": sorted(new),
        }
        if step["id"] and not step["id"].startswith("a"):
            del checkpoint["ts"]
        if (name, namespace, checkpoint["id"]) in [place(m[0]) for m in self.made]:
            return  # theirs would put the new one in place of the old; ours never change
        config = thread(name, checkpoint_ns=namespace, user=step["user"])
        if parent is not None:
            config["configurable"]["checkpoint_id"] = parent[0]["configurable"]["checkpoint_id"]
        answers = [s.put(config, checkpoint, step["metadata"], new) for s in self.savers]  # type: ignore[arg-type]
        assert all(answer == answers[0] for answer in answers)
        self.made.append((answers[0], held, checkpoint["channel_versions"]))  # type: ignore[arg-type]

    def write(self, step: dict[str, Any]) -> None:
        found = self.pick(step["to"])
        if found is not None:
            for saver in self.savers:
                saver.put_writes(found[0], step["writes"], step["task"], step["path"])

    def get(self, step: dict[str, Any]) -> None:
        name, namespace = step["place"]
        config = thread(name, checkpoint_ns=namespace)
        if step["id"] is not None:
            found = self.pick(step["id"])
            unknown = str(uuid6())
            config = found[0] if found else thread(name, checkpoint_ns="", checkpoint_id=unknown)
        same(*[plain(saver.get_tuple(config)) for saver in self.savers])

    def list(self, step: dict[str, Any]) -> None:
        config: Any = None
        listed = None if step["of"] is None else self.pick(step["of"])
        one_place = listed is not None and not step["every_namespace"]
        if listed is not None:
            config = thread(listed[0]["configurable"]["thread_id"])
            if one_place:
                config["configurable"]["checkpoint_ns"] = listed[0]["configurable"]["checkpoint_ns"]
            if step["id"] is not None and (found := self.pick(step["id"])):
                config["configurable"]["checkpoint_id"] = found[0]["configurable"]["checkpoint_id"]
        before = None if step["before"] is None else self.pick(step["before"])
        answers = [
            [
                plain(found)
                for found in saver.list(
                    config,
                    filter=step["filter"],
                    before=before and before[0],
                    # Of several namespaces theirs lists one after the other, ours the newest.
                    limit=step["limit"] if one_place else None,
                )
            ]
            for saver in self.savers
        ]
        same(*(answers if one_place else [sorted(a, key=exactly) for a in answers]))

    def delete(self, step: dict[str, Any]) -> None:
        for saver in self.savers:
            saver.delete_thread(step["thread"])
        # What is gone is not written to again: LangGraph does not do that either.
        self.made = [m for m in self.made if m[0]["configurable"]["thread_id"] != step["thread"]]

    def threads(self) -> None:
        """All that is in the threads."""
        for thread_id, namespace in product(THREADS, NAMESPACES):
            config = thread(thread_id, checkpoint_ns=namespace)
            same(*[[plain(found) for found in saver.list(config)] for saver in self.savers])

    def everything(self) -> None:
        same(*[sorted((plain(found) for found in s.list(None)), key=exactly) for s in self.savers])


def plain(found: CheckpointTuple | None) -> Any:
    """A tuple as plain data; of configs only what names the place."""
    if found is None:
        return None
    parent = found.parent_config
    return (
        place(found.config),
        found.checkpoint,
        found.metadata,
        None if parent is None else place(parent),
        found.pending_writes,
    )


def place(config: Any) -> tuple[str, ...]:
    names = ("thread_id", "checkpoint_ns", "checkpoint_id")
    return tuple(config["configurable"][name] for name in names)


def same(first: Any, *others: Any) -> None:
    for other in others:
        assert other == first
        assert exactly(other) == exactly(first)


def exactly(value: Any) -> str:
    """What tells 1 from True and from 1.0."""
    return json.dumps(value, sort_keys=True)


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[SyncClient]]:
    urls = [url_of(store, tmp_path_factory.mktemp(store)) for store in ("memory", "sqlite")]
    clients = [SyncClient.open(url) for url in urls]
    yield clients
    for client in clients:
        client.close()


agents = count()


@settings(max_examples=120)
@given(script=scripts(putting(timed)))
def test_a_saver_answers_as_the_one_of_langgraph_does(
    clients: list[SyncClient], script: list[dict[str, Any]]
) -> None:
    agent = f"agent {next(agents)}"
    play = Play(InMemorySaver(), *(HoldfastSaver(client, agent_id=agent) for client in clients))

    for step in script:
        getattr(play, step["do"])(step)

    play.everything()


@settings(max_examples=120)
@given(script=scripts(putting(others)))
def test_ids_that_do_not_say_when_they_were_made_are_taken_as_langgraph_takes_them(
    clients: list[SyncClient], script: list[dict[str, Any]]
) -> None:
    savers = [HoldfastSaver(client) for client in clients]
    for saver, thread_id in product(savers, THREADS):
        saver.delete_thread(thread_id)  # the same few ids come again
    play = Play(InMemorySaver(), *savers)

    for step in script:
        getattr(play, step["do"])(step)

    play.threads()


def test_the_play_is_not_empty(tmp_path: Path) -> None:
    with HoldfastSaver.open("memory://") as saver:
        play = Play(InMemorySaver(), saver)
        step: dict[str, Any] = {
            "place": ("1", ""),
            "parent": 0,
            "new": {"a": 1},
            "gone": set(),
            "user": "ann",
        }
        for number in range(3):
            play.put({**step, "id": None, "metadata": {"source": "loop", "step": number}})
        play.everything()
        saver.delete_thread("1")
        with pytest.raises(AssertionError):
            play.everything()
