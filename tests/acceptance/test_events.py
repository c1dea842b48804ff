"""Events: durable, in order, from any place on, in this process and in others."""

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from holdfast import CheckpointNotFoundError, InvalidArgumentError, SyncClient
from tests.acceptance.conftest import OpenClient
from tests.clients import PERSISTENT, url_of

NOW = 0
"""No waiting: the iterator ends after what is there."""


def numbers(events: Any) -> list[int]:
    return [event.data["number"] for event in events]


def publish(client: SyncClient, *these: int, channel: str = "builds") -> None:
    for number in these:
        client.publish(channel, None, number=number)


def test_what_was_published_comes_in_order(client: SyncClient) -> None:
    saved = client.save("coder")
    client.publish("builds", saved, branch="main", tries=(1, 2))
    client.publish("builds", checkpoint_id=saved)

    first, second = client.subscribe("builds", timeout=NOW)

    assert (first.channel, first.checkpoint_id) == ("builds", saved)
    assert first.data == {"branch": "main", "tries": (1, 2)}
    assert second.data == {}
    assert second.published_at >= first.published_at


def test_a_cursor_goes_on_behind_an_event(client: SyncClient) -> None:
    publish(client, 1, 2, 3)
    first, second, _ = client.subscribe("builds", timeout=NOW)

    assert numbers(client.subscribe("builds", after=first.cursor, timeout=NOW)) == [2, 3]
    assert numbers(client.subscribe("builds", after=second, timeout=NOW)) == [3]


def test_channels_do_not_mix(client: SyncClient) -> None:
    publish(client, 1, channel="a")
    publish(client, 2, channel="b")

    assert numbers(client.subscribe("a", timeout=NOW)) == [1]
    assert numbers(client.subscribe("c", timeout=NOW)) == []


def test_new_events_come_to_who_waits(url: str) -> None:
    with SyncClient.open(url) as client, ThreadPoolExecutor(1) as pool:
        publish(client, 0)
        started = threading.Event()

        def follow() -> list[int]:
            found = []
            for event in islice(client.subscribe("builds", timeout=30), 4):
                found.append(event.data["number"])
                started.set()
            return found

        following = pool.submit(follow)
        started.wait()
        publish(client, 1, 2, 3)

        assert following.result() == [0, 1, 2, 3]


def test_more_than_a_page_comes_whole(client: SyncClient) -> None:
    publish(client, *range(600))

    assert numbers(client.subscribe("builds", timeout=NOW)) == list(range(600))


@pytest.mark.parametrize("store", PERSISTENT)
def test_another_client_sees_them_and_a_cursor_survives_a_restart(
    open_client: OpenClient, store: str, tmp_path: Path
) -> None:
    url = url_of(store, tmp_path)
    one = open_client(url)
    publish(one, 1, 2)
    cursor = next(iter(one.subscribe("builds", timeout=NOW))).cursor
    one.close()

    other = open_client(url)

    assert numbers(other.subscribe("builds", after=cursor, timeout=NOW)) == [2]
    publish(other, 3)
    assert numbers(other.subscribe("builds", after=cursor, timeout=NOW)) == [2, 3]


def test_threads_that_publish_at_once_lose_nothing(url: str) -> None:
    with SyncClient.open(url) as client, ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda start: publish(client, *range(start, start + 25)), range(0, 100, 25)))

        found = numbers(client.subscribe("builds", timeout=NOW))

        assert sorted(found) == list(range(100))
        for start in range(0, 100, 25):
            own = [number for number in found if start <= number < start + 25]
            assert own == sorted(own), "each publisher's are in its order"


def test_an_event_expires(client: SyncClient) -> None:
    client.publish("builds", None, ttl_seconds=0, number=1)
    publish(client, 2)

    assert numbers(client.subscribe("builds", timeout=NOW)) == [2]


def test_saves_are_announced_when_asked(client: SyncClient) -> None:
    client.save("coder", session_id="s")
    saved = client.save("coder", session_id="s", step_name="tests", events=True)

    (event,) = client.subscribe("saves:coder", timeout=NOW)

    assert event.checkpoint_id == saved
    assert event.data == {"kind": "save", "session_id": "s", "step_name": "tests"}
    assert client.restore(saved).metadata == {}


def test_handoffs_and_what_becomes_of_them_are_announced(client: SyncClient) -> None:
    offered = client.handoff(client.save("coder", session_id="s"), "reviewer")
    quiet = client.handoff(client.save("coder", session_id="s"), "reviewer", events=False)
    client.reject(offered, "no")

    (event,) = client.subscribe("handoffs:reviewer", timeout=NOW)
    assert event.checkpoint_id == offered != quiet
    assert event.data == {"kind": "handoff", "from": "coder", "session_id": "s"}
    (settled,) = client.subscribe("settled:coder", timeout=NOW)
    assert (settled.checkpoint_id, settled.data) == (offered, {"kind": "rejected"})


@pytest.mark.parametrize("cursor", ["x", "-1", 5, b"1", "1.5"])
def test_what_is_no_cursor_is_refused(client: SyncClient, cursor: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="after is the cursor of an event"):
        next(iter(client.subscribe("builds", after=cursor)))


@pytest.mark.parametrize("channel", ["", "  ", 5, "a\x00b"])
def test_a_channel_has_a_name(client: SyncClient, channel: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="channel"):
        client.publish(channel)
    with pytest.raises(InvalidArgumentError, match="channel"):
        client.subscribe(channel)


def test_only_what_exists_is_announced(client: SyncClient) -> None:
    with pytest.raises(CheckpointNotFoundError):
        client.publish("builds", "no such id")
