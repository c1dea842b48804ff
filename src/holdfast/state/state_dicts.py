"""Taking the state of an object: read its fields, tag nested objects, copy the rest."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from holdfast.core.codec import Packer
from holdfast.core.kinds.objects import kind_by_type
from holdfast.core.kinds.standard import TUPLE
from holdfast.core.state_tags import CLASS, MARK, VERSION, State, escaped, is_tagged, ordered
from holdfast.core.value_paths import child_path
from holdfast.errors import SerializationError
from holdfast.state.attributes import checked_names, read
from holdfast.state.checkpointable import Checkpointable
from holdfast.state.options import isolated, options, unpacked
from holdfast.state.torch_objects import live_class, live_state

_open: ContextVar[tuple[int, ...]] = ContextVar("holdfast_open_objects", default=())


def state_dict_of(obj: Checkpointable) -> State:
    """Return the state of an object, tagged and isolated."""
    if id(obj) in _open.get():
        raise SerializationError(
            "$", f"is a circular reference to a {type(obj).__name__}; break the cycle or exclude it"
        )
    _refuse_contents(type(obj))
    version = obj._checkpoint_version()
    ordered(version)
    token = _open.set((*_open.get(), id(obj)))
    try:
        values = read(obj, checked_names(obj, obj._checkpoint_fields()))
        return {CLASS: type(obj).__name__, VERSION: version, **_plain(values)}
    except RecursionError:
        raise SerializationError("$", "is nested too deep to be checkpointed") from None
    finally:
        _open.reset(token)


def _refuse_contents(cls: type) -> None:
    kind = kind_by_type(cls)
    if kind is not None and not kind.shape.only_attributes:
        raise SerializationError(
            "$",
            f"{cls.__name__} is a {kind.name}, whose contents are no attributes and would be lost; "
            "hold them in an attribute instead",
        )


class _Scout(Packer):
    """Packs values and notices nested objects, whose own ``state_dict`` is to be asked."""

    __slots__ = ("met",)

    def __init__(self) -> None:
        super().__init__(options().allow_pickle)
        self.met = False

    def reduce(self, value: Any, ordered: bool = True) -> tuple[int, Any]:
        if isinstance(value, Checkpointable) or live_class(value) is not None:
            self.met = True
            return TUPLE, []
        return super().reduce(value, ordered)


def _plain(values: dict[str, Any]) -> State:
    scout = _Scout()
    data = scout.pack(values)
    if scout.met or MARK in data:
        tagged = {name: _tagged(value, f"$.{name}") for name, value in values.items()}
        return isolated(tagged)
    state: State = unpacked(data)
    return state


def _tagged(value: Any, path: str) -> Any:
    """Return the value with a state in place of every object in its lists, tuples and dicts."""
    if isinstance(value, Checkpointable):
        return _nested(value, path)
    tag = live_class(value)
    if tag is not None:
        return live_state(value, tag)
    parts = map_parts(value, lambda part, key: _tagged(part, child_path(path, key)))
    return escaped(parts) if is_tagged(parts) else parts


def _nested(obj: Checkpointable, path: str) -> State:
    try:
        state = obj.state_dict()
    except SerializationError as error:
        raise SerializationError(path + error.path.removeprefix("$"), error.problem) from error
    if not is_tagged(state):
        raise SerializationError(
            path,
            f"{type(obj).__name__}.state_dict() gave no {CLASS} and {VERSION}; "
            "start from super().state_dict()",
        )
    return state


def map_parts(value: Any, change: Callable[[Any, Any], Any]) -> Any:
    """Return a container with each part changed, given its index or key; else the value."""
    cls = type(value)
    if cls is list or cls is tuple:
        return cls(change(part, at) for at, part in enumerate(value))
    if cls is deque:
        return deque((change(part, at) for at, part in enumerate(value)), value.maxlen)
    if cls is dict or cls is OrderedDict or cls is defaultdict:
        items = {key: change(part, key) for key, part in value.items()}
        if cls is defaultdict:
            return defaultdict(value.default_factory, items)
        return items if cls is dict else OrderedDict(items)
    return value
