"""Effects: what tool calls did to the world, as they are kept in checkpoints and notes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from inspect import signature
from typing import Any, Literal, get_args

from holdfast.core.codec import pack
from holdfast.errors import InvalidArgumentError, SerializationError

Kind = Literal["read", "local", "reversible", "irreversible"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LASTING: tuple[Kind, ...] = ("reversible", "irreversible")
"""Kinds that no rollback of state and files undoes."""

Status = Literal["started", "done", "failed", "denied"]


@dataclass(frozen=True, slots=True)
class Effect:
    """A tool call: what was called, with what, and what came of it."""

    id: str
    """The same for the same call after a resume; also its idempotency key unless one was given."""
    index: int
    """Which call it is since the checkpoint before it, from 0."""
    tool: str
    kind: Kind
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    digest: str = ""
    """Of the tool and its exact arguments."""
    key: str | None = None
    task: str | None = None
    attempt: int = 0
    """Which attempt at its task it belongs to."""
    status: Status = "started"
    output: Any = None
    error: BaseException | None = None
    compensate: str | None = None
    """Where the function is that undoes it, as ``module:name``."""
    compensated: bool = False
    reason: str | None = None
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    ended_at: datetime | None = None
    workspace: Any = None
    """The files as they were when it had ended."""

    @property
    def idempotency_key(self) -> str:
        """What tells a service that two requests are one."""
        return self.key or self.id

    def stands(self) -> bool:
        """Whether it did something that is still done."""
        return self.kind in LASTING and self.status in ("started", "done") and not self.compensated

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as it is kept; what says nothing is left out."""
        data = {name: getattr(self, name) for name in _FIELDS}
        return {name: value for name, value in data.items() if value != _DEFAULTS.get(name, ...)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Effect:
        """The effect of what ``as_dict`` gave."""
        known = {name: value for name, value in data.items() if name in _FIELDS}
        return cls(**known)

    def ended(self, **changes: Any) -> Effect:
        """The same, ended now."""
        return replace(self, ended_at=datetime.now(UTC), **changes)

    def __str__(self) -> str:
        shown = [_short(each) for each in self.args]
        shown += [f"{name}={_short(each)}" for name, each in self.kwargs.items()]
        return f"{self.tool}({', '.join(shown)})"


_FIELDS = tuple(Effect.__dataclass_fields__)
_DEFAULTS: dict[str, Any] = {
    "args": (),
    "kwargs": {},
    "key": None,
    "task": None,
    "attempt": 0,
    "error": None,
    "output": None,
    "compensate": None,
    "compensated": False,
    "reason": None,
    "ended_at": None,
    "workspace": None,
}


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def describe(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    kind: Kind,
    key: str | None,
    compensate: Callable[..., Any] | None,
    place: tuple[str, ...],
    index: int,
    task: str | None,
    attempt: int,
) -> Effect:
    """The effect of a call that is to be made at a place in a session."""
    if kind not in KINDS:
        raise InvalidArgumentError(f"effect is one of {', '.join(KINDS)}, not {kind!r}")
    if kind == "reversible" and compensate is None:
        raise InvalidArgumentError(
            'a call with effect="reversible" needs compensate=, the function that undoes it'
        )
    if key is not None and (not isinstance(key, str) or not key):
        raise InvalidArgumentError(f"key is a string that tells this call apart, not {key!r}")
    tool = name_of(function)
    digest = digest_of(tool, args, kwargs)
    identity = pack([*place, key or index, tool, digest])
    return Effect(
        id=hashlib.sha256(identity).hexdigest()[:32],
        index=index,
        tool=tool,
        kind=kind,
        args=tuple(args),
        kwargs=dict(kwargs),
        digest=digest,
        key=key,
        task=task,
        attempt=attempt,
        compensate=None if compensate is None else path_of(compensate),
    )


def digest_of(tool: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """A digest of a call; equal calls, and only those, have equal ones."""
    try:
        data = pack([tool, list(args), dict(sorted(kwargs.items()))])
    except SerializationError as error:
        raise SerializationError(
            error.path.replace("$[1]", f"the arguments of {tool}"), error.problem
        ) from error
    return hashlib.sha256(data).hexdigest()


def name_of(function: Callable[..., Any]) -> str:
    """What a tool is called."""
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__name__", None) or type(function).__name__
    return str(name)


def path_of(function: Callable[..., Any]) -> str:
    """Where a function is: ``module:qualified.name``."""
    while isinstance(function, partial):
        function = function.func
    module = getattr(function, "__module__", None)
    return f"{module}:{getattr(function, '__qualname__', type(function).__name__)}"


def effects_in(log: Iterable[Mapping[str, Any]]) -> list[Effect]:
    """The effects that a log tells of, as they stand at its end."""
    undone = {entry["undone"] for entry in log if "undone" in entry}
    found = {entry["id"]: Effect.from_dict(entry) for entry in log if "id" in entry}
    return [
        replace(effect, compensated=True) if effect.id in undone else effect
        for effect in found.values()
    ]


def with_key(
    function: Callable[..., Any], effect: Effect
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call, with the idempotency key for a function that wants one."""
    kwargs = dict(effect.kwargs)
    try:
        wanted = "idempotency_key" in signature(function).parameters
    except (TypeError, ValueError):  # some built-in functions tell nothing
        wanted = False
    if wanted:
        kwargs.setdefault("idempotency_key", effect.idempotency_key)
    return effect.args, kwargs
