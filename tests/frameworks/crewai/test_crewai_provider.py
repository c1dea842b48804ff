"""CrewAI's own checkpointing, with Holdfast as its place."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crewai import Crew
from crewai.agents.agent_builder.base_agent import _LLM_TYPE_REGISTRY
from crewai.events.event_bus import crewai_event_bus
from crewai.state.checkpoint_config import CheckpointConfig

from holdfast.adapters.crewai import HoldfastCheckpointProvider, HoldfastFlowPersistence
from holdfast.errors import AdapterError, CheckpointNotFoundError
from tests.frameworks.crewai.crews import Known, crew, raws


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture
def provider(url: str) -> Iterator[HoldfastCheckpointProvider]:
    made = HoldfastCheckpointProvider(url=url)
    yield made
    made.close()


def written(number: int = 1, **more: Any) -> str:
    return json.dumps({"crewai_version": "1.15.30", "entities": [], "number": number, **more})


def test_what_crewai_writes_is_read_again(provider: HoldfastCheckpointProvider) -> None:
    first = provider.checkpoint(written(1), "report")
    second = asyncio.run(provider.acheckpoint(written(2), "report", parent_id="x"))

    assert json.loads(provider.from_checkpoint(first))["number"] == 1
    assert json.loads(asyncio.run(provider.afrom_checkpoint(second)))["number"] == 2
    assert [i.checkpoint_id for i in provider.client.timeline("crewai", "report")] == [
        provider.extract_id(second),
        provider.extract_id(first),
    ]


def test_branches_are_sessions_of_their_own(provider: HoldfastCheckpointProvider) -> None:
    provider.checkpoint(written(1), "report")
    provider.checkpoint(written(2), "report", branch="other")

    assert {info.session_id for info in provider.client.sessions()} == {"report", "report.other"}


def test_the_oldest_are_removed_when_crewai_asks_for_that(
    provider: HoldfastCheckpointProvider,
) -> None:
    for number in range(5):
        provider.checkpoint(written(number), "report")

    assert provider.prune("report", 2) == 3
    assert len(provider.client.timeline("crewai", "report")) == 2
    assert provider.prune("report", 2) == 0
    provider.checkpoint(written(9), "report")
    latest = provider.latest("report")
    assert latest is not None
    assert json.loads(Path(str(latest.restore_from)).read_text("utf-8"))["number"] == 9


def test_keys_of_models_are_not_kept(provider: HoldfastCheckpointProvider) -> None:
    place = provider.checkpoint(written(entities=[{"llm": {"api_key": "sk-secret"}}]), "report")

    assert "sk-secret" not in provider.from_checkpoint(place)


def test_a_crew_goes_on_from_what_crewai_has_kept(
    provider: HoldfastCheckpointProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(_LLM_TYPE_REGISTRY, "known", f"{Known.__module__}.Known")
    options: Any = {"tools": [], "kind": Known, "descriptions": ("one", "two")}
    config = CheckpointConfig(location="report", provider=provider)
    made = crew("a", "b", **options, checkpoint=config)
    assert made.kickoff().raw == "b"
    crewai_event_bus.flush()
    first = provider.client.timeline("crewai", "report")[-1]
    assert first.step_name == "task_completed"

    provider.client.fork(first.checkpoint_id, "again")
    latest = provider.latest("again")
    assert latest is not None
    restored = Crew.from_checkpoint(latest)

    assert [task.output and task.output.raw for task in restored.tasks] == ["a", None]
    output = crew("?", **options).kickoff(from_checkpoint=latest)
    assert raws(output)[0] == "a"


def test_a_location_without_checkpoints_has_none(provider: HoldfastCheckpointProvider) -> None:
    assert provider.latest("report") is None
    with pytest.raises(CheckpointNotFoundError):
        provider.from_checkpoint("report#01a1edce-d9d1-7fb6-b545-672c5b60a00f")


def test_its_url_is_in_no_checkpoint_of_crewai(provider: HoldfastCheckpointProvider) -> None:
    config = CheckpointConfig(location="report", provider=provider)

    assert "store.db" not in str(config.model_dump())
    assert "store.db" not in repr(provider)


def test_a_session_of_something_else_is_refused(
    url: str, provider: HoldfastCheckpointProvider
) -> None:
    flows = HoldfastFlowPersistence(url=url)
    flows.save_state("flow", "one", {"id": "flow"})
    flows.close()

    with pytest.raises(AdapterError, match="holds no checkpoint of CrewAI"):
        provider.latest("flow")
