"""Effects: what tool calls did to the world, as they are kept in checkpoints and notes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from inspect import signature
from typing import Any, Literal, TypeVar, get_args

from holdfast.core.codec import pack, unpack
from holdfast.core.short_repr import brief
from holdfast.errors import InvalidArgumentError, SerializationError
from holdfast.verbs import stored_values

Kind = Literal["read", "local", "reversible", "irreversible"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class KindRules:
    """What holds for all calls of a kind."""

    lasts: bool
    """Whether no rollback of state and files undoes it."""
    is_compensated: bool = False
    """Whether the program gives the function that undoes it."""

    @property
    def is_final(self) -> bool:
        """Whether nothing undoes it: it is not done twice, and going back past it is refused."""
        return self.lasts and not self.is_compensated


RULES: dict[Kind, KindRules] = {
    "read": KindRules(lasts=False),
    "local": KindRules(lasts=False),
    "reversible": KindRules(lasts=True, is_compensated=True),
    "irreversible": KindRules(lasts=True),
}
FINAL: tuple[Kind, ...] = tuple(kind for kind, rules in RULES.items() if rules.is_final)
"""Kinds that nothing undoes."""

Status = Literal["started", "done", "failed", "denied", "void"]
"""``started`` is all that is known of an unknown one; ``void`` was begun and never made."""

Block = tuple[str | None, int]
"""Where a program makes calls: a task and which attempt at it, or the session itself."""
SESSION: Block = (None, 0)
"""The block of the session itself."""

STARTED, ENDED, RETRY = "started", "ended", "retry"
"""What the note of a call says: that it was begun, how it ended, or that it is to be made again."""

T = TypeVar("T")
_ROOM = 58
WHOLE = 100_000
"""Room for all of an argument: who decides of a call decides of every character of it."""
_PLAIN = (str, int, float, bool, bytes, type(None))


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
    """What the function is called that undoes it, as ``module:name``; never looked up by that."""
    compensated: bool = False
    reason: str | None = None
    edited: bool = False
    """Whether who approved it gave it other arguments."""
    reused: str | None = None
    """The call whose output this one was given, since that cannot be undone nor be made twice."""
    left: bool = False
    """Whether the attempt that made it failed: an equal call is not made twice."""
    abandoned: bool = False
    """Whether it was made on a way that was rolled back, or on another branch."""
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    ended_at: datetime | None = None
    workspace: Any = None
    """The files as they were when it had ended."""

    @property
    def idempotency_key(self) -> str:
        """What tells a service that two requests are one."""
        return self.key or self.id

    @property
    def block(self) -> Block:
        """Where it was made."""
        return self.task, self.attempt

    @property
    def lasts(self) -> bool:
        """Whether no rollback of state and files undoes what it does."""
        return RULES[self.kind].lasts

    @property
    def is_final(self) -> bool:
        """Whether nothing undoes what it does."""
        return self.kind in FINAL

    @property
    def is_unknown(self) -> bool:
        """Whether it may have done something lasting, and nobody knows."""
        return self.status == "started" and self.lasts

    def stands(self) -> bool:
        """Return whether it did, or may have done, something that is still done."""
        happened = self.status in ("started", "done") and self.reused is None
        return self.lasts and happened and not self.compensated

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, as it is kept; what says nothing is left out."""
        data = {name: getattr(self, name) for name in _FIELDS}
        return {name: value for name, value in data.items() if not _says_nothing(name, value)}

    def end_dict(self) -> dict[str, Any]:
        """Return what its end adds to what was kept when it began."""
        data = {name: getattr(self, name) for name in _END_FIELDS}
        return {name: value for name, value in data.items() if not _says_nothing(name, value)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Effect:
        """Return the effect of what ``as_dict`` gave."""
        return cls(**stored_values.fields_of("a recorded call", data, _KINDS, _NEEDED))

    def ended(self, **changes: Any) -> Effect:
        """Return the same, ended now."""
        return replace(self, ended_at=datetime.now(UTC), **changes)

    def __str__(self) -> str:
        return call_text(self.tool, self.args, self.kwargs, _ROOM)


_FIELDS = tuple(Effect.__dataclass_fields__)
_NEEDED = ("id", "index", "tool", "kind")
_KINDS: dict[str, stored_values.Kind] = {
    "id": stored_values.TEXT,
    "index": stored_values.NUMBER,
    "tool": stored_values.TEXT,
    "kind": KINDS,
    "args": stored_values.LIST,
    "kwargs": stored_values.FIELDS,
    "digest": stored_values.TEXT,
    "key": stored_values.MAYBE_TEXT,
    "task": stored_values.MAYBE_TEXT,
    "attempt": stored_values.NUMBER,
    "status": get_args(Status),
    "output": stored_values.ANYTHING,
    "error": stored_values.ANYTHING,
    "compensate": stored_values.MAYBE_TEXT,
    "compensated": stored_values.TRUTH,
    "reason": stored_values.MAYBE_TEXT,
    "edited": stored_values.TRUTH,
    "reused": stored_values.MAYBE_TEXT,
    "left": stored_values.TRUTH,
    "abandoned": stored_values.TRUTH,
    "started_at": stored_values.MOMENT,
    "ended_at": stored_values.MAYBE_MOMENT,
    "workspace": stored_values.ANYTHING,
}
"""What each field is when it is read back."""
_END_FIELDS = ("id", "index", "status", "output", "error", "reason", "ended_at", "workspace")
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
    "edited": False,
    "reused": None,
    "left": False,
    "abandoned": False,
    "ended_at": None,
    "workspace": None,
}


def _says_nothing(name: str, value: Any) -> bool:
    """Return whether a field has its default; by type first, as an array compares in parts."""
    default = _DEFAULTS.get(name, ...)
    return type(value) is type(default) and bool(value == default)


def call_text(tool: str, args: Iterable[Any], kwargs: Mapping[str, Any], room: int) -> str:
    """Return a call as one would write it; each argument in so many characters at most."""
    shown = [brief(each, room) for each in args]
    shown += [f"{name}={brief(each, room)}" for name, each in kwargs.items()]
    return f"{tool}({', '.join(shown)})"


def check_call(
    kind: Kind, key: object, compensate: Callable[..., Any] | None, function: object
) -> None:
    """Refuse a call that makes no sense."""
    if not callable(function):
        raise InvalidArgumentError(f"run.call takes a function, not {function!r}")
    if kind not in KINDS:
        raise InvalidArgumentError(f"effect is one of {', '.join(KINDS)}, not {kind!r}")
    is_compensated = RULES[kind].is_compensated
    if is_compensated and compensate is None:
        raise InvalidArgumentError(
            f'a call with effect="{kind}" needs compensate=, the function that undoes it'
        )
    if not is_compensated and compensate is not None:
        raise InvalidArgumentError(
            f'compensate= goes with effect="reversible", not with effect={kind!r}'
        )
    if compensate is not None and (isinstance(compensate, partial) or not callable(compensate)):
        raise InvalidArgumentError(
            f"compensate is a function that is found again after a restart, not {compensate!r}: "
            "give it what it needs through the arguments or the output of the call"
        )
    if key is not None and (not isinstance(key, str) or not key):
        raise InvalidArgumentError(f"key is a string that tells this call apart, not {key!r}")


def unwrapped(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """Return a call without ``functools.partial``, so that what it binds counts as an argument."""
    while isinstance(function, partial):
        args, kwargs = (*function.args, *args), {**function.keywords, **kwargs}
        function = function.func
    return function, args, dict(kwargs)


def copied(
    tool: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], allow_pickle: bool = False
) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """Return a digest that equal calls and only those share, and a copy of the arguments.

    A copy, because the program may go on to change what it gave a tool.
    """
    try:
        data = pack([tool, list(args), dict(sorted(kwargs.items()))], allow_pickle)
        digest = hashlib.sha256(data).hexdigest()
        if all(type(each) in _PLAIN for each in (*args, *kwargs.values())):
            return digest, tuple(args), dict(kwargs)
        _, copies, _ = unpack(data, allow_pickle=allow_pickle)
        by_name = unpack(pack(dict(kwargs), allow_pickle), allow_pickle=allow_pickle)
        return digest, tuple(copies), by_name
    except SerializationError as error:
        raise SerializationError(
            _moved(error.path, tool), f"{error.problem} (it was not called)"
        ) from error


def _moved(path: str, tool: str) -> str:
    """Return a path in what was packed, as one in the arguments of the call."""
    inner = path.removeprefix("$[1]").removeprefix("$[2]")
    return f"the arguments of {tool}, $" + (inner if inner != path else path.removeprefix("$"))


def kept_copy(value: T, allow_pickle: bool = False) -> T:
    """Return a value as it can be kept, sharing nothing with what the program may change."""
    if type(value) in _PLAIN:
        return value
    copy: T = unpack(pack(value, allow_pickle), allow_pickle=allow_pickle)
    return copy


def identity(*parts: Any) -> str:
    """Return an id that is the same for the same call after a resume."""
    return hashlib.sha256(pack(list(parts))).hexdigest()[:32]


def name_of(function: Callable[..., Any]) -> str:
    """Return what a tool is called."""
    name = getattr(function, "__name__", None) or type(function).__name__
    return str(name)


def takes(function: Callable[..., Any], name: str) -> bool:
    """Return whether a tool has a parameter of its own of that name."""
    return name in _parameters(function)


def check_key_is_ours(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> None:
    """Refuse ``key=`` where the tool takes a ``key`` too, and was not given that."""
    if not takes(function, "key") or "key" in kwargs:
        return
    try:
        given = signature(function).bind_partial(*args, **kwargs).arguments
    except TypeError:  # it says itself what is wrong when it is called
        return
    if "key" not in given:
        raise InvalidArgumentError(
            f"{name_of(function)} takes a key itself, and run.call has one that tells calls apart: "
            f"give the tool its own with functools.partial({name_of(function)}, key=...)"
        )


def _parameters(function: Callable[..., Any]) -> Collection[str]:
    try:
        return signature(function).parameters
    except (TypeError, ValueError):  # some built-in functions tell nothing
        return ()


def with_key(
    function: Callable[..., Any], kwargs: dict[str, Any], effect: Effect
) -> dict[str, Any]:
    """Return the named arguments of a call, with the idempotency key where one is wanted."""
    wanted = "idempotency_key" in _parameters(function)
    return {"idempotency_key": effect.idempotency_key, **kwargs} if wanted else kwargs
