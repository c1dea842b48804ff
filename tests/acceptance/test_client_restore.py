"""restore and latest: by id or its beginning, proven whole, classes known or not."""

import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from holdfast import (
    AmbiguousIdError,
    CheckpointBuilder,
    CheckpointNotFoundError,
    InvalidArgumentError,
    Raw,
    SyncClient,
    UnknownTypeError,
)
from tests.acceptance.conftest import OpenClient
from tests.clients import PERSISTENT, url_of

NEVER_SAVED = "01900000-0000-7000-8000-000000000000"


@pytest.mark.parametrize("length", [18, 23, 24, 30, 35])
def test_an_id_may_be_given_by_its_beginning(client: SyncClient, length: int) -> None:
    saved = client.save("coder", execution_state={"a": 1})

    assert client.restore(saved[:length]).checkpoint_id == saved


def test_six_characters_are_enough_where_they_fit_one_alone(client: SyncClient) -> None:
    saved = client.save("coder")

    assert client.restore(saved[:6]).checkpoint_id == saved


def test_an_id_may_be_given_without_its_dashes(client: SyncClient) -> None:
    saved = client.save("coder")
    bare = saved.replace("-", "")

    for length in (9, 12, 13, 20, 31, 32):
        assert client.restore(bare[:length]).checkpoint_id == saved


def test_fewer_than_six_characters_are_too_few(client: SyncClient) -> None:
    saved = client.save("coder")

    with pytest.raises(CheckpointNotFoundError, match="at least 6 characters"):
        client.restore(saved[:5])


def test_a_beginning_that_fits_several_is_refused_with_what_it_fits(client: SyncClient) -> None:
    saved = [client.save("coder") for _ in range(3)]

    with pytest.raises(AmbiguousIdError, match="give more") as caught:
        client.restore(saved[0][:6])

    assert caught.value.prefix == saved[0][:6]
    assert set(caught.value.candidates) <= set(saved)


@pytest.mark.parametrize(
    "verb", ["restore", "ancestors", "fork", "handoff", "diff", "timeline", "find", "export"]
)
def test_every_verb_takes_the_beginning_of_an_id(
    client: SyncClient, verb: str, tmp_path: Path
) -> None:
    first = client.save("coder", execution_state={"a": 1}, session_id="s")
    second = client.save("coder", execution_state={"a": 2}, session_id="s")
    short = second[:35]

    uses: dict[str, Any] = {
        "restore": lambda: client.restore(short).checkpoint_id == second,
        "ancestors": lambda: client.ancestors(short)[0].checkpoint_id == first,
        "fork": lambda: client.restore(client.fork(short)).parent_id == second,
        "handoff": lambda: client.restore(client.handoff(short, "b")).parent_id == second,
        "diff": lambda: client.diff(first[:35], short).changed["a"] == (1, 2),
        "timeline": lambda: client.timeline("coder", "s", before=short)[0].checkpoint_id == first,
        "find": lambda: client.find(parent_id=first[:35])[0].checkpoint_id == second,
        "export": lambda: client.export(tmp_path / "bundle", ids=[short]).checkpoints == 1,
    }
    assert uses[verb]()
    assert client.expire(short)


@pytest.mark.parametrize("unknown", [NEVER_SAVED, NEVER_SAVED[:8], "no such id", "%", "*"])
def test_an_unknown_id_is_not_found(client: SyncClient, unknown: str) -> None:
    client.save("coder")

    with pytest.raises(CheckpointNotFoundError) as caught:
        client.restore(unknown)

    assert caught.value.checkpoint_id == unknown
    assert unknown in str(caught.value)


def test_a_restored_checkpoint_proves_itself(client: SyncClient) -> None:
    saved = client.save("coder", execution_state={"a": [1, (2, 3)], "b": {4}}, tag="t")

    for verify in (True, False):
        assert client.restore(saved, verify=verify).verify_integrity()


def test_latest_is_the_newest_checkpoint_of_the_session(client: SyncClient) -> None:
    for step in range(3):
        client.save("coder", execution_state=step, session_id="s")
    client.save("coder", execution_state="other session", session_id="t")
    client.save("reviewer", execution_state="other agent", session_id="s")

    latest = client.latest("coder", "s")

    assert latest is not None
    assert latest.execution_state == 2


def test_a_session_without_checkpoints_has_no_latest(client: SyncClient) -> None:
    client.save("coder", session_id="s")

    assert client.latest("coder", "t") is None
    assert client.latest("reviewer", "s") is None


def test_latest_passes_over_what_has_expired(client: SyncClient) -> None:
    client.save("coder", execution_state="kept", session_id="s")
    client.save("coder", execution_state="gone", session_id="s", ttl_seconds=0)

    latest = client.latest("coder", "s")

    assert latest is not None
    assert latest.execution_state == "kept"


@dataclass
class Point:
    x: int
    y: int


def test_an_instance_of_a_known_class_comes_back_as_one(client: SyncClient) -> None:
    saved = client.save("coder", execution_state={"at": Point(1, 2)}, at=Point(3, 4))

    checkpoint = client.restore(saved)

    assert checkpoint.execution_state == {"at": Point(1, 2)}
    assert checkpoint.metadata == {"at": Point(3, 4)}
    assert client.find(tags={"at": Point(3, 4)})[0].checkpoint_id == saved


@pytest.fixture
def vanishing_class() -> Any:
    """A class whose module this process forgets when it is told to."""
    module = ModuleType("plugin_that_vanishes")
    sys.modules[module.__name__] = module
    exec("from dataclasses import dataclass\n@dataclass\nclass Tool:\n    name: str", vars(module))
    yield module.Tool
    sys.modules.pop(module.__name__, None)


def forget(cls: type) -> None:
    del sys.modules[cls.__module__]


def test_an_unknown_class_is_named_with_its_path(client: SyncClient, vanishing_class: Any) -> None:
    saved = client.save("coder", execution_state={"tools": [vanishing_class("bash")]})
    forget(vanishing_class)

    with pytest.raises(UnknownTypeError, match="import its module first") as caught:
        client.restore(saved)

    assert caught.value.path == "$.tools[0]"
    assert "plugin_that_vanishes" in caught.value.type_name


def test_an_unknown_class_may_be_had_as_its_fields(
    client: SyncClient, vanishing_class: Any
) -> None:
    saved = client.save("coder", execution_state={"tools": [vanishing_class("bash")]})
    forget(vanishing_class)

    (tool,) = client.restore(saved, on_unknown="raw").execution_state["tools"]

    assert isinstance(tool, Raw)
    assert tool["name"] == "bash"


def test_a_fork_of_a_state_with_an_unknown_class_keeps_it(
    client: SyncClient, vanishing_class: Any
) -> None:
    saved = client.save("coder", execution_state={"tools": [vanishing_class("bash")]})
    module = sys.modules[vanishing_class.__module__]
    forget(vanishing_class)

    forked = client.fork(saved, context={"why": "to try"})

    sys.modules[module.__name__] = module
    checkpoint = client.restore(forked)
    assert checkpoint.execution_state == {"tools": [vanishing_class("bash")]}
    assert checkpoint.agent_context == {"why": "to try"}


def test_what_to_do_with_an_unknown_class_is_one_of_two(client: SyncClient) -> None:
    saved = client.save("coder")

    with pytest.raises(InvalidArgumentError, match='"raise" or "raw", not \'skip\''):
        client.restore(saved, on_unknown="skip")  # type: ignore[arg-type]


@pytest.mark.parametrize("store", PERSISTENT)
def test_a_store_that_is_opened_again_holds_what_it_held(
    store: str, open_client: OpenClient, tmp_path: Path
) -> None:
    url = url_of(store, tmp_path)
    first = open_client(url)
    saved = [first.save("coder", execution_state={"step": i}, session_id="s") for i in range(3)]
    first.close()

    again = open_client(url)

    assert [i.checkpoint_id for i in again.timeline("coder", "s")] == saved[::-1]
    following = again.save("coder", execution_state={"step": 3}, session_id="s")
    assert again.restore(following).parent_id == saved[-1]


def test_a_checkpoint_with_every_part_comes_back_whole(client: SyncClient) -> None:
    built = (
        CheckpointBuilder("coder")
        .execution_state({"messages": ["m"] * 3000})
        .context({"k": "v" * 5000})
        .tasks([{"name": str(i), "status": "pending"} for i in range(300)])
        .effects([{"call": i} for i in range(300)])
        .workspace({"files": {str(i): "hash" for i in range(300)}})
        .build()
    )

    client.put(built)

    assert client.restore(built.checkpoint_id) == built
