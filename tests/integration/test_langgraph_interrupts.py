"""Open interrupts: what threads wait for, told without LangGraph."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import START
from langgraph.types import Command, interrupt

from holdfast import Client, SyncClient
from holdfast.adapters.langgraph import HoldfastSaver
from tests.clients import PERSISTENT, url_of
from tests.graphs import Log, answer, asking, fan_out, line, nested, new_graph, says, thread


def saver_of(client: SyncClient, **options: Any) -> HoldfastSaver:
    return HoldfastSaver(client, **options)


@pytest.mark.parametrize("store", PERSISTENT)
def test_a_question_is_told_with_its_thread_node_value_and_how_to_answer(
    store: str, tmp_path: Path
) -> None:
    with SyncClient.open(url_of(store, tmp_path)) as client:
        graph = asking("sure?").compile(checkpointer=saver_of(client))
        graph.invoke({"log": []}, thread("7"))
        expected = graph.get_state(thread("7")).interrupts[0]

        (found,) = client.interrupts()

    assert (found.thread_id, found.session_id, found.agent_id) == ("7", "7", "langgraph")
    assert (found.node, found.value, found.interrupt_id) == ("ask", "sure?", expected.id)
    assert "'thread_id': '7'" in found.resume
    assert found.interrupt_id is not None
    assert found.interrupt_id in found.resume


def test_how_to_answer_is_python_that_answers() -> None:
    with SyncClient.memory() as client:
        graph = asking("sure?").compile(checkpointer=saver_of(client))
        graph.invoke({"log": []}, thread("7"))
        (found,) = client.interrupts()

        names = {"graph": graph, "Command": Command, "ANSWER": "yes"}
        result = eval(found.resume, names)

        assert result["log"] == ["sure? yes"]
        assert client.interrupts() == []


def test_only_the_question_that_is_open_is_told() -> None:
    with SyncClient.memory() as client:
        graph = asking("first?", "second?").compile(checkpointer=saver_of(client))
        graph.invoke({"log": []}, thread("1"))
        assert [each.value for each in client.interrupts()] == ["first?"]

        graph.invoke(answer("yes"), thread("1"))
        assert [each.value for each in client.interrupts()] == ["second?"]

        graph.invoke(answer("no"), thread("1"))
        assert client.interrupts() == []


def test_of_tasks_at_once_those_that_wait_are_told_by_their_node() -> None:
    builder = new_graph(Log)
    for name in ("a", "b"):
        builder.add_node(name, lambda state, name=name: {"log": [interrupt(f"{name}?")]})
        builder.add_edge(START, name)
    builder.add_node("c", says("c"))
    builder.add_edge(START, "c")
    with SyncClient.memory() as client:
        graph = builder.compile(checkpointer=saver_of(client))
        graph.invoke({"log": []}, thread("1"))
        both = {each.node: each for each in client.interrupts()}
        assert {node: each.value for node, each in both.items()} == {"a": "a?", "b": "b?"}

        graph.invoke(Command(resume={both["a"].interrupt_id: "x"}), thread("1"))

        (left,) = client.interrupts()
        assert (left.node, left.value) == ("b", "b?")


def test_a_task_that_was_sent_is_told_by_its_node() -> None:
    builder = fan_out(lambda given: {"log": [interrupt(given["name"])]}, ["x", "y"])
    with SyncClient.memory() as client:
        builder.compile(checkpointer=saver_of(client)).invoke({"log": []}, thread("1"))

        found = client.interrupts()

    assert sorted((each.node or "?", each.value) for each in found) == [
        ("work", "x"),
        ("work", "y"),
    ]


def test_what_a_subgraph_asks_is_told_once_as_its_threads() -> None:
    with SyncClient.memory() as client:
        nested().compile(checkpointer=saver_of(client)).invoke({"log": []}, thread("1"))

        (found,) = client.interrupts()

    assert (found.thread_id, found.value, found.node) == ("1", "how deep?", "middle")


def test_threads_agents_and_other_sessions_are_told_apart() -> None:
    with SyncClient.memory() as client:
        client.save("other", session_id="1", execution_state={})
        for agent, name in (("one", "1"), ("one", "2"), ("two", "2")):
            graph = asking(f"{agent} {name}?").compile(
                checkpointer=saver_of(client, agent_id=agent)
            )
            graph.invoke({"log": []}, thread(name))
        line("a").compile(checkpointer=saver_of(client)).invoke({"log": []}, thread("3"))

        def asked(**which: str) -> list[str]:
            return sorted(each.value for each in client.interrupts(**which))

        assert asked() == ["one 1?", "one 2?", "two 2?"]
        assert asked(agent_id="one") == ["one 1?", "one 2?"]
        assert asked(session_id="2") == ["one 2?", "two 2?"]
        assert asked(agent_id="one", session_id="2") == ["one 2?"]
        assert asked(session_id="3") == asked(session_id="4") == []


def test_an_encrypted_question_is_told_without_its_text() -> None:
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    with SyncClient.memory() as client:
        graph = asking("secret?").compile(checkpointer=saver_of(client, serde=serde))
        graph.invoke({"log": []}, thread("1"))

        (found,) = client.interrupts()

    assert (found.thread_id, found.node, found.interrupt_id) == ("1", "ask", None)
    assert "sealed" in repr(found.value)


async def test_the_async_client_tells_the_same() -> None:
    async with Client.memory() as client:
        graph = asking("sure?").compile(checkpointer=HoldfastSaver(client))
        await graph.ainvoke({"log": []}, thread("7"))

        (found,) = await client.interrupts()

    assert found.value == "sure?"


def test_langgraph_need_not_be_there_to_tell(tmp_path: Path) -> None:
    url = url_of("sqlite", tmp_path)
    with SyncClient.open(url) as client:
        graph = asking("sure?").compile(checkpointer=saver_of(client))
        graph.invoke({"log": []}, thread("7"))
    program = (
        "import sys; sys.modules['langgraph'] = None\n"
        "from holdfast import SyncClient\n"
        f"with SyncClient.open({url!r}) as client:\n"
        "    found, = client.interrupts()\n"
        "print(found.thread_id, found.node, found.value)\n"
    )

    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert said.stdout == "7 ask sure?\n"


def test_a_fork_that_asks_again_is_answered_in_its_own_thread() -> None:
    with SyncClient.memory() as client:
        graph = asking("sure?").compile(checkpointer=saver_of(client))
        graph.invoke({"log": []}, thread("first"))
        client.fork(client.timeline("langgraph", "first")[0].checkpoint_id, session_id="second")

        graph.invoke(None, thread("second"))
        (found,) = client.interrupts(session_id="second")

    assert (found.session_id, found.thread_id) == ("second", "second")
    assert "'thread_id': 'second'" in found.resume
