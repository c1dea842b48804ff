"""A run that is kept, as the SDK gives runs: a RunResultStreaming."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

from agents import (
    AgentUpdatedStreamEvent,
    InputGuardrailTripwireTriggered,
    Model,
    ModelBehaviorError,
    OutputGuardrailTripwireTriggered,
    RunConfig,
    RunContextWrapper,
    Runner,
    RunResultStreaming,
    RunState,
    UserError,
)
from agents.run_config import DEFAULT_MAX_TURNS

from holdfast.adapters.journal import ToolJournal
from holdfast.adapters.openai_agents.copies import (
    Copies,
    forwarding_run_hooks,
    original,
    within_handoffs,
)
from holdfast.adapters.openai_agents.models import KeptModel, KeptProvider
from holdfast.adapters.openai_agents.options import RunnerOptions
from holdfast.adapters.openai_agents.progress import AGAIN, Progress
from holdfast.adapters.opening import AdapterStore
from holdfast.errors import AdapterError


class KeptRun(RunResultStreaming):
    """A run whose every step is kept: it begins when its events are asked for."""

    def __init__(self, agent: Any, given: Any, options: RunnerOptions, streams: bool) -> None:
        super().__init__(
            input=given if not isinstance(given, RunState) else [],
            new_items=[],
            raw_responses=[],
            final_output=None,
            input_guardrail_results=[],
            output_guardrail_results=[],
            tool_input_guardrail_results=[],
            tool_output_guardrail_results=[],
            context_wrapper=RunContextWrapper(context=options.context),
            current_agent=agent,
            current_turn=0,
            max_turns=options.rest.get("max_turns", DEFAULT_MAX_TURNS),
            _current_agent_output_schema=None,
            trace=None,
        )
        options.check_effects(within_handoffs(original(agent)))
        self.__dict__["_kept"] = _Kept(agent, given, options, streams)

    async def stream_events(self) -> AsyncIterator[Any]:
        """Carry out the run, and give its events as they come."""
        kept: _Kept = self.__dict__["_kept"]
        if kept.has_begun:
            async for event in super().stream_events():
                yield event
        elif not self.is_complete:  # else it was cancelled before it began
            kept.has_begun = True
            async with aclosing(kept.carry_out(self, super().stream_events)) as events:
                async for event in events:
                    yield event

    def become(self, result: RunResultStreaming) -> None:
        """Be the SDK's own result from now on."""
        result.__dict__["_kept"] = self.__dict__["_kept"]
        self.__dict__ = result.__dict__


class _Kept:
    """Opens the session of a run, has the SDK carry it out, and keeps how it ended."""

    def __init__(self, agent: Any, given: Any, options: RunnerOptions, streams: bool) -> None:
        self._agent = original(agent)
        self._given = given
        self._options = options
        self._streams = streams
        self.has_begun = False

    async def carry_out(
        self, shown: KeptRun, events: Callable[[], AsyncIterator[Any]]
    ) -> AsyncGenerator[Any, None]:
        """Give the events of the run; whoever stops asking for them ends it, as a kill would."""
        options = self._options
        store = AdapterStore.given(options.client, options.url)
        try:
            async with options.opened(store.async_client) as run:
                await run.load_effects()
                progress = Progress(
                    run,
                    ToolJournal(run, options.effects),
                    streams=self._streams,
                    to_json=self._to_json,
                )
                try:
                    async with aclosing(self._run(progress, shown, events)) as given:
                        async for event in given:
                            yield event
                finally:
                    progress.tools.is_over = True
        finally:
            await store.aclose()

    async def _run(
        self, progress: Progress, shown: KeptRun, events: Callable[[], AsyncIterator[Any]]
    ) -> AsyncGenerator[Any, None]:
        options = self._options
        call_tool = progress.tools.call_tool if options.journal else None
        call_handoff = progress.tools.call_handoff if options.journal else None
        copies = Copies(progress, call_tool, call_handoff)
        agent = copies.of(self._agent)
        kept = await progress.begin(agent.name, self._given)
        begun, context = progress.input, options.context
        if kept is not None:
            begun, context = await self._restored(agent, kept)
        config, provider = self._config(progress)
        result = Runner.run_streamed(
            agent,
            begun,
            context=context,
            hooks=forwarding_run_hooks(options.hooks),
            run_config=config,
            **options.rest,
        )
        progress.result = result
        shown.become(result)
        try:
            async for event in events():
                if isinstance(event, AgentUpdatedStreamEvent):
                    event.new_agent = original(event.new_agent)
                yield event
        except BaseException as error:
            await self._stopped(result)
            self._failed(progress, error)
            raise
        finally:
            if provider is not None:
                await provider.aclose()
        progress.check()
        self._ended(progress, shown)

    async def _stopped(self, result: RunResultStreaming) -> None:
        """Have nothing go on behind a session that is about to be closed."""
        task = result.run_loop_task
        if task is not None and not task.done():
            result.cancel()
            await asyncio.wait([task])

    def _ended(self, progress: Progress, shown: KeptRun) -> None:
        mode = shown.__dict__.get("_cancel_mode")
        if shown.interruptions or (mode == "after_turn" and shown.final_output is None):
            progress.paused(shown.to_state())
        elif mode != "immediate":
            progress.finished(shown.to_input_list())
            shown.current_agent = original(shown.current_agent)
            for item in shown.new_items:
                item.agent = original(item.agent)

    def _failed(self, progress: Progress, error: BaseException) -> None:
        try:
            progress.check()
        except Exception as problem:
            raise problem from error
        if isinstance(error, InputGuardrailTripwireTriggered):
            progress.refused()
        elif isinstance(error, (OutputGuardrailTripwireTriggered, ModelBehaviorError)):
            progress.answer_refused()

    def _to_json(self, state: RunState[Any, Any]) -> dict[str, Any]:
        data: dict[str, Any] = state.to_json(context_serializer=self._options.context_serializer)
        return data

    async def _restored(self, agent: Any, kept: dict[str, Any]) -> tuple[RunState[Any, Any], Any]:
        """Return the state that is kept, and the context as it was then."""
        options = self._options
        data = copy.deepcopy(kept)  # the SDK changes what it is given
        data["max_turns"] = options.rest.get("max_turns", DEFAULT_MAX_TURNS)
        if (data.get("current_step") or {}).get("type") == AGAIN:
            data["current_turn"] -= 1  # the turn that is begun again counts once
        was = data["context"].get("context")
        context = options.context
        if isinstance(context, dict) and isinstance(was, dict):
            context.clear()
            context.update(was)
        elif options.context_deserializer is not None or context is None:
            context = None
        try:
            state = await RunState.from_json(
                agent,
                data,
                context_deserializer=options.context_deserializer,
                **({} if context is None else {"context_override": context}),
            )
        except UserError as error:
            raise AdapterError(
                f"the run of session {options.session_id!r} cannot go on with these agents: {error}"
                " Give it the agents that it was begun with, or another prompt to leave it"
            ) from error
        return state, context

    def _config(self, progress: Progress) -> tuple[RunConfig, Any]:
        """Return the configuration with models whose answers are kept; a provider to close."""
        given = self._options.run_config
        config = RunConfig(**(given or {})) if given is None or isinstance(given, dict) else given
        is_own = config is not given and "model_provider" not in (given or {})
        own = config.model_provider if is_own else None
        changes: dict[str, Any] = {"model_provider": KeptProvider(config.model_provider, progress)}
        if isinstance(config.model, Model):
            changes["model"] = KeptModel(config.model, progress)
        return dataclasses.replace(config, **changes), own
