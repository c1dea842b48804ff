"""The model and the tools of an agent, journaled while it runs: what was answered once stays."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from holdfast.adapters.journal import ToolEffect
from holdfast.adapters.smolagents.steps import loaded_message, message_data
from holdfast.adapters.smolagents.variables import is_only_here, kept_value, loaded_value
from holdfast.errors import ApprovalDeniedError, HoldfastError
from holdfast.session.run import Run

_LOCAL = ToolEffect("local")


class StepJournal:
    """Calls an agent's model and tools through a run."""

    def __init__(self, run: Run, effects: Mapping[str, ToolEffect]) -> None:
        self._run = run
        self._effects = effects
        self.problem: HoldfastError | None = None
        """What went wrong in Holdfast itself, which smolagents would show to the model as text."""

    @contextmanager
    def of(self, agent: Any) -> Iterator[None]:
        """Have all calls of an agent's model and tools go through the journal."""
        replaced: list[tuple[Any, str]] = []
        try:
            if hasattr(agent.model, "generate"):
                self._replace(agent.model, "generate", self._model(agent.model.generate), replaced)
            for name, tool in agent.tools.items():
                if name != "final_answer":  # which only hands on what it is given
                    self._replace(tool, "forward", self._tool(name, tool.forward), replaced)
            yield
        finally:
            for owner, name in replaced:
                vars(owner).pop(name, None)

    def _replace(
        self, owner: Any, name: str, function: Callable[..., Any], replaced: list[tuple[Any, str]]
    ) -> None:
        if name not in vars(owner):
            setattr(owner, name, function)
            replaced.append((owner, name))

    def _model(self, generate: Callable[..., Any]) -> Callable[..., Any]:
        def journaled(messages: Any, *args: Any, **kwargs: Any) -> Any:
            def model(request: str) -> Any:
                return message_data(generate(messages, *args, **kwargs))

            # The request is told by its digest: the steps that are kept say it already.
            return loaded_message(self._call(model, _LOCAL, _digest(messages)))

        return journaled

    def _tool(self, name: str, forward: Callable[..., Any]) -> Callable[..., Any]:
        effect = self._effects.get(name, _LOCAL)

        def journaled(*args: Any, **kwargs: Any) -> Any:
            told, named = [_told(each) for each in args], {k: _told(kwargs[k]) for k in kwargs}
            pairs = [*zip(told, args, strict=True), *((named[k], kwargs[k]) for k in kwargs)]
            meant = {id(text): argument for text, argument in pairs}

            def tool(*now: Any, **by_name: Any) -> Any:  # who approved it may have edited some
                given = [meant.get(id(each), each) for each in now]
                more = {key: meant.get(id(each), each) for key, each in by_name.items()}
                return kept_value(forward(*given, **more), f"the output of {name}, $")

            tool.__name__ = tool.__qualname__ = name
            found = self._call(partial(tool, *told, **named), effect)
            return loaded_value(found, f"the output of {name}")

        return journaled

    def _call(self, function: Callable[..., Any], effect: ToolEffect, *args: Any) -> Any:
        try:
            return self._run.call(function, *args, effect=effect.kind, compensate=effect.compensate)
        except ApprovalDeniedError:  # an answer that the model is to know of
            raise
        except HoldfastError as error:
            if not self._is_recorded(error):
                self.problem = self.problem or error
            raise

    def _is_recorded(self, error: HoldfastError) -> bool:
        """Return whether an error is the recorded end of a call: the model's to see."""
        return any(call.error is error for call in self._run.effects if call.status == "failed")

    def check(self) -> None:
        """Raise what went wrong in Holdfast itself, if something did."""
        if self.problem is not None:
            raise self.problem


def _told(argument: Any) -> Any:
    """Return an argument as it is recorded: what no other process could read, by its class."""
    return f"<{type(argument).__qualname__}>" if is_only_here(argument) else argument


def _digest(messages: Any) -> str:
    """Return what tells a request apart: the same in every process."""
    digest = hashlib.sha256()
    for message in messages:
        role = getattr(message, "role", None)
        digest.update(f"{getattr(role, 'value', role)}\n".encode())
        content = getattr(message, "content", message)
        for part in content if isinstance(content, list) else [content]:
            image = part.get("image") if isinstance(part, dict) else None
            if image is not None and hasattr(image, "tobytes"):
                digest.update(image.tobytes())
            else:
                digest.update(repr(part).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:32]
