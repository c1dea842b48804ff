"""LangGraph's own conformance suite for checkpointers, with nothing left out, on every store."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import ALL_CAPABILITIES

from holdfast.adapters.langgraph import HoldfastSaver
from tests.clients import EVERYWHERE, url_of


@pytest.mark.parametrize("store", [*EVERYWHERE, "cluster"])
async def test_every_capability_of_a_checkpointer_is_there_and_conforms(
    store: str, tmp_path: Path
) -> None:
    made = 0

    @checkpointer_test(name=store)
    async def saver() -> AsyncGenerator[HoldfastSaver, None]:
        nonlocal made
        made += 1
        (tmp_path / str(made)).mkdir()
        async with HoldfastSaver.open(url_of(store, tmp_path / str(made))) as saver:
            yield saver

    report = await validate(saver)

    assert set(report.results) == {capability.value for capability in ALL_CAPABILITIES}
    failures = [line for result in report.results.values() for line in result.failures]
    assert not failures, "\n".join(failures)
    assert all(result.passed for result in report.results.values())
    assert sum(result.tests_passed for result in report.results.values()) > 60
    assert report.conformance_level() == "FULL"
