"""A conversation cut between two parallel calls goes on in any framework.

What the journal knows is filled in. What it does not know is kept where the framework runs such
calls when it goes on as it is; with a new prompt, and elsewhere, it is answered as interrupted.
"""

from pathlib import Path

import pytest

from holdfast import SyncClient
from holdfast.adapters.portable import conversation
from holdfast.core.conversation import FORMS
from tests.frameworks import kit, pairs, reference
from tests.frameworks.test_pairs import IN_B, PROMPT, REPLY, TEN, workers

__all__ = ["workers"]


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of an agent that was killed while the second of its two tools ran."""
    directory = tmp_path_factory.mktemp("cut")
    job = kit.Job("openai_agents", directory)
    told = job.start("tool tide#1")
    assert told.was_killed, told.errors
    store = directory / "store"
    store.mkdir()
    for file in directory.glob("store.db*"):
        file.rename(store / file.name)
    return store


@pytest.mark.parametrize("other", TEN)
def test_a_conversation_cut_in_mid_call_goes_on(
    other: str, cut: Path, workers: pairs.Workers, tmp_path: Path
) -> None:
    url = pairs.copied(cut, tmp_path)
    with SyncClient.open(url) as client:
        head = client.latest("openai_agents", kit.SESSION)
        assert head is not None
        there = client.continue_in(head.checkpoint_id, other, session_id=IN_B)
        begun = conversation(IN_B, client, agent_id=other)
    assert begun is not None
    kept = [call.id for call in begun.pending]
    assert kept == (["call_tide"] if FORMS[other].runs_pending else [])
    workers.go_on(other, url, IN_B, PROMPT, REPLY)
    with SyncClient.open(url) as client:
        found = conversation(IN_B, client, agent_id=there.agent_id)
    assert found is not None
    assert found.problems() == []
    answers = {p["id"]: p for m in found.messages if m["role"] == "tool" for p in m["parts"]}
    assert answers["call_depth"]["response"] == reference.RESULTS["call_depth"]
    assert "interrupted" in answers["call_tide"]["response"]
    said = [p.get("content") for m in found.messages for p in m["parts"] if p["type"] == "text"]
    assert said.count(PROMPT) == said.count(REPLY) == 1
