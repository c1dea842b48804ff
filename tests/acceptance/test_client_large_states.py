"""Large states, whose chunks lie on disk while they are saved and restored, are like any others."""

import random
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from holdfast import SerializationError, SyncClient
from holdfast.core import chunk_encoder
from holdfast.stores.shared import held_chunks
from holdfast.system.bytes_on_disk import BytesOnDisk
from tests.acceptance.conftest import OpenClient
from tests.clients import url_of
from tests.unit import edits


@pytest.fixture(autouse=True)
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is held in memory is soon too much."""
    monkeypatch.setattr(chunk_encoder, "_HELD", 50_000)
    monkeypatch.setattr(held_chunks, "_HELD", 50_000)


def large(size: int = 3_000_000) -> dict[str, Any]:
    rnd = random.Random(size)
    return {
        "messages": edits.messages(300),
        "raw": rnd.randbytes(size),
        "texts": [rnd.randbytes(20_000).hex() for _ in range(20)],
        "more": ["é" * 500 + "\n" * 7] * 400,
    }


def test_a_large_state_comes_back_and_is_gone_on_with(
    client: SyncClient, open_client: OpenClient, url: str
) -> None:
    state = large()
    first = client.save("a", execution_state=state, session_id="s")
    other = client if url.startswith("memory") else open_client(url)

    assert other.restore(first).execution_state == state
    state["messages"] += edits.messages(3)
    second = other.save("a", execution_state=state, session_id="s")

    assert client.restore(second).execution_state == state
    assert client.restore(first).execution_state == large()
    assert other.verify().ok
    assert len(client.timeline("a", "s")) == 2


def test_a_large_state_of_many_statements_is_kept_whole(client: SyncClient) -> None:
    state = large(10_000_000)

    saved = client.save("a", execution_state=state, session_id="s", context={"x": "y" * 9000})

    found = client.restore(saved)
    assert found.execution_state == state
    assert found.agent_context == {"x": "y" * 9000}


def test_the_chunks_of_a_large_save_are_on_disk_and_those_of_a_small_one_are_not(
    client: SyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    class Counted(BytesOnDisk):
        def __init__(self, held: dict[bytes, bytes]) -> None:
            made.append(len(held))
            super().__init__(held)

    monkeypatch.setattr("holdfast.verbs.save.BytesOnDisk", Counted)

    client.save("a", execution_state={"messages": edits.messages(20)}, session_id="s")
    assert made == []
    client.save("a", execution_state=large(), session_id="s")
    assert len(made) == 1


def test_what_a_large_state_cannot_keep_is_refused_and_nothing_is_saved(client: SyncClient) -> None:
    state = large() | {"last": [*edits.messages(300), {"lock": Lock()}]}

    with pytest.raises(SerializationError, match=r"\$\.last\[300\]\.lock"):
        client.save("a", execution_state=state)
    assert client.find() == []


def test_a_large_state_whose_base_is_gone_is_sent_again_as_a_whole(
    open_client: OpenClient, tmp_path: Path
) -> None:
    url = url_of("sqlite", tmp_path)
    client, other = open_client(url), open_client(url)
    state = large()
    saved = client.save("a", execution_state=state, session_id="s")
    other.expire(saved)
    other.gc(grace_seconds=0)

    again = client.save("a", execution_state=state | {"n": 1}, session_id="s")

    assert other.restore(again).execution_state == state | {"n": 1}
