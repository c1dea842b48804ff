"""LangGraphAdapter: snapshots as checkpoints and back; and how LangGraph's names become ours."""

import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from holdfast import AdapterError, Framework, InvalidArgumentError, SyncClient
from holdfast.adapters.langgraph import HoldfastSaver, LangGraphAdapter
from holdfast.adapters.langgraph.checkpoint_ids import made_at, record_id
from holdfast.verbs.thread_names import session_of, sessions_below, thread_of
from tests.graphs import asking, chat, line, thread

ONE = thread("1")


def snapshot_of(graph: Any, given: Any, config: Any = ONE) -> Any:
    compiled = graph.compile(checkpointer=InMemorySaver())
    compiled.invoke(given, config)
    return compiled.get_state(config)


class TestExtract:
    def test_a_snapshot_becomes_a_checkpoint_of_its_thread(self) -> None:
        snapshot = snapshot_of(asking("who?"), {"log": ["x"]})

        checkpoint = LangGraphAdapter.extract(snapshot, agent_id="planner", context={"user": "ada"})

        assert checkpoint.framework is Framework.LANGGRAPH
        assert (checkpoint.agent_id, checkpoint.session_id) == ("planner", "1")
        assert (checkpoint.step_index, checkpoint.step_name) == (snapshot.metadata["step"], "loop")
        assert checkpoint.agent_context == {"user": "ada"}
        assert checkpoint.execution_state["values"] == {"log": ["x"]}
        assert checkpoint.execution_state["next"] == ("ask",)
        assert checkpoint.execution_state["thread_id"] == "1"
        assert checkpoint.metadata["thread_id"] == "1"
        assert checkpoint.verify_integrity()

    @pytest.mark.parametrize(("step", "index"), [(-1, 0), (0, 0), (1, 1), (7, 7), (None, 0)])
    def test_the_step_is_that_of_langgraph(self, step: int | None, index: int) -> None:
        checkpoint = LangGraphAdapter.extract({"values": {}, "metadata": {"step": step}})

        assert checkpoint.step_index == index
        assert LangGraphAdapter.reconstruct(checkpoint)["metadata"]["step"] == step

    def test_what_is_named_overrides_what_the_snapshot_says(self) -> None:
        snapshot = snapshot_of(line("a"), {"log": []})

        checkpoint = LangGraphAdapter.extract(
            snapshot, session_id="s", step_index=7, step_name="seven", ttl_seconds=60, team="blue"
        )

        assert (checkpoint.session_id, checkpoint.step_index) == ("s", 7)
        assert (checkpoint.step_name, checkpoint.ttl_seconds) == ("seven", 60)
        assert checkpoint.metadata["team"] == "blue"

    def test_a_subgraph_has_a_session_of_its_own(self) -> None:
        config = thread("1|x", checkpoint_ns="sub:1", checkpoint_id="c")

        checkpoint = LangGraphAdapter.extract({"values": {}, "config": config})

        assert thread_of(checkpoint.session_id) == ("1|x", "sub:1")

    def test_a_dict_with_values_is_enough(self) -> None:
        checkpoint = LangGraphAdapter.extract({"values": {"n": 1}})

        parts = LangGraphAdapter.reconstruct(checkpoint)
        assert parts["values"] == {"n": 1}
        assert (parts["next"], parts["config"], parts["parent_config"]) == ((), {}, None)
        assert (parts["thread_id"], parts["checkpoint_id"]) == (None, None)
        assert parts["context"] == parts["agent_context"] == {}

    def test_secrets_of_the_config_are_not_kept(self) -> None:
        config = thread("1", api_key="sk-secret", checkpoint_ns="")
        config["metadata"] = {"token": "sk-secret"}
        snapshot = {"values": {}, "config": config, "parent_config": config}

        checkpoint = LangGraphAdapter.extract(snapshot)

        assert "sk-secret" not in repr(checkpoint.as_dict())
        assert checkpoint.execution_state["config"] == thread("1", checkpoint_ns="")

    @pytest.mark.parametrize("wrong", [None, 3, {"next": ()}, "values"])
    def test_what_is_no_snapshot_is_refused(self, wrong: Any) -> None:
        with pytest.raises(InvalidArgumentError, match="get_state"):
            LangGraphAdapter.extract(wrong)


class TestReconstruct:
    def test_a_kept_checkpoint_gives_its_parts_back(self) -> None:
        snapshot = snapshot_of(asking("who?"), {"log": ["x"], "value": {"n": [1, None]}})

        with SyncClient.memory() as client:
            checkpoint = LangGraphAdapter.extract(snapshot, context={"k": (1,)})
            parts = LangGraphAdapter.reconstruct(client.restore(client.put(checkpoint)))

        assert parts["values"] == snapshot.values
        assert (parts["next"], parts["thread_id"]) == (("ask",), "1")
        assert parts["metadata"] == snapshot.metadata
        assert parts["checkpoint_id"] == snapshot.config["configurable"]["checkpoint_id"]
        assert parts["config"]["configurable"]["checkpoint_id"] == parts["checkpoint_id"]
        assert [i.value for i in parts["interrupts"]] == ["who?"]
        assert parts["context"] == parts["agent_context"] == {"k": (1,)}

    def test_steps_of_one_thread_make_a_chain(self) -> None:
        compiled = line("a", "b").compile(checkpointer=InMemorySaver())
        compiled.invoke({"log": []}, ONE)
        parent = None
        with SyncClient.memory() as client:
            for snapshot in reversed([*compiled.get_state_history(ONE)]):
                parent = client.put(LangGraphAdapter.extract(snapshot, parent_id=parent))
            chain = client.timeline("langgraph", "1", with_state=True)

        logs = [LangGraphAdapter.reconstruct(each)["values"].get("log") for each in chain]
        assert logs[:3] == [["a", "b"], ["a"], []]
        assert [each.step_index for each in chain] == [2, 1, 0, 0]

    def test_state_can_be_put_back_into_a_graph(self) -> None:
        checkpoint = LangGraphAdapter.extract(snapshot_of(line("a"), {"log": ["x"]}))
        graph = line("a").compile(checkpointer=InMemorySaver())

        graph.update_state(thread("2"), LangGraphAdapter.reconstruct(checkpoint)["values"], "a")

        assert graph.get_state(thread("2")).values == {"log": ["x", "a"]}

    @pytest.mark.parametrize(
        "serde", [None, EncryptedSerializer.from_pycryptodome_aes(key=b"k" * 16)]
    )
    def test_checkpoints_of_a_saver_are_read_too(self, serde: Any) -> None:
        with HoldfastSaver.open("memory://", serde=serde) as saver:
            graph = chat().compile(checkpointer=saver, interrupt_before=["reply"])
            graph.invoke({"messages": [("user", "hi")]}, ONE)
            state = graph.get_state(ONE)
            kept = saver.client.latest("langgraph", "1")
            assert kept is not None

        parts = LangGraphAdapter.reconstruct(kept, serde)

        assert parts["values"] == state.values
        assert (parts["next"], parts["thread_id"]) == (("reply",), "1")
        assert (parts["config"], parts["parent_config"]) == (state.config, state.parent_config)
        assert parts["metadata"] == state.metadata
        assert parts["created_at"] == state.created_at
        assert parts["checkpoint_id"] == state.config["configurable"]["checkpoint_id"]
        assert parts["agent_context"] == {}

    @pytest.mark.parametrize("framework", [f for f in Framework if f is not Framework.LANGGRAPH])
    def test_checkpoints_of_other_frameworks_are_refused_by_name(
        self, framework: Framework
    ) -> None:
        with SyncClient.memory() as client:
            saved = client.save("coder", framework, execution_state={"values": {}})
            with pytest.raises(AdapterError, match=f"{saved}.* is of {framework.value},"):
                LangGraphAdapter.reconstruct(client.restore(saved))

    def test_a_state_that_is_no_snapshot_is_refused(self) -> None:
        with SyncClient.memory() as client:
            saved = client.save("coder", Framework.LANGGRAPH, execution_state=[1])
            with pytest.raises(AdapterError, match="no snapshot"):
                LangGraphAdapter.reconstruct(client.restore(saved))


names = st.text() | st.text("%|7C25", max_size=8)
stamps = st.integers(0x01B21DD213814000, 2**60 - 1)


def v6(ticks: int, rest: int = 0) -> str:
    """An id of LangGraph's kind of that time (100 ns since 1582)."""
    high = (ticks >> 12) << 80 | 0x6 << 76 | (ticks & 0xFFF) << 64
    return str(uuid.UUID(int=high | 0b10 << 62 | rest % 2**62))


class TestNaming:
    @given(names, names)
    def test_a_session_names_its_thread_and_namespace(self, thread_id: str, namespace: str) -> None:
        assert thread_of(session_of(thread_id, namespace)) == (thread_id, namespace)

    @given(names, names, names, names)
    def test_no_two_places_share_a_session(self, a: str, b: str, c: str, d: str) -> None:
        assume((a, b) != (c, d))

        assert session_of(a, b) != session_of(c, d)

    @given(names, names.filter(bool), names, names)
    def test_the_sessions_below_a_thread_are_its_own(
        self, thread_id: str, namespace: str, other: str, elsewhere: str
    ) -> None:
        below = sessions_below(thread_id)

        assert session_of(thread_id, namespace).startswith(below)
        assert not session_of(thread_id, "").startswith(below)
        if other != thread_id:
            assert not session_of(other, elsewhere).startswith(below)

    @given(st.text(st.characters(exclude_characters="%|")))
    def test_a_plain_name_is_kept_as_it_is(self, thread_id: str) -> None:
        assert session_of(thread_id, "") == thread_id

    @given(stamps, stamps, st.integers(0), st.integers(0))
    def test_ids_are_ordered_as_those_of_langgraph_are(
        self, a: int, b: int, rest: int, other: int
    ) -> None:
        assume(a != b)
        first, second = v6(a, rest), v6(b, other)

        assert (first < second) == (record_id("t", "", first) < record_id("t", "", second))

    @given(stamps, st.integers(0))
    def test_ids_are_whole_uuids_of_version_7_with_the_time_they_were_made(
        self, ticks: int, rest: int
    ) -> None:
        theirs = v6(ticks, rest)
        ours = uuid.UUID(record_id("t", "", theirs))

        assert (ours.version, ours.variant) == (7, uuid.RFC_4122)
        milliseconds = (ticks - 0x01B21DD213814000) // 10_000
        assert ours.int >> 80 == milliseconds

    @given(stamps, st.tuples(names, names), st.tuples(names, names))
    def test_the_same_id_in_another_place_is_another(
        self, ticks: int, place: tuple[str, str], other: tuple[str, str]
    ) -> None:
        assume(place != other)

        assert record_id(*place, v6(ticks)) != record_id(*other, v6(ticks))

    @given(st.text())
    def test_any_id_has_a_name(self, checkpoint_id: str) -> None:
        assert uuid.UUID(record_id("t", "", checkpoint_id)).version in (4, 7)
        assert record_id("t", "", checkpoint_id) == record_id("t", "", checkpoint_id)

    def test_ids_of_this_moment_say_so(self) -> None:
        before = datetime.now(UTC)
        made = made_at(str(uuid6()))
        assert made is not None

        assert abs((made - before).total_seconds()) < 60

    def test_an_id_without_a_time_takes_that_of_the_checkpoint(self) -> None:
        assert made_at("x", "2026-01-02T03:04:05+00:00") == datetime(
            2026, 1, 2, 3, 4, 5, tzinfo=UTC
        )
        assert made_at("x", None) is None
