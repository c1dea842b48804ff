"""The mixin that gives a class ``state_dict`` and ``load_state_dict``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Self

from holdfast.core.state_tags import DEFAULT_VERSION, State, Version
from holdfast.errors import InvalidArgumentError
from holdfast.state import known_classes
from holdfast.state.state_diff import StateDiff, diff_states


class LoadedKeys(NamedTuple):
    """What did not fit when a state was loaded, by path: "name", "worker.name"."""

    missing_keys: list[str]
    """Attributes the state does not have; they were left as they are."""
    unexpected_keys: list[str]
    """Keys of the state that the object does not have; they were left out."""


class Checkpointable:
    """Gives an agent ``state_dict()``, ``load_state_dict()``, ``clone()`` and ``diff()``.

    Every attribute is state but those whose names start with ``_``: put there what cannot be kept,
    such as clients and locks.

    >>> from holdfast import Checkpointable
    >>> class Agent(Checkpointable):
    ...     def __init__(self):
    ...         self.messages = []
    ...         self._client = object()
    >>> agent = Agent()
    >>> agent.messages.append("hello")
    >>> state = agent.state_dict()
    >>> state
    {'__class__': 'Agent', '__version__': '1.0', 'messages': ['hello']}
    >>> another = Agent()
    >>> _ = another.load_state_dict(state)
    >>> another.messages
    ['hello']
    """

    __slots__ = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        known_classes.add(cls)

    @classmethod
    def _checkpoint_version(cls) -> Version:
        """Return the version of this class's state; raise it when fields change."""
        return DEFAULT_VERSION

    def _checkpoint_fields(self) -> Iterable[str]:
        """Return the names of the attributes that are state."""
        from holdfast.state.attributes import public_names

        return public_names(self)

    def state_dict(self) -> State:
        """Return the state as plain data, tagged with class and version; nothing is shared.

        Types are kept exactly. A Checkpointable in an attribute, list, tuple or dict becomes a
        tagged dict of its own. A value that cannot be kept raises SerializationError with its path.

        >>> from holdfast import Checkpointable
        >>> class Planner(Checkpointable):
        ...     def __init__(self, *steps):
        ...         self.steps = steps
        >>> Planner("read", "write").state_dict()["steps"]
        ('read', 'write')
        """
        from holdfast.state.state_dicts import state_dict_of

        return state_dict_of(self)

    def load_state_dict(self, state: State, strict: bool = True) -> LoadedKeys:
        """Take over a state, migrated to this version; on any error nothing has changed.

        With ``strict`` the state must have exactly the attributes of the object. Without, missing
        ones stay as they are and unexpected ones are left out; the result names both. Nested
        objects are loaded in place where one of their class stands; others are made without
        calling a constructor. The state given is neither kept nor changed.

        >>> from holdfast import Checkpointable
        >>> class Counter(Checkpointable):
        ...     def __init__(self):
        ...         self.count = 0
        >>> counter = Counter()
        >>> counter.load_state_dict({"__class__": "Counter", "__version__": "1.0"}, strict=False)
        LoadedKeys(missing_keys=['count'], unexpected_keys=[])
        """
        from holdfast.state.loading import load

        return load(self, state, strict)

    def clone(self) -> Self:
        """Return an independent copy; attributes starting with ``_`` are shared.

        >>> from holdfast import Checkpointable
        >>> class Agent(Checkpointable):
        ...     def __init__(self):
        ...         self.plan = ["read"]
        >>> agent = Agent()
        >>> other = agent.clone()
        >>> other.plan.append("write")
        >>> agent.plan
        ['read']
        """
        from holdfast.state.loading import clone

        return clone(self)

    def diff(self, other: Checkpointable) -> StateDiff:
        """Return what other has in addition, has not, and has otherwise; by exact type and value.

        >>> from holdfast import Checkpointable
        >>> class Agent(Checkpointable):
        ...     def __init__(self, step):
        ...         self.step = step
        >>> Agent(1).diff(Agent(2))
        {'added': {}, 'removed': {}, 'changed': {'step': (1, 2)}}
        """
        return diff_states(self.state_dict(), as_checkpointable(other).state_dict())


def as_checkpointable(value: object) -> Checkpointable:
    """Return the value, if it is a Checkpointable."""
    if isinstance(value, Checkpointable):
        return value
    raise InvalidArgumentError(
        f"{_described(value)} is no Checkpointable: give its class that mixin, as in "
        "`class Agent(Checkpointable)`"
    )


def _described(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__} itself"
    return f"an object of {type(value).__name__}"
