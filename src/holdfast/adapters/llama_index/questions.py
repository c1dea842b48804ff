"""What a workflow has asked people and waits for an answer to: asked again after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from workflows.context.serializers import BaseSerializer
from workflows.context.utils import get_qualified_name
from workflows.events import Event, HumanResponseEvent, InputRequiredEvent
from workflows.runtime.types.internal_state import BrokerState
from workflows.runtime.types.results import AddWaiter, StepWorkerResult
from workflows.runtime.types.ticks import TickAddEvent, TickStepResult, WorkflowTick

from holdfast.adapters.llama_index.event_classes import class_named, with_subclasses


@dataclass(frozen=True)
class Question:
    """An event that was put into the stream for somebody to answer."""

    event: Event
    waiter: str | None
    """The id of who waits for the answer in ``wait_for_event``; None if a step returned it."""


class Questions:
    """The open questions of a run, in the order in which they were asked."""

    def __init__(self, asked: list[Question]) -> None:
        self._asked = asked

    @property
    def events(self) -> list[Event]:
        """The events themselves."""
        return [question.event for question in self._asked]

    def follow(self, tick: WorkflowTick, state: BrokerState) -> None:
        """Know what is asked by a tick, and what is answered."""
        if isinstance(tick, TickStepResult):
            self._asked += _asked_by(tick)
        elif isinstance(tick, TickAddEvent) and isinstance(tick.event, HumanResponseEvent):
            self._answered()
        waiting = {waiter.waiter_id for waiter in _waiters(state)}
        self._asked = [
            each for each in self._asked if each.waiter is None or each.waiter in waiting
        ]

    def _answered(self) -> None:
        """Take the oldest question of a step as answered; those of waiters say so themselves."""
        oldest = next((each for each in self._asked if each.waiter is None), None)
        if oldest is not None:
            self._asked.remove(oldest)

    def kept_form(self) -> list[dict[str, Any]]:
        """Return them as plain data."""
        return [
            {
                "waiter": each.waiter,
                "event": get_qualified_name(each.event),
                "fields": each.event.model_dump(mode="json"),
            }
            for each in self._asked
        ]


def questions_in(kept: Any, serializer: BaseSerializer) -> Questions:
    """Return the open questions that were kept; one whose class is not there is not asked again."""
    classes = list(with_subclasses(InputRequiredEvent))
    given = kept.get("questions") if isinstance(kept, dict) else None
    found = []
    for each in given if isinstance(given, list) else []:
        known = class_named(str(each.get("event")), classes)
        if known is not None:
            with serializer.validation_context():
                found.append(Question(known.model_validate(each["fields"]), each["waiter"]))
    return Questions(found)


def _asked_by(tick: TickStepResult) -> Iterator[Question]:
    for result in tick.result:
        if isinstance(result, AddWaiter) and isinstance(result.waiter_event, InputRequiredEvent):
            yield Question(result.waiter_event, result.waiter_id)
        elif isinstance(result, StepWorkerResult) and isinstance(result.result, InputRequiredEvent):
            yield Question(result.result, None)


def _waiters(state: BrokerState) -> Iterator[Any]:
    for worker in state.workers.values():
        yield from (each for each in worker.collected_waiters if each.resolved_event is None)
