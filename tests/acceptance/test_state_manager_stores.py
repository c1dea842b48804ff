"""CheckpointManager: the order of its saves, what only pickle keeps, and what it opens."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from holdfast import (
    CheckpointManager,
    Client,
    InvalidArgumentError,
    SerializationError,
    StoreClosedError,
    SyncClient,
)
from tests.acceptance.manager_kit import Agent, Tool


class TestOrder:
    def test_saves_are_written_in_the_order_their_states_were_taken(
        self, manager: CheckpointManager
    ) -> None:
        agent = Agent(1)
        first = manager.prepare("a", agent)
        agent.step = 2
        second = manager.prepare("a", agent)

        newest, oldest = second.write(), first.write()

        assert [saved["id"] for saved in manager.history("a")] == [newest, oldest]
        assert manager.load("a", Agent()).step == 2
        assert first.write() == oldest

    def test_a_save_that_fails_fails_for_its_own_caller_alone(self) -> None:
        with CheckpointManager() as manager:
            bad = manager.prepare("a", Agent(1), ttl_seconds=-1)
            good = manager.prepare("a", Agent(2)).write()

            with pytest.raises(InvalidArgumentError, match="ttl_seconds"):
                bad.write()
            assert [saved["id"] for saved in manager.history("a")] == [good]

    def test_many_threads_may_save_at_once(self, manager: CheckpointManager) -> None:
        def save(number: int) -> str:
            return manager.save(f"key-{number % 3}", Agent(number))

        with ThreadPoolExecutor(8) as pool:
            ids = list(pool.map(save, range(60)))

        kept = [saved["id"] for key in manager.list_keys() for saved in manager.history(key)]
        assert sorted(kept) == sorted(ids)
        for key in manager.list_keys():
            line = [manager.client.restore(saved["id"]) for saved in manager.history(key)]
            assert [c.parent_id for c in line] == [*(c.checkpoint_id for c in line[1:]), None]


class TestPickle:
    def test_only_pickle_keeps_what_only_pickle_can(self, tmp_path: Path) -> None:
        with CheckpointManager("file", tmp_path, fmt="pickle") as manager:
            manager.save("tool", Tool())
            tool = Tool()
            tool.call = None

            assert manager.diff("tool", agent=tool)["changed"]["call"][0](1) == 3
            assert manager.load("tool", tool).call(1) == 3

    def test_a_rollback_brings_it_back_too(self, tmp_path: Path) -> None:
        tool = Tool()

        def work() -> None:
            with (
                CheckpointManager("file", tmp_path, fmt="pickle") as manager,
                manager.rollback_context("tool", tool),
            ):
                tool.call = None
                raise KeyError

        with pytest.raises(KeyError):
            work()

        assert tool.call(1) == 3

    def test_json_refuses_it(self, tmp_path: Path) -> None:
        with (
            CheckpointManager("file", tmp_path) as manager,
            pytest.raises(SerializationError, match=r"\$\.call: .*partial"),
        ):
            manager.save("tool", Tool())

    def test_what_was_pickled_is_loaded_by_pickle_alone(self, tmp_path: Path) -> None:
        with CheckpointManager("file", tmp_path, fmt="pickle") as manager:
            manager.save("tool", Tool())

        with CheckpointManager("file", tmp_path) as manager, pytest.raises(SerializationError):
            manager.load("tool", Tool())


class TestOpeningAndClosing:
    def test_memory_is_the_default(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        with CheckpointManager() as manager:
            manager.save("a", Agent())

        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("backend", "place"), [("file", ".holdfast/state"), ("sqlite", ".holdfast/holdfast.db")]
    )
    def test_without_a_path_it_is_under_the_current_directory(
        self, backend: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        with CheckpointManager(backend) as manager:
            manager.save("a", Agent())

        assert os.path.exists(place)

    def test_json_documents_can_be_read(self, tmp_path: Path) -> None:
        with CheckpointManager("file", tmp_path) as manager:
            manager.save("a", Agent(4))

        (document,) = tmp_path.rglob("*.json")
        assert '"step": 4' in document.read_text()

    def test_a_client_it_was_given_stays_open(self) -> None:
        with SyncClient.memory() as client:
            with CheckpointManager(client) as manager:
                saved = manager.save("a", Agent(1))
            manager.close()

            assert client.restore(saved).execution_state["step"] == 1

    def test_a_closed_manager_says_so(self, tmp_path: Path) -> None:
        manager = CheckpointManager("sqlite", tmp_path / "a.db")
        manager.close()
        manager.close()

        with pytest.raises(StoreClosedError):
            manager.save("a", Agent())

    @pytest.mark.parametrize(
        "arguments",
        [
            {"backend": "sqllite"},
            {"backend": None},
            {"backend": 3},
            {"backend": "nosuch://x"},
            {"backend": "memory", "path": "x"},
            {"backend": "sqlite:///x.db", "path": "y"},
            {"backend": "file", "fmt": "yaml"},
            {"backend": "memory", "fmt": "pickle"},
            {"backend": "sqlite", "fmt": "pickle"},
        ],
    )
    def test_wrong_arguments_are_refused(
        self, arguments: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)

        with pytest.raises(InvalidArgumentError):
            CheckpointManager(**arguments)
        assert list(tmp_path.iterdir()) == []

    async def test_an_async_client_is_refused(self) -> None:
        async with Client.memory() as client:
            with pytest.raises(InvalidArgumentError, match="SyncClient"):
                CheckpointManager(client)  # type: ignore[arg-type]

    def test_a_password_is_not_shown(self) -> None:
        with pytest.raises(InvalidArgumentError) as caught:
            CheckpointManager("host=db password=hunter2")

        assert "hunter2" not in str(caught.value)
