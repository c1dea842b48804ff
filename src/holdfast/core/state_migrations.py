"""Bringing states of earlier versions of a class up to the current one, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import overload

from holdfast.core.class_names import is_name
from holdfast.core.codec import pack, unpack
from holdfast.core.safe_repr import briefly
from holdfast.core.state_tags import CLASS, VERSION, State, Version, fields_of, ordered
from holdfast.errors import InvalidArgumentError, SchemaMigrationError

Migration = Callable[[State], State]

_steps: dict[tuple[str, tuple[int, ...]], Migration] = {}


@overload
def register_migration(class_name: str, from_version: Version, fn: Migration) -> Migration: ...
@overload
def register_migration(
    class_name: str, from_version: Version, fn: None = None
) -> Callable[[Migration], Migration]: ...
def register_migration(
    class_name: str, from_version: Version, fn: Migration | None = None
) -> Migration | Callable[[Migration], Migration]:
    """Say how a state of one version becomes one of the next; loading follows the steps.

    The function is given a copy of the state and returns the new one. ``__version__`` is set for
    it. To rename a class, register a step under its old name that sets ``__class__``.

    >>> from holdfast import Checkpointable, register_migration
    >>> class Writer(Checkpointable):
    ...     def __init__(self):
    ...         self.drafts = []
    ...     @classmethod
    ...     def _checkpoint_version(cls):
    ...         return 2
    >>> @register_migration("Writer", 1)
    ... def one_draft_became_many(state):
    ...     state["drafts"] = [state.pop("draft")]
    ...     return state
    >>> writer = Writer()
    >>> _ = writer.load_state_dict({"__class__": "Writer", "__version__": 1, "draft": "Once"})
    >>> writer.drafts
    ['Once']
    """
    if not is_name(class_name):
        raise InvalidArgumentError(f"class_name is the name of a class, not {class_name!r}")
    step = (class_name, ordered(from_version))

    def register(fn: Migration) -> Migration:
        if not callable(fn):
            raise InvalidArgumentError(f"a migration is a function of the state, not {fn!r}")
        known = _steps.setdefault(step, fn)
        if known is not fn and not _is_redefined(known, fn):
            raise InvalidArgumentError(
                f"{class_name} has a migration from version {briefly(from_version)} already "
                f"({_name(known)}): one step has one function"
            )
        _steps[step] = fn
        return fn

    return register if fn is None else register(fn)


def _name(fn: Migration) -> str:
    return f"{getattr(fn, '__module__', '?')}.{getattr(fn, '__qualname__', repr(fn))}"


def _is_redefined(known: Migration, fn: Migration) -> bool:
    """Return whether a module or cell was run again, so that this is the same function anew."""
    return _name(known) == _name(fn) and "<" not in _name(fn)


def migrated(
    state: State,
    wanted_of: Callable[[str], Version | None],
    why_none: Callable[[str], str],
    copied: Callable[[State], State],
) -> State:
    """Return a tagged state at the version that the program wants, having taken every step.

    ``wanted_of`` gives that version for a class name, or None where no class of that name is wanted
    here; then a migration may still rename it, or ``why_none`` explains. A migration is given what
    ``copied`` makes of a state.
    """
    while True:
        name, version = state[CLASS], state[VERSION]
        at, wanted = ordered(version), wanted_of(name)
        if wanted is not None and at == ordered(wanted):
            return {**state, VERSION: wanted}
        if wanted is not None and at > ordered(wanted):
            raise SchemaMigrationError(
                f"this state of {name} has version {briefly(version)}, newer than the program's "
                f"{briefly(wanted)}: open it with the newer program"
            )
        fn = _steps.get((name, at))
        if fn is None and wanted is None:
            raise SchemaMigrationError(why_none(name))
        if fn is None:
            raise SchemaMigrationError(
                f"no migration leads from version {briefly(version)} of {name} to "
                f"{briefly(wanted)}: register_migration({name!r}, {briefly(version)}, fn)"
            )
        state = _stepped(fn, copied(state), wanted)


def advanced(name: str, state: State, version: Version, wanted: Version) -> State:
    """Return a plain state that was saved under a name at one version, as the program wants it.

    Keys of its own that are called as the tags are kept, and shown to no migration.
    """
    own = {tag: state[tag] for tag in (CLASS, VERSION) if tag in state}
    tagged = {**state, CLASS: name, VERSION: version}
    return {**fields_of(migrated(tagged, lambda _: wanted, str, _copied)), **own}


def _copied(state: State) -> State:
    copy: State = unpack(pack(state))
    return copy


def _stepped(fn: Migration, state: State, wanted: Version | None) -> State:
    name, version = state[CLASS], state[VERSION]
    try:
        result = fn(state)
    except Exception as error:
        raise SchemaMigrationError(
            f"the migration of {name} from version {briefly(version)} ({_name(fn)}) failed: "
            f"{error!r}"
        ) from error
    if not isinstance(result, dict):
        raise SchemaMigrationError(
            f"the migration of {name} from version {briefly(version)} ({_name(fn)}) returns the "
            f"new state, not {type(result).__name__}"
        )
    result = {CLASS: name, VERSION: version, **result}
    if result[VERSION] == version:
        result[VERSION] = _following(name, version, wanted)
    if not isinstance(result[CLASS], str) or ordered(result[VERSION]) <= ordered(version):
        raise SchemaMigrationError(
            f"the migration of {name} from version {briefly(version)} ({_name(fn)}) leads to "
            f"{result[CLASS]!r} at version {briefly(result[VERSION])}, which is no step forward"
        )
    return result


def _following(name: str, version: Version, wanted: Version | None) -> Version:
    """Return the version after this one: the next number, or of versions with dots the next known.

    "1.0" is 1 to a program that counts in whole numbers: it is what a class begins with.
    """
    at = ordered(version)
    if isinstance(version, int) or (len(at) == 1 and isinstance(wanted, int)):
        return at[0] + 1
    later = [at for cls, at in _steps if cls == name and at > ordered(version)]
    if wanted is not None:
        later.append(ordered(wanted))
    return ".".join(map(str, min(later, default=(ordered(version)[0] + 1,))))
