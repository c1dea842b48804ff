"""CheckpointManager: the same on every backend."""

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast import (
    CheckpointManager,
    CheckpointNotFoundError,
    InvalidArgumentError,
    SchemaMigrationError,
    SerializationError,
)
from tests.acceptance.manager_kit import BACKENDS, ON_DISK, Agent, Memory


class TestSaveAndLoad:
    def test_the_newest_state_comes_back_in_place(self, manager: CheckpointManager) -> None:
        agent = Agent(1)
        manager.save("a", Agent(0))
        manager.save("a", agent)
        memory = agent.memory
        agent.step = 5
        agent.memory.facts.append("x")
        agent.seen.clear()

        loaded = manager.load("a", agent)

        assert loaded is agent
        assert (agent.step, agent.seen) == (1, {(1, "a")})
        assert agent.memory is memory
        assert memory.facts == []

    def test_an_earlier_one_is_loaded_by_its_id(self, manager: CheckpointManager) -> None:
        ids = [manager.save("a", Agent(step)) for step in range(3)]

        assert manager.load("a", Agent(), checkpoint_id=ids[1]).step == 1
        assert manager.load("a", Agent(), ids[2]).step == 2

    def test_an_id_may_be_shortened(self, manager: CheckpointManager) -> None:
        saved = manager.save("a", Agent(1))

        assert manager.load("a", Agent(), saved[:23]).step == 1

    def test_keys_do_not_mix(self, manager: CheckpointManager) -> None:
        manager.save("a", Agent(1))
        manager.save("b", Agent(2))

        assert manager.load("a", Agent()).step == 1
        assert manager.load("b", Agent()).step == 2

    def test_an_id_of_another_key_is_refused(self, manager: CheckpointManager) -> None:
        manager.save("a", Agent(1))
        other = manager.save("b", Agent(2))
        agent = Agent(3)

        with pytest.raises(CheckpointNotFoundError, match="belongs to 'b', not to the key 'a'"):
            manager.load("a", agent, other)

        assert agent.step == 3

    def test_what_does_not_exist_is_refused(self, manager: CheckpointManager) -> None:
        saved = manager.save("a", Agent())

        with pytest.raises(CheckpointNotFoundError, match="nothing is saved under this key"):
            manager.load("b", Agent())
        with pytest.raises(CheckpointNotFoundError):
            manager.load("a", Agent(), saved[:-4] + "0000")

    def test_a_value_that_cannot_be_kept_is_refused_and_nothing_is_written(
        self, manager: CheckpointManager
    ) -> None:
        agent = Agent()
        agent.step = threading.Lock()  # type: ignore[assignment]

        with pytest.raises(SerializationError, match=r"\$\.step: "):
            manager.save("a", agent)

        assert manager.list_keys() == []

    def test_strictness_is_passed_on(self, manager: CheckpointManager) -> None:
        manager.save("a", Agent(1))
        agent = Agent(0)
        agent.more = 1  # type: ignore[attr-defined]

        with pytest.raises(SchemaMigrationError, match="'more'"):
            manager.load("a", agent)

        assert agent.step == 0
        assert manager.load("a", agent, strict=False).step == 1

    def test_a_state_of_another_class_is_refused(self, manager: CheckpointManager) -> None:
        manager.save("a", Memory())

        with pytest.raises(SchemaMigrationError, match="state of Memory, not of Agent"):
            manager.load("a", Agent())

    @pytest.mark.parametrize("agent", [None, {"step": 1}, Agent])
    def test_what_is_no_checkpointable_is_refused(
        self, manager: CheckpointManager, agent: Any
    ) -> None:
        for call in (manager.save, manager.load, manager.rollback_context):
            with pytest.raises(InvalidArgumentError, match="no Checkpointable"):
                call("a", agent)

    @pytest.mark.parametrize("key", ["", "  ", None, 3, "a\x00b", "k" * 2000])
    def test_a_key_that_is_no_name_is_refused(self, manager: CheckpointManager, key: Any) -> None:
        calls = (
            lambda: manager.save(key, Agent()),
            lambda: manager.load(key, Agent()),
            lambda: manager.history(key),
            lambda: manager.delete(key),
            lambda: manager.diff(key, agent=Agent()),
            lambda: manager.rollback_context(key, Agent()),
        )
        for call in calls:
            with pytest.raises(InvalidArgumentError, match="key"):
                call()

    @pytest.mark.parametrize("key", ["../up", "a/b", "ключ", "a b", ".", "%2e", "CON", "x" * 300])
    def test_any_readable_key_will_do(self, manager: CheckpointManager, key: str) -> None:
        manager.save(key, Agent(4))

        assert manager.list_keys() == [key]
        assert manager.load(key, Agent()).step == 4

    def test_metadata_is_kept_with_the_checkpoint(self, manager: CheckpointManager) -> None:
        saved = manager.save("a", Agent(), score=0.5, step_name="draft")

        checkpoint = manager.client.restore(saved)

        assert checkpoint.metadata == {"score": 0.5}
        assert checkpoint.step_name == "draft"

    @pytest.mark.parametrize("name", ["session_id", "parent_id", "agent_id", "execution_state"])
    def test_metadata_may_not_replace_what_the_manager_sets(
        self, manager: CheckpointManager, name: str
    ) -> None:
        with pytest.raises(InvalidArgumentError, match=name):
            manager.save("a", Agent(), **{name: "x"})

    def test_each_save_follows_the_one_before(self, manager: CheckpointManager) -> None:
        first, second = manager.save("a", Agent(1)), manager.save("a", Agent(2))

        assert manager.client.restore(second).parent_id == first
        assert manager.client.restore(first).parent_id is None

    def test_a_saved_state_does_not_change_with_the_agent(self, manager: CheckpointManager) -> None:
        agent = Agent()
        manager.save("a", agent)
        agent.memory.facts.append("later")

        assert manager.load("a", Agent()).memory.facts == []

    @pytest.mark.parametrize("backend", ON_DISK)
    def test_another_manager_finds_what_one_left(self, backend: str, tmp_path: Path) -> None:
        with BACKENDS[backend](tmp_path) as manager:
            manager.save("a", Agent(3))

        with BACKENDS[backend](tmp_path) as manager:
            assert manager.load("a", Agent()).step == 3


class TestListings:
    def test_keys_are_sorted(self, manager: CheckpointManager) -> None:
        for key in ("b", "c", "a", "b"):
            manager.save(key, Agent())

        assert manager.list_keys() == ["a", "b", "c"]

    def test_without_saves_there_is_nothing(self, manager: CheckpointManager) -> None:
        assert manager.list_keys() == []
        assert manager.history("a") == []

    def test_saves_are_numbered_for_each_key(self, manager: CheckpointManager) -> None:
        for step in range(3):
            manager.save("a", Agent(step))
        manager.save("b", Agent())

        assert [saved.number for saved in manager.history("a")] == [3, 2, 1]
        assert [saved.number for saved in manager.history("a", 2)] == [3, 2]
        assert [saved.number for saved in manager.history("b")] == [1]
        checkpoints = manager.client.timeline("holdfast.state", "a")
        assert [info.step_index for info in checkpoints] == [3, 2, 1]

    def test_numbers_go_on_in_another_manager(self, manager: CheckpointManager) -> None:
        manager.save("a", Agent())
        another = CheckpointManager(manager.client)
        another.save("a", Agent())
        manager.save("a", Agent())

        assert [saved.number for saved in manager.history("a")] == [3, 2, 1]

    def test_a_rollback_that_is_saved_has_a_number_too(self, manager: CheckpointManager) -> None:
        agent = Agent()
        with pytest.raises(RuntimeError), manager.rollback_context("a", agent):  # noqa: PT012
            manager.save("a", agent)
            raise RuntimeError

        assert [saved.number for saved in manager.history("a")] == [3, 2, 1]

    def test_a_number_that_is_given_is_gone_on_from(self, manager: CheckpointManager) -> None:
        manager.save("a", Agent(), step_index=10)
        manager.save("a", Agent())

        assert [saved.number for saved in manager.history("a")] == [11, 10]

    def test_saves_of_a_version_that_did_not_number_them_are_counted(
        self, manager: CheckpointManager
    ) -> None:
        state = Agent().state_dict()
        for _ in range(2):
            manager.client.save("holdfast.state", execution_state=state, session_id="a")
        manager.save("a", Agent())

        assert [saved.number for saved in manager.history("a")] == [3, 2, 1]
        assert [saved.number for saved in manager.history("a", 2)] == [3, 2]

    def test_history_is_newest_first(self, manager: CheckpointManager) -> None:
        before = time.time()
        ids = [manager.save("a", Agent(step)) for step in range(3)]
        manager.save("b", Agent())

        history = manager.history("a")

        assert [saved["id"] for saved in history] == ids[::-1]
        assert all(set(saved) == {"id", "ts"} for saved in history)
        assert before - 1 <= history[-1]["ts"] <= history[0]["ts"] <= time.time() + 1

    def test_history_may_be_cut(self, manager: CheckpointManager) -> None:
        ids = [manager.save("a", Agent(step)) for step in range(3)]

        assert [saved["id"] for saved in manager.history("a", n=2)] == ids[:0:-1]
        assert [saved["id"] for saved in manager.history("a", 9)] == ids[::-1]
        with pytest.raises(InvalidArgumentError):
            manager.history("a", n=0)

    def test_history_is_complete_by_default(self) -> None:
        with CheckpointManager() as manager:
            for step in range(120):
                manager.save("a", Agent(step))

            assert len(manager.history("a")) == 120

    def test_a_deleted_key_is_gone(self, manager: CheckpointManager) -> None:
        for key in ("a", "a", "b"):
            manager.save(key, Agent())

        assert manager.delete("a") == 2
        assert manager.delete("a") == 0
        assert manager.list_keys() == ["b"]
        with pytest.raises(CheckpointNotFoundError):
            manager.load("a", Agent())

    def test_a_fork_is_a_key_of_its_own(self, manager: CheckpointManager) -> None:
        saved = manager.save("a", Agent(1))

        manager.client.fork(saved, session_id="variant")

        assert manager.list_keys() == ["a", "variant"]
        assert manager.load("variant", Agent()).step == 1


class TestDiff:
    def test_from_the_newest_to_the_live_agent(self, manager: CheckpointManager) -> None:
        agent = Agent(1)
        agent.gone = 1  # type: ignore[attr-defined]
        manager.save("a", agent)
        del agent.gone  # type: ignore[attr-defined]
        agent.step, agent.come = True, 2  # type: ignore[attr-defined]

        assert manager.diff("a", agent=agent) == {
            "added": {"come": 2},
            "removed": {"gone": 1},
            "changed": {"step": (1, True)},
        }

    def test_between_two_checkpoints(self, manager: CheckpointManager) -> None:
        first, second = manager.save("a", Agent(1)), manager.save("a", Agent(2))
        third = manager.save("a", Agent(3))

        def changed(**ids: str) -> Any:
            return manager.diff("a", **ids)["changed"]  # type: ignore[arg-type]

        assert changed(checkpoint_id_a=first, checkpoint_id_b=second) == {"step": (1, 2)}
        assert changed(checkpoint_id_a=second, checkpoint_id_b=first) == {"step": (2, 1)}
        assert changed(checkpoint_id_a=first) == {"step": (1, 3)}
        assert changed(checkpoint_id_a=third, checkpoint_id_b=third) == {}

    def test_from_a_checkpoint_to_the_live_agent(self, manager: CheckpointManager) -> None:
        first = manager.save("a", Agent(1))
        manager.save("a", Agent(2))

        difference = manager.diff("a", agent=Agent(3), checkpoint_id_a=first)

        assert difference["changed"] == {"step": (1, 3)}

    def test_a_change_in_a_nested_object_shows(self, manager: CheckpointManager) -> None:
        agent = Agent()
        manager.save("a", agent)
        agent.memory.facts.append("x")

        (old, new) = manager.diff("a", agent=agent)["changed"]["memory"]

        assert (old["facts"], new["facts"]) == ([], ["x"])

    def test_nothing_to_compare_is_refused(self, manager: CheckpointManager) -> None:
        saved = manager.save("a", Agent())

        for wrong in (
            {},
            {"checkpoint_id_b": saved},
            {"agent": Agent(), "checkpoint_id_a": saved, "checkpoint_id_b": saved},
        ):
            with pytest.raises(InvalidArgumentError, match=r"give diff\(\)"):
                manager.diff("a", **wrong)
        with pytest.raises(CheckpointNotFoundError):
            manager.diff("b", agent=Agent())
        with pytest.raises(InvalidArgumentError, match="no Checkpointable"):
            manager.diff("a", agent="agent")  # type: ignore[arg-type]


class TestRollback:
    def test_a_block_that_raises_leaves_the_agent_as_it_was(
        self, manager: CheckpointManager
    ) -> None:
        agent = Agent(1)
        memory = agent.memory
        agent.gone = 1  # type: ignore[attr-defined]
        before = agent.state_dict()

        def work() -> None:
            with manager.rollback_context("a", agent):
                agent.step = 2
                agent.seen.add((2, "b"))
                memory.facts.append("wrong")
                memory.come = agent.come = 1  # type: ignore[attr-defined]
                del agent.gone  # type: ignore[attr-defined]
                raise RuntimeError("bad")

        with pytest.raises(RuntimeError, match="bad"):
            work()
        assert agent.state_dict() == before
        assert agent.memory is memory
        assert memory.facts == []
        assert not hasattr(memory, "come")

    def test_a_block_that_ends_keeps_its_changes(self, manager: CheckpointManager) -> None:
        agent = Agent(1)

        with manager.rollback_context("a", agent) as rollback:
            agent.step = 2

        assert agent.step == 2
        assert [saved["id"] for saved in manager.history("a")] == [rollback.checkpoint_id]
        assert manager.load("a", agent).step == 1

    def test_a_block_that_raises_adds_no_checkpoint(self, manager: CheckpointManager) -> None:
        with pytest.raises(KeyError), manager.rollback_context("a", Agent()):
            raise KeyError

        assert len(manager.history("a")) == 1

    def test_what_the_block_saved_is_not_the_newest_afterwards(
        self, manager: CheckpointManager
    ) -> None:
        agent = Agent(1)

        def work() -> None:
            with manager.rollback_context("a", agent):
                agent.step = 2
                manager.save("a", agent)
                raise KeyError

        with pytest.raises(KeyError):
            work()

        newest, in_block, on_entry = (saved["id"] for saved in manager.history("a"))
        checkpoint = manager.client.restore(newest)
        assert checkpoint.parent_id == checkpoint.metadata["rolled_back_to"] == on_entry
        assert manager.load("a", Agent()).step == 1
        assert manager.load("a", Agent(), in_block).step == 2

    def test_blocks_may_be_nested(self, manager: CheckpointManager) -> None:
        agent = Agent(1)

        def inner() -> None:
            with manager.rollback_context("inner", agent):
                agent.step = 3
                raise ValueError("in")

        def outer() -> None:
            with manager.rollback_context("outer", agent):
                agent.step = 2
                with pytest.raises(ValueError, match="in"):
                    inner()
                assert agent.step == 2
                raise KeyError

        with pytest.raises(KeyError):
            outer()

        assert agent.step == 1

    def test_an_interrupt_rolls_back_as_well(self, manager: CheckpointManager) -> None:
        agent = Agent(1)

        def work() -> None:
            with manager.rollback_context("a", agent):
                agent.step = 2
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            work()

        assert agent.step == 1

    def test_a_block_is_not_run_if_the_agent_cannot_be_saved(
        self, manager: CheckpointManager
    ) -> None:
        agent = Agent()
        agent.step = threading.Lock()  # type: ignore[assignment]

        with pytest.raises(SerializationError), manager.rollback_context("a", agent):
            pytest.fail("the block ran")

    async def test_it_works_in_async_code(self, manager: CheckpointManager) -> None:
        agent = Agent(1)

        async def work() -> None:
            async with manager.rollback_context("a", agent):
                agent.step = 2
                await asyncio.to_thread(manager.save, "a", agent)
                raise KeyError

        with pytest.raises(KeyError):
            await work()
        async with manager.rollback_context("b", agent):
            agent.step = 3

        assert manager.load("a", Agent()).step == 1
        assert agent.step == 3

    async def test_a_cancelled_block_rolls_back(self, manager: CheckpointManager) -> None:
        agent = Agent(1)
        started = asyncio.Event()

        async def work() -> None:
            async with manager.rollback_context("a", agent):
                agent.step = 2
                started.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(work())
        await started.wait()
        task.cancel()

        with pytest.raises(asyncio.CancelledError):
            await task
        assert agent.step == 1
