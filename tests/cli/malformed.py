"""Stores that hold what no program of ours would write: every part of wrong types and odd texts."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from holdfast import CheckpointBuilder, SyncClient
from holdfast.core.kinds.content_links import ContentLink
from holdfast.session.approval import ASKED
from holdfast.session.lease import scope_of
from holdfast.session.rollback import ROLLBACK, ROLLED_BACK_FROM
from holdfast.verbs import notes

NOW = datetime(2026, 11, 18, tzinfo=UTC)
AGENT = "agent"
TREE = b"t" * 32

ODD_TEXTS = (
    "\x1b]0;owned\x07",
    "\x9b31mred",
    "a\u202egnp.exe",
    "--yes",
    "two\r\nlines\u2028three",
    "日本語 👩‍💻 é\u0301",
    "x" * 900,
)
"""Allowed as names: they steer a terminal, look like options, or are long or wide."""

ODDER_TEXTS = ("nul\x00", "lone \ud800", "", "\x1b[2J" * 2000)
"""Allowed in states and notes alone."""


def deep(levels: int) -> Any:
    value: Any = "\x1b[31m"
    for _ in range(levels):
        value = [value]
    return value


ODD_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    10**5000,
    float("nan"),
    "\x1b[31m\x00\ud800",
    b"\xff\x1b",
    [],
    [[]],
    {},
    {"\x1b[31m": {1: 2}},
    (1, "\x1b"),
    datetime(1, 1, 1),
    deep(240),
)


def task(**fields: Any) -> dict[str, Any]:
    return {
        "id": "a",
        "name": "a",
        "status": "completed",
        "needs": ["b"],
        "retries": 1,
        "attempts": 2,
        "parent": "p",
        "reason": "r",
        "started_at": NOW,
        "ended_at": NOW,
        **fields,
    }


def effect(**fields: Any) -> dict[str, Any]:
    return {
        "id": "e" * 32,
        "index": 0,
        "tool": "pay",
        "kind": "reversible",
        "args": (1,),
        "kwargs": {"to": "x"},
        "digest": "d",
        "key": "k",
        "task": "t",
        "attempt": 1,
        "status": "done",
        "output": 1,
        "error": ValueError("x"),
        "compensate": "m:f",
        "compensated": False,
        "reason": "r",
        "edited": False,
        "reused": None,
        "left": False,
        "abandoned": False,
        "started_at": NOW,
        "ended_at": NOW,
        "workspace": None,
        **fields,
    }


def files(**fields: Any) -> dict[str, Any]:
    return {
        "tree": ContentLink(TREE, False),
        "tree_id": "t" * 64,
        "files": 3,
        "bytes": 10,
        "workspace": "repo-e6d19b14",
        "message": "m",
        **fields,
    }


def question(**fields: Any) -> dict[str, Any]:
    whole = {"agent_id": AGENT, "session_id": "s", "effect": effect(), "expires_at": None}
    return {**whole, **fields}


MARKS: tuple[dict[str, Any], ...] = (
    {"turned": 5, "in": 5},
    {"turned": "x"},
    {"turned": "x", "in": [[1]]},
    {"passed": []},
    {"passed": "x", "task": []},
    {"undone": []},
    {"left": "nobody"},
    {"left": {}},
    {"id": []},
    {"id": "only"},
    {"unheard of": deep(100)},
)


def odd_fields(make: Callable[..., dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What is whole but for one field, which is odd or not there."""
    for name in make():
        for value in ODD_VALUES:
            yield make(**{name: value})
        yield {key: part for key, part in make().items() if key != name}


class Malformed:
    """Writes into a store what its client would not."""

    def __init__(self, client: SyncClient) -> None:
        self.client = client
        self._number = 0

    def save(self, session: str | None = None, **parts: Any) -> str:
        """A session of one checkpoint with these parts, or the next of one that is there."""
        self._number += 1
        built = CheckpointBuilder(AGENT).session(session or f"s{self._number}")
        built = built.step(self._number, parts.pop("step_name", None))
        built = built.tag(**parts.pop("metadata", {}))
        if target := parts.pop("target", None):
            built = built.handoff(target, parts.pop("schema", None))
        for name, value in parts.items():
            built = getattr(built, name)(value)
        return self.client.put(built.build())

    def note(self, scope: str, key: str, value: Any) -> None:
        written = notes.NoteBatch()
        written.add(self.client.runtime.engine, scope, key, value)
        self.client.runtime.run(written.write())


def tasks_of_wrong_shape(to: Malformed) -> None:
    for value in ODD_VALUES:
        to.save(tasks=value)
        to.save(tasks=[value])
    for each in odd_fields(task):
        to.save(tasks=[each])


def effects_of_wrong_shape(to: Malformed) -> None:
    for value in ODD_VALUES:
        to.save(effects=value)
        to.save(effects=[value])
    for each in (*odd_fields(effect), *MARKS):
        to.save(effects=[each])


def files_of_wrong_shape(to: Malformed) -> None:
    for value in ODD_VALUES:
        to.save(workspace=value)
    for each in odd_fields(files):
        to.save(workspace=each)


def states_of_every_kind(to: Malformed) -> None:
    for value in (*ODD_VALUES, *ODD_TEXTS, *ODDER_TEXTS):
        to.save(execution_state=value)
        to.save(execution_state={"messages": [{"role": value, "content": value}]})
        to.save(
            execution_state={
                "messages": [{"role": "user", "content": [value], "tool_calls": [value]}],
                "k": value,
            },
            context={"odd": value},
        )


def metadata_of_every_kind(to: Malformed) -> None:
    names = ("failed", "error", "checkpoint_id", "thread_id", "event", "tool", "\x1b[31m")
    for value in ODD_VALUES:
        for name in (*names, ROLLED_BACK_FROM, "adopted"):
            to.save(metadata={name: value})


def odd_names(to: Malformed) -> None:
    for text in ODD_TEXTS:
        first = to.save(session=text, step_name=text, tasks=[task(name=text, reason=text)])
        to.save(
            session=text, step_name=f"{text}2", parent=first, effects=[effect(tool=text, key=text)]
        )
        to.save(session=f"{text}.1", step_name=text, target=text, schema=text, metadata={text: 1})
        to.note(ASKED, f"{text}-{'e' * 32}", question(effect=effect(tool=text), session_id=text))
    for text in ODDER_TEXTS:
        to.save(step_name=text, schema=text, target="agent")


def questions_of_wrong_shape(to: Malformed) -> None:
    to.save()
    every = [*ODD_VALUES, *odd_fields(question), *(question(effect=e) for e in odd_fields(effect))]
    for number, value in enumerate(every):
        to.note(ASKED, f"{number:06}-odd", value)
        to.note(f"/approval/{number:06}-odd", "decision", value)


def calls_of_wrong_shape(to: Malformed) -> None:
    for value in [*ODD_VALUES, *odd_fields(effect)]:
        head = to.save()
        to.note(head, "call/0/started", {"lease": 1, **value} if isinstance(value, dict) else value)
    for key in (
        "call",
        "call/x/started",
        "call/0/\x1b[31m",
        "taken/1",
        "next",
        "\x1b[31m",
        ROLLBACK,
    ):
        for value in ODD_VALUES:
            to.note(to.save(), key, value)


def offers_of_wrong_shape(to: Malformed) -> None:
    claim = {"worker": "w", "session_id": "s", "until": NOW}
    settled = {"outcome": "completed", "reason": "r", "worker": "w"}
    for value in ODD_VALUES:
        for key, whole in (("claim/1", claim), ("settled", settled)):
            to.note(to.save(target="reviewer"), key, value)
            for name in whole:
                to.note(to.save(target="reviewer"), key, {**whole, name: value})
        to.note(to.save(target="reviewer"), "contract", value)
        to.note(to.save(target="reviewer"), "claim/x", claim)
        to.note(to.save(target="reviewer"), "claim/1/renewed/x", value)


def leases_of_wrong_shape(to: Malformed) -> None:
    for number, value in enumerate(ODD_VALUES):
        for key in ("lease/1", "lease/x", "lease", "\x1b[31m"):
            session = f"{key.replace(chr(27), '')}-{number}"
            to.save(session=session)
            to.note(scope_of(AGENT, session), key, value)
            to.note(scope_of(AGENT, session), f"{key}/renewed", {"owner": value, "until": value})


FAMILIES: tuple[Callable[[Malformed], None], ...] = (
    tasks_of_wrong_shape,
    effects_of_wrong_shape,
    files_of_wrong_shape,
    states_of_every_kind,
    metadata_of_every_kind,
    odd_names,
    questions_of_wrong_shape,
    calls_of_wrong_shape,
    offers_of_wrong_shape,
    leases_of_wrong_shape,
)


def write(family: Callable[[Malformed], None], path: Path) -> None:
    """A store that holds one family of malformed things."""
    with SyncClient.sqlite(path, durability="normal") as client:
        family(Malformed(client))
