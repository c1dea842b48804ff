"""A graph whose nodes edit files: checkpoints hold them, and a run that goes back takes them."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START
from langgraph.types import Command, interrupt

from holdfast import InvalidArgumentError, SyncClient
from holdfast.adapters.langgraph import HoldfastSaver, LangGraphAdapter
from holdfast.errors import CheckpointNotFoundError, WorkspaceError
from holdfast.workspace import Workspace
from tests.clients import STORES, url_of
from tests.graphs import Log, new_graph, thread

ONE = thread("1")


@pytest.fixture
def repo(repo: Path) -> Path:
    (repo / "main.py").unlink()
    (repo / "notes").write_text("began\n")
    return repo


@pytest.fixture(params=STORES)
def saver(
    request: pytest.FixtureRequest, tmp_path: Path, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[HoldfastSaver]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with HoldfastSaver.open(url_of(request.param, tmp_path), workspace=repo) as saver:
        yield saver


@pytest.fixture(params=["sync", "async"])
def invoke(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Run a graph to its end or its next interrupt."""

    def invoke(graph: Any, given: Any, config: RunnableConfig = ONE, **options: Any) -> Any:
        options = {"durability": "sync", **options}
        if request.param == "sync":
            return graph.invoke(given, config, **options)
        return asyncio.run(graph.ainvoke(given, config, **options))

    return invoke


def writing(repo: Path, *names: str) -> Any:
    """A graph of nodes that each add their name to a file, and log what they found there."""

    def node(name: str) -> Callable[[Log], Log]:
        def write(state: Log) -> Log:
            found = (repo / "notes").read_text()
            (repo / "notes").write_text(f"{found}{name}\n")
            return {"log": [f"{name} after {found.split()[-1]}"]}

        return write

    builder = new_graph(Log)
    for name in names:
        builder.add_node(name, node(name))
    for one, other in zip([START, *names], [*names, END], strict=True):
        builder.add_edge(one, other)
    return builder


def before(graph: Any, node: str) -> RunnableConfig:
    """The oldest checkpoint at which this node is next."""
    config: RunnableConfig = [s for s in graph.get_state_history(ONE) if s.next == (node,)][
        -1
    ].config
    return config


def notes(repo: Path) -> list[str]:
    return (repo / "notes").read_text().split()


def test_every_step_holds_the_files_as_it_left_them(
    saver: HoldfastSaver, repo: Path, tmp_path: Path, invoke: Callable[..., Any]
) -> None:
    graph = writing(repo, "a", "b").compile(checkpointer=saver)
    invoke(graph, {"log": []})

    for node, expected in (("a", ["began"]), ("b", ["began", "a"])):
        saver.restore_workspace(before(graph, node), to=tmp_path / node).close()
        assert notes(tmp_path / node) == expected
    saver.restore_workspace(ONE, to=tmp_path / "end").close()
    assert notes(tmp_path / "end") == ["began", "a", "b"]
    saver.client.gc(grace_seconds=0)
    assert saver.client.verify().ok
    found = saver.client.timeline("langgraph", "1", with_state=True)
    assert all(checkpoint.workspace for checkpoint in found)


def test_a_run_that_begins_at_an_earlier_step_finds_the_files_of_that_step(
    saver: HoldfastSaver, repo: Path, invoke: Callable[..., Any]
) -> None:
    graph = writing(repo, "a", "b").compile(checkpointer=saver)
    invoke(graph, {"log": []})
    (repo / "debris").write_text("left by nobody knows whom")

    done = invoke(graph, None, before(graph, "b"))

    assert done["log"] == ["a after began", "b after a"]
    assert notes(repo) == ["began", "a", "b"]
    assert not (repo / "debris").exists()
    saver.restore_workspace(ONE)
    assert notes(repo) == ["began", "a", "b"]


def test_a_state_that_was_changed_at_an_earlier_step_has_the_files_of_that_step(
    saver: HoldfastSaver, repo: Path, invoke: Callable[..., Any]
) -> None:
    graph = writing(repo, "a", "b").compile(checkpointer=saver)
    invoke(graph, {"log": []})
    graph.update_state(before(graph, "b"), {"log": ["changed"]}, as_node="a")
    assert notes(repo) == ["began", "a", "b"]  # looking and changing leave them alone

    done = invoke(graph, None)

    assert done["log"] == ["a after began", "changed", "b after a"]
    assert notes(repo) == ["began", "a", "b"]


def test_a_run_can_begin_elsewhere_than_where_a_state_was_changed(
    saver: HoldfastSaver, repo: Path, invoke: Callable[..., Any]
) -> None:
    graph = writing(repo, "a", "b", "c").compile(checkpointer=saver)
    invoke(graph, {"log": []})
    at_c = before(graph, "c")
    graph.update_state(before(graph, "b"), {"log": ["changed"]}, as_node="a")

    assert invoke(graph, None, at_c)["log"][-1] == "c after b"


def test_the_branch_that_a_run_begins_with_holds_the_files_it_began_with(
    repo: Path, tmp_path: Path
) -> None:
    written = threading.Event()

    class Slow(HoldfastSaver):
        def put(self, config: Any, checkpoint: Any, metadata: Any, versions: Any) -> Any:
            if metadata["source"] == "fork":  # LangGraph does not wait for this one
                assert written.wait(30)
            return super().put(config, checkpoint, metadata, versions)

    def last(state: Log) -> Log:
        (repo / "notes").write_text("written by the next node\n")
        written.set()
        return {}

    builder = writing(repo, "a")
    builder.add_node("last", last)
    builder.add_edge("a", "last")
    with Slow.open("memory://", workspace=repo) as saver:
        graph = builder.compile(checkpointer=saver)
        graph.invoke({"log": []}, ONE, durability="sync")
        written.clear()
        graph.invoke(None, before(graph, "last"), durability="sync")

        (fork,) = saver.client.find(tags={"source": "fork"})
        saver.client.restore_workspace(fork.checkpoint_id, to=tmp_path / "fork").close()
    assert notes(tmp_path / "fork") == ["began", "a"]


def test_a_state_that_was_changed_at_the_end_leaves_the_files_alone(
    saver: HoldfastSaver, repo: Path, invoke: Callable[..., Any]
) -> None:
    graph = writing(repo, "a", "b").compile(checkpointer=saver, interrupt_before=["b"])
    invoke(graph, {"log": []})
    (repo / "notes").write_text("began a reviewed\n")
    graph.update_state(ONE, {"log": ["approved"]})

    done = invoke(graph, None)

    assert done["log"] == ["a after began", "approved", "b after reviewed"]
    assert notes(repo) == ["began", "a", "reviewed", "b"]


def test_a_thread_that_goes_on_finds_what_was_done_to_its_files_meanwhile(
    saver: HoldfastSaver, repo: Path, invoke: Callable[..., Any]
) -> None:
    graph = writing(repo, "a").compile(checkpointer=saver)
    invoke(graph, {"log": []})
    (repo / "notes").write_text("edited by hand\n")

    assert invoke(graph, {"log": []})["log"] == ["a after began", "a after hand"]


def test_a_fork_of_a_thread_has_its_files(
    saver: HoldfastSaver, repo: Path, invoke: Callable[..., Any]
) -> None:
    graph = writing(repo, "a", "b").compile(checkpointer=saver)
    invoke(graph, {"log": []})
    (at_b,) = saver.client.find(
        tags={"checkpoint_id": before(graph, "b")["configurable"]["checkpoint_id"]}
    )
    saver.client.fork(at_b.checkpoint_id, session_id="2")

    done = invoke(graph, None, thread("2"))

    assert done["log"] == ["a after began", "b after a"]


def test_an_interrupted_run_goes_on_with_its_files(
    saver: HoldfastSaver, repo: Path, invoke: Callable[..., Any]
) -> None:
    def ask(state: Log) -> Log:
        return {"log": [f"{interrupt('well?')} with {notes(repo)[-1]}"]}

    builder = writing(repo, "a")
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    graph = builder.compile(checkpointer=saver)
    invoke(graph, {"log": []})
    (repo / "notes").write_text("began a edited\n")

    assert "yes with edited" in invoke(graph, Command(resume="yes"))["log"]


def test_a_node_that_looks_at_its_thread_leaves_the_files_alone(
    saver: HoldfastSaver, repo: Path, invoke: Callable[..., Any]
) -> None:
    graph: Any = None

    def look(state: Log, config: RunnableConfig) -> Log:
        (repo / "notes").write_text("at work\n")
        graph.get_state(config)
        graph.get_state(ONE)
        list(graph.get_state_history(ONE))
        graph.get_state(before(graph, "look"))
        return {"log": [(repo / "notes").read_text()]}

    builder = writing(repo, "a")
    builder.add_node("look", look)
    builder.add_edge("a", "look")
    graph = builder.compile(checkpointer=saver)
    invoke(graph, {"log": []})

    assert invoke(graph, None, before(graph, "look"))["log"][-1] == "at work\n"


def test_a_subgraph_keeps_and_finds_its_files(
    saver: HoldfastSaver, repo: Path, tmp_path: Path, invoke: Callable[..., Any]
) -> None:
    builder = writing(repo, "a", "b")
    outer = new_graph(Log)
    outer.add_node("inner", builder.compile())
    outer.add_node("last", lambda state: {"log": [notes(repo)[-1]]})
    outer.add_edge(START, "inner")
    outer.add_edge("inner", "last")
    graph = outer.compile(checkpointer=saver)
    invoke(graph, {"log": []})
    (repo / "notes").write_text("spoilt\n")

    assert invoke(graph, None, before(graph, "last"))["log"][-1] == "b"


def test_checkpoints_that_are_kept_while_the_next_nodes_run_are_refused(
    saver: HoldfastSaver, repo: Path, invoke: Callable[..., Any]
) -> None:
    graph = writing(repo, "a").compile(checkpointer=saver)

    for options in ({"durability": None}, {"durability": "async"}):
        with pytest.raises(WorkspaceError, match="durability='sync'"):
            invoke(graph, {"log": []}, **options)
    assert notes(repo) == ["began"]  # no node has run
    assert saver.client.timeline("langgraph", "1") == []


def test_a_step_that_failed_half_way_goes_on_with_what_its_tasks_wrote(
    saver: HoldfastSaver, repo: Path, invoke: Callable[..., Any]
) -> None:
    failing = True

    def one(state: Log) -> Log:
        (repo / "one").write_text("done")
        return {"log": ["one"]}

    def other(state: Log) -> Log:
        if failing:
            raise RuntimeError("not yet")
        return {"log": [f"other with {sorted(path.name for path in repo.iterdir())}"]}

    builder = writing(repo, "a")
    for name, node in (("one", one), ("other", other)):
        builder.add_node(name, node)
        builder.add_edge("a", name)
    graph = builder.compile(checkpointer=saver)
    with pytest.raises(RuntimeError):
        invoke(graph, {"log": []})
    first = next(s for s in graph.get_state_history(ONE) if s.next == ("a",)).config
    graph.update_state(first, {"log": ["changed"]}, as_node="a")
    assert (repo / "one").exists()
    with pytest.raises(RuntimeError):
        invoke(graph, None)  # puts the files back; one task is done, the other fails
    (repo / "mine").write_text("edited meanwhile")
    failing = False

    done = invoke(graph, None)

    assert "one" in done["log"]
    assert done["log"][-1] == "other with ['mine', 'notes', 'one']"


def test_the_saver_restores_with_the_options_of_its_workspace(repo: Path) -> None:
    (repo / ".gitignore").write_text("*.log\n")
    (repo / "x.log").write_text("one")
    with (
        SyncClient.memory() as client,
        Workspace(repo, client, include_ignored=True) as workspace,
        HoldfastSaver(client, workspace=workspace) as saver,
    ):
        graph = writing(repo, "a").compile(checkpointer=saver)
        graph.invoke({"log": []}, ONE, durability="sync")
        (repo / "x.log").write_text("two")

        assert saver.restore_workspace(ONE) is workspace
        assert (repo / "x.log").read_text() == "one"
        graph.invoke({"log": []}, ONE, durability="sync")


def test_a_run_that_is_kept_at_its_end_holds_the_files_of_then(
    saver: HoldfastSaver, repo: Path, tmp_path: Path, invoke: Callable[..., Any]
) -> None:
    graph = writing(repo, "a", "b").compile(checkpointer=saver)
    invoke(graph, {"log": []}, durability="exit")

    saver.restore_workspace(ONE, to=tmp_path / "end").close()
    assert notes(tmp_path / "end") == ["began", "a", "b"]


def test_what_cannot_be_a_workspace_is_refused(tmp_path: Path, repo: Path) -> None:
    with SyncClient.memory() as client, Workspace(repo, "memory://") as elsewhere:
        with pytest.raises(InvalidArgumentError, match="path of a directory, not int"):
            HoldfastSaver(client, workspace=5)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match="a Workspace, not str"):
            LangGraphAdapter.extract({"values": {}}, workspace="repo")  # type: ignore[arg-type]
        with pytest.raises(WorkspaceError, match="no directory"):
            HoldfastSaver(client, workspace=tmp_path / "nowhere")
        saver = HoldfastSaver(client, workspace=elsewhere)
        graph = writing(repo, "a").compile(checkpointer=saver)
        with pytest.raises(InvalidArgumentError, match="open the workspace on the client"):
            graph.invoke({"log": []}, ONE, durability="sync")
        with pytest.raises(CheckpointNotFoundError, match="no such checkpoint"):
            saver.restore_workspace(ONE)
    with HoldfastSaver.open("memory://") as without:
        writing(repo, "a").compile(checkpointer=without).invoke({"log": []}, ONE)
        with pytest.raises(InvalidArgumentError, match="say where the files go"):
            without.restore_workspace(ONE)
        with pytest.raises(WorkspaceError, match="saved without a workspace"):
            without.restore_workspace(ONE, to=tmp_path / "there")


def test_the_saver_leaves_a_workspace_that_it_was_given_open(repo: Path) -> None:
    with SyncClient.memory() as client, Workspace(repo, client) as workspace:
        with HoldfastSaver(client, workspace=workspace) as saver:
            writing(repo, "a").compile(checkpointer=saver).invoke(
                {"log": []}, ONE, durability="sync"
            )
        assert workspace.snapshot().files == 1


def test_a_snapshot_that_is_kept_by_hand_holds_the_files(repo: Path, tmp_path: Path) -> None:
    with SyncClient.memory() as client, Workspace(repo, client) as workspace:
        graph = writing(repo, "a").compile(checkpointer=HoldfastSaver(client))
        graph.invoke({"log": []}, ONE)
        kept = LangGraphAdapter.extract(graph.get_state(ONE), "planner", workspace=workspace)
        saved = client.put(kept)
        (repo / "notes").unlink()

        client.restore_workspace(saved, to=repo).close()
        assert notes(repo) == ["began", "a"]
