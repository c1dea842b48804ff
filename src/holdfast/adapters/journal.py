"""The tools of an agent, journaled one by one by the id that the model gave each call.

Frameworks turn what a tool raises into text for the model. An error of Holdfast's own (a call of
unknown end, a session that was lost, a full store) is none of the model's business: the journal
remembers it, and the adapter raises it where the user sees it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.errors import ApprovalDeniedError, HoldfastError, InvalidArgumentError
from holdfast.session.effects import KINDS, RULES, Kind

if TYPE_CHECKING:
    from holdfast.session.async_run import AsyncRun


@dataclass(frozen=True, slots=True)
class ToolEffect:
    """What a tool does to the world, and what undoes it: ``compensate(output, **arguments)``."""

    kind: Kind
    compensate: Callable[..., Any] | None = None


Effects = Mapping[str, Kind | ToolEffect]
"""By the names of tools; one that is not named is "local"."""


def checked_effects(effects: Effects | None) -> dict[str, ToolEffect]:
    """Return what is declared of tools, checked."""
    if effects is None:
        return {}
    if not isinstance(effects, Mapping):
        raise InvalidArgumentError(
            'effects is a dict of tool names and kinds ({"send_mail": "irreversible"}), not '
            f"{type(effects).__name__}"
        )
    return {name: _checked(name, effect) for name, effect in effects.items()}


def _checked(name: object, given: object) -> ToolEffect:
    effect = given if isinstance(given, ToolEffect) else ToolEffect(given)  # type: ignore[arg-type]
    if not isinstance(name, str) or effect.kind not in KINDS:
        raise InvalidArgumentError(
            f"the effect of a tool is one of {', '.join(KINDS)}, or a ToolEffect: not "
            f"{given!r} for {name!r}"
        )
    if RULES[effect.kind].is_compensated != (effect.compensate is not None):
        raise InvalidArgumentError(
            f'tool {name!r}: "reversible" goes with compensate=, the function that undoes it: '
            'ToolEffect("reversible", compensate=cancel)'
        )
    return effect


class ToolJournal:
    """Calls the tools of an agent through a run, each once for every call id."""

    def __init__(self, run: AsyncRun, effects: Effects | None = None) -> None:
        self._run = run
        self._effects = checked_effects(effects)
        self.problem: HoldfastError | None = None
        """What went wrong in Holdfast itself, which the framework may have shown to the model."""

    async def call(
        self,
        name: str,
        call_id: str,
        arguments: Any,
        tool: Callable[[Any], Awaitable[Any]],
    ) -> Any:
        """Return what a tool gives, recorded before and after; or what it gave before.

        ``tool`` is given the arguments, as who approved the call may have edited them.
        """
        effect = self._effects.get(name, _LOCAL)
        called = _named(name, tool, arguments)
        try:
            return await self._run._call_of_model(called, effect.kind, effect.compensate, call_id)
        except ApprovalDeniedError:  # an answer that the model is to know of
            raise
        except HoldfastError as error:
            if self.problem is None and not _is_recorded(self._run, call_id):
                self.problem = error
            raise

    def check(self) -> None:
        """Raise what went wrong in Holdfast itself, if something did."""
        if self.problem is not None:
            raise self.problem


async def opened(run: AsyncRun) -> AsyncRun:
    """Open a run with all of its calls at hand: a model may give the id of any again."""
    await run.__aenter__()
    try:
        await run.load_effects()
    except BaseException as error:
        await run.__aexit__(type(error), error, None)
        raise
    return run


_LOCAL = ToolEffect("local")


def _is_recorded(run: AsyncRun, call_id: str) -> bool:
    """Return whether an error is one that the tool itself raised, which is kept as its end."""
    return any(call.key == call_id and call.status == "failed" for call in run.effects)


def _named(name: str, tool: Callable[[Any], Awaitable[Any]], arguments: Any) -> Callable[..., Any]:
    """Return a function that is recorded under a tool's name, with its arguments by theirs."""
    by_name = isinstance(arguments, Mapping) and all(isinstance(key, str) for key in arguments)

    async def called(*whole: Any, **parts: Any) -> Any:
        return await tool(parts if by_name else whole[0])

    called.__name__ = called.__qualname__ = name
    return partial(called, **arguments) if by_name else partial(called, arguments)
