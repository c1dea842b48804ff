"""The functions that a program gave: nothing else undoes an effect.

What is stored names a function, as ``module:qualified.name``. That name is compared with the names
of the functions that the running program gave, and never looked up anywhere: so stored data, which
others may have written, cannot have a function called that the program did not mean for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from inspect import ismethod
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from holdfast.errors import InvalidArgumentError, RunError

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)

MAIN = ("__main__", "__mp_main__")
"""What a script is called while it runs, in its own process and in those it spawns."""
DECLARED = "__holdfast_tools__"
"""Where a module may say which of its functions it gives; all that it defines, if it does not."""

_registered: dict[str, Function] = {}


def register_tool(function: F) -> F:
    """Say that a function may undo effects, in every session of this program.

    It is then found after a restart by its name. Usable as a decorator.

    >>> from holdfast import SyncClient, register_tool
    >>> @register_tool
    ... def cancel(booking, hotel):
    ...     print(f"{booking} is cancelled")
    >>> with SyncClient.memory() as client:
    ...     with client.session("travel", session_id="rome") as run:
    ...         booking = run.call(str.upper, "hotel", effect="reversible", compensate=cancel)
    ...     with client.session("travel", session_id="rome") as run:
    ...         done = run.rollback("start")
    HOTEL is cancelled
    """
    if not callable(function) or isinstance(function, partial):
        raise InvalidArgumentError(f"register_tool takes a function, not {function!r}")
    name = path_of(function)
    if "<lambda>" in name:
        raise InvalidArgumentError(
            f"{name} has no name of its own by which it would be found again: use def"
        )
    known = _registered.get(name)
    if ismethod(known) and known != function:
        raise InvalidArgumentError(
            f"{name} of another object is registered already: register a function, and give it "
            "what it needs through the arguments or the output of the call"
        )
    _registered[name] = function
    return function


def path_of(function: Function) -> str:
    """Return what a function is called: ``module:qualified.name``, ``…()`` if it is bound.

    A script has the name by which others import it, as ``__main__`` is another one for each.
    """
    while isinstance(function, partial):
        function = function.func
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", type(function).__name__)
    if module in MAIN:
        module = _imported_as(str(module))
    return f"{module}:{name}{'()' if ismethod(function) else ''}"


def _imported_as(module: str) -> str:
    """Return the name that the running script has when it is imported; a prompt has its own."""
    script = sys.modules.get(module)
    spec = getattr(script, "__spec__", None)
    if spec is not None:
        return str(spec.name)
    file = getattr(script, "__file__", None)
    return module if file is None else Path(file).stem


def named(tools: Iterable[Function] | Mapping[str, Function]) -> list[tuple[str, Function]]:
    """Return what ``tools=`` gives: each function by its name, and by that of a mapping."""
    by_name = dict(tools) if isinstance(tools, Mapping) else {}
    every = [*by_name.values()] if isinstance(tools, Mapping) else [*tools]
    wrong = [name for name in by_name if not isinstance(name, str)]
    wrong += [each for each in every if not callable(each)]
    if wrong:
        raise InvalidArgumentError(
            f"tools are functions, or a dict of names and functions, not {wrong[0]!r}"
        )
    return [*by_name.items(), *((path_of(each), each) for each in every)]


class Functions:
    """What one run knows to undo effects with; its forks share it."""

    def __init__(self, tools: Iterable[tuple[str, Function]] = ()) -> None:
        self._tools: dict[str, list[Function]] = {}
        self._of_effects: dict[str, Function] = {}
        self._called: dict[str, Function] = {}
        for name, function in tools:
            known = self._tools.setdefault(name, [])
            if function not in known:
                known.append(function)

    def give(self, function: Function | None, effect_id: str | None = None) -> None:
        """Know one that the program passed with a call, or made a tool of the run."""
        if function is None:
            return
        if effect_id is not None:
            self._of_effects[effect_id] = function
        self._called[path_of(function)] = function

    def find(self, effect: Any) -> Function:
        """Return what undoes an effect: a RunError if the program has not given that."""
        name = effect.compensate
        if not isinstance(name, str):
            raise missing(effect)
        own = self._of_effects.get(effect.id) or self._called.get(name)
        if own is not None:
            return own
        found = self._tools.get(name) or [f for n, f in _registered.items() if n == name]
        if not found and name.partition(":")[0] in MAIN:
            found = self._of_a_script(name)
        if not found:
            raise missing(effect)
        if len(found) > 1:
            listed = ", ".join(sorted(_told(each) for each in found))
            raise RunError(
                f"{effect} is undone by {name}, and several that were given are called so "
                f"({listed}): give only the one that is meant"
            )
        return found[0]

    def _of_a_script(self, name: str) -> list[Function]:
        """Return those of that qualified name: older versions call every script __main__."""
        wanted, same = name.partition(":")[2], list[Function]()
        for given, function in self._every():
            if given.partition(":")[2] == wanted and function not in same:
                same.append(function)
        return same

    def _every(self) -> Iterator[tuple[str, Function]]:
        yield from self._called.items()
        for name, functions in self._tools.items():
            yield from ((name, each) for each in functions)
        yield from _registered.items()


def missing(effect: Any) -> RunError:
    """Return what to say where the function that undoes an effect was not given."""
    return RunError(
        f"{effect} is undone by {effect.compensate}, which this program has not given. A name in "
        "stored data is never looked up: open the session with tools=[that function], register it "
        "once with @holdfast.register_tool, or on the command line name the module that defines it "
        "with --import MODULE"
    )


def _told(function: Function) -> str:
    owner = f" of {function.__self__!r}" if ismethod(function) else ""
    return f"{path_of(function)}{owner}"


def defined_in(module: ModuleType) -> list[Function]:
    """Return the functions that a module gives which a user named: those it defines itself.

    Never what it only imported, no classes and nothing built in. ``__holdfast_tools__``, names or
    functions, says that it is only those.
    """
    own = {each.__qualname__: each for each in _functions_of(vars(module), module.__name__)}
    declared = vars(module).get(DECLARED)
    if declared is None:
        return list(own.values())
    given: list[Function] = []
    for each in declared:
        found = own.get(each) if isinstance(each, str) else each
        if not isinstance(found, FunctionType):
            raise InvalidArgumentError(
                f"{module.__name__}.{DECLARED} lists functions that the module defines, or their "
                f"names, not {each!r}"
            )
        given.append(found)
    return given


def _functions_of(
    names: Mapping[str, Any], module: str, within: str = ""
) -> Iterator[FunctionType]:
    """Give plain functions under the names they were defined by, and static ones of classes."""
    for name, value in list(names.items()):
        found = value.__func__ if within and isinstance(value, staticmethod) else value
        place = f"{within}{name}"
        if isinstance(found, FunctionType):
            is_plain = not within or found is not value
            if is_plain and (found.__module__, found.__qualname__) == (module, place):
                yield found
        elif isinstance(found, type) and (found.__module__, found.__qualname__) == (module, place):
            yield from _functions_of(vars(found), module, f"{place}.")
