"""A real `langgraph dev` server on Holdfast: killed, stopped, started again."""

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint

from holdfast import SyncClient
from holdfast.adapters.langgraph import HoldfastSaver, bring_back_threads
from holdfast.errors import AdapterError, InvalidArgumentError
from tests.servers import free_port
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(240)


AGENT = """
import os
from typing import TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    text: str
    answer: str


def draft(state: State) -> State:
    with open(os.environ["RUNS"], "a") as runs:
        runs.write("draft\\n")
    return {"text": "a draft"}


def ask(state: State) -> State:
    return {"answer": interrupt("publish?")}


builder = StateGraph(State).add_node(draft).add_node(ask)
graph = builder.add_edge(START, "draft").add_edge("draft", "ask").compile()
"""

CONFIG = {
    "dependencies": ["."],
    "graphs": {"writer": "./agent.py:graph"},
    "checkpointer": {"path": "holdfast.adapters.langgraph.dev_checkpointer"},
}


class Project:
    """A directory with a graph, and the server that runs it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.store = directory / "holdfast.db"
        self.url = f"sqlite:///{self.store}"
        (directory / "agent.py").write_text(AGENT)
        (directory / "langgraph.json").write_text(json.dumps(CONFIG))

    @property
    def runs(self) -> list[str]:
        """The nodes that have run, each as often as it did."""
        return (self.directory / "runs").read_text().split()

    def lose_thread_table(self) -> None:
        """What a kill does within ten seconds of a thread's start, however slow this machine is."""
        shutil.rmtree(self.directory / ".langgraph_api", ignore_errors=True)

    @contextmanager
    def server(self) -> Iterator["DevServer"]:
        """A server, which is killed if it still runs in the end."""
        server = DevServer(self)
        try:
            server.wait_until_it_answers()
            yield server
        finally:
            server.end(signal.SIGKILL)


class DevServer:
    """`langgraph dev` as a process of its own, on loopback."""

    def __init__(self, project: Project) -> None:
        self.url = f"http://127.0.0.1:{(port := free_port())}"
        self._log = project.directory / f"{port}.log"
        offline = {"LANGSMITH_TRACING": "false", "LANGGRAPH_NO_VERSION_CHECK": "true"}
        command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, "--host", "127.0.0.1", "--port", str(port)],
                cwd=project.directory,
                env={
                    **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
                    **offline,
                    "HOLDFAST_URL": project.url,
                    "RUNS": str(project.directory / "runs"),
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_until_it_answers(self) -> None:
        wait_until(self._answers, "the start of langgraph dev")

    def _answers(self) -> bool:
        assert self._process.poll() is None, self.log
        try:
            self.call("GET", "/ok")
        except urllib.error.URLError:
            return False
        return True

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the server; the answer as plain data."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=60) as answer:
            return json.load(answer)

    def run(self, thread_id: str, **body: Any) -> Any:
        """Run the graph on a thread until it ends or is interrupted."""
        return self.call(
            "POST", f"/threads/{thread_id}/runs/wait", {"assistant_id": "writer", **body}
        )

    def knows(self, thread_id: str) -> bool:
        try:
            self.call("GET", f"/threads/{thread_id}/state")
        except urllib.error.HTTPError as error:
            with error:
                if error.code != 404:
                    raise
            return False
        return True

    def end(self, number: int) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, number)
            self._process.wait()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_thread_goes_on_after_the_server_was_killed(project: Project) -> None:
    thread_id = str(uuid.uuid4())
    with project.server() as server:
        server.call("POST", "/threads", {"thread_id": thread_id})
        stopped = server.run(thread_id, input={})
        assert [each["value"] for each in stopped["__interrupt__"]] == ["publish?"]
        server.end(signal.SIGKILL)
    project.lose_thread_table()

    with project.server() as server:
        assert not server.knows(thread_id)
        with SyncClient.open(project.url) as client:
            assert bring_back_threads(server.url, client) == [thread_id]

        state = server.call("GET", f"/threads/{thread_id}/state")
        history = server.call("POST", f"/threads/{thread_id}/history", {"limit": 10})
        resumed = server.run(thread_id, command={"resume": "yes"})

    assert state["values"] == {"text": "a draft"}
    assert state["next"] == ["ask"]
    assert [each["value"] for each in state["interrupts"]] == ["publish?"]
    assert len(history) == 3
    assert resumed == {"text": "a draft", "answer": "yes"}
    assert project.runs == ["draft"]


def test_a_server_that_is_stopped_closes_its_store_and_finds_all_when_started_again(
    project: Project,
) -> None:
    thread_id = str(uuid.uuid4())
    with project.server() as server:
        server.call("POST", "/threads", {"thread_id": thread_id})
        server.run(thread_id, input={})
        server.end(signal.SIGTERM)
        assert "Traceback" not in server.log
    left = sorted(path.name for path in project.directory.glob("holdfast.db*"))

    with project.server() as server:
        resumed = server.run(thread_id, command={"resume": "yes"})

    assert left == ["holdfast.db"], "SQLite removes its log when the last user has closed it"
    assert resumed == {"text": "a draft", "answer": "yes"}
    assert project.runs == ["draft"]


def test_threads_from_elsewhere_are_given_their_graph_and_names_that_are_no_uuids_are_reported(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    thread_id = str(uuid.uuid4())
    with SyncClient.open(project.url) as client, project.server() as server:
        saver = HoldfastSaver(client)
        for thread in (thread_id, "customer-42"):
            checkpoint = {**empty_checkpoint(), "channel_values": {"text": "from elsewhere"}}
            checkpoint["channel_versions"] = {"text": saver.get_next_version(None, None)}
            config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
            saver.put(config, checkpoint, {"source": "update", "step": 0}, {})  # type: ignore[arg-type]

        known = bring_back_threads(server.url, client, graph_id="writer")
        again = bring_back_threads(server.url, client, graph_id="writer")
        state = server.call("GET", f"/threads/{thread_id}/state")

    assert known == again == [thread_id]
    assert state["values"] == {"text": "from elsewhere"}
    assert "'customer-42' stays away" in caplog.text


def test_a_server_that_does_not_answer_is_named(tmp_path: Path) -> None:
    server = f"http://127.0.0.1:{free_port()}"
    with SyncClient.memory() as client:
        config: Any = {"configurable": {"thread_id": str(uuid.uuid4()), "checkpoint_ns": ""}}
        HoldfastSaver(client).put(config, empty_checkpoint(), {"source": "input"}, {})

        with pytest.raises(AdapterError, match=rf"{server} does not answer .* is langgraph dev"):
            bring_back_threads(server, client, graph_id="writer")


@pytest.mark.parametrize("server", ["127.0.0.1:2024", "file:///etc/passwd", ""])
def test_a_server_is_named_by_a_web_address(server: str) -> None:
    with SyncClient.memory() as client, pytest.raises(InvalidArgumentError, match="URL such as"):
        bring_back_threads(server, client)


def test_the_module_says_which_threads_it_gave_back_and_why_it_could_not(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "holdfast.adapters.langgraph", "--store"]
    empty = subprocess.run(
        [*command, f"sqlite:///{tmp_path}/empty.db"], capture_output=True, text=True, cwd=tmp_path
    )
    wrong = subprocess.run([*command, "nowhere"], capture_output=True, text=True, cwd=tmp_path)

    assert (empty.returncode, empty.stdout, empty.stderr) == (0, "", "")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert wrong.stderr.startswith("holdfast: a store is named by a URL")
