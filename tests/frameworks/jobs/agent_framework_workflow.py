"""A workflow of two steps, gone on with from its newest checkpoint, as the page shows."""

from typing import Any

from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler

from holdfast.adapters.agent_framework import HoldfastCheckpointStorage
from tests.frameworks.kit import point


class Measure(Executor):
    @handler
    async def measure(self, harbour: str, context: WorkflowContext[dict]) -> None:
        point("tool measure")
        context.set_state("harbour", harbour)
        point("tool measure done")
        await context.send_message({"harbour": harbour, "depth": 12.5})


class Report(Executor):
    @handler
    async def report(self, found: dict, context: WorkflowContext[Any, str]) -> None:
        point("tool report")
        text = f"{found['harbour']}: {found['depth']} m ({context.get_state('harbour')})"
        context.set_state("report", text)
        point("tool report done")
        await context.yield_output(text)


def workflow(storage: Any) -> Any:
    measure, report = Measure(id="measure"), Report(id="report")
    return (
        WorkflowBuilder(
            name="depths",
            start_executor=measure,
            checkpoint_storage=storage,
            output_from=[report],
        )
        .add_edge(measure, report)
        .build()
    )


async def main(url: str, session_id: str) -> Any:
    async with HoldfastCheckpointStorage(session_id, url=url) as storage:
        latest = await storage.get_latest(workflow_name="depths")
        if latest is None:
            await workflow(storage).run("Süd")
        elif latest.messages:  # something is left to be done
            await workflow(storage).run(checkpoint_id=latest.checkpoint_id)
        latest = await storage.get_latest(workflow_name="depths")
        assert latest is not None
        return [latest.state["report"], latest.iteration_count]
