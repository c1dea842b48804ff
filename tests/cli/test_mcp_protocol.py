"""holdfast mcp, message by message: real pipes, every version, and clients that misbehave."""

import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.cli.mcp.json_rpc import RpcError, message_of
from holdfast.cli.mcp.protocol import HANDSHAKE_VERSIONS, STATELESS_VERSIONS, Protocol
from holdfast.cli.mcp.stdio import LARGEST
from holdfast.cli.mcp.tool_table import TOOLS
from tests.cli.kit import Holdfast, environment

SECONDS = 30
SOON = 0.5
"""Seconds from start to the list of tools; a few times what it takes, as machines are busy."""


class Served:
    """A server, and what it is sent and sends line by line."""

    def __init__(self, directory: Path, *arguments: str, python: Sequence[str] = ()) -> None:
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, *python, "-m", "holdfast", "mcp", *arguments],
            cwd=directory,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._rest = b""
        self._id = 0

    def write(self, *lines: bytes) -> None:
        """Send lines as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(line + b"\n" for line in lines))
        self.process.stdin.flush()

    def send(self, *messages: Any) -> None:
        self.write(*(json.dumps(each).encode() for each in messages))

    def receive(self) -> Any:
        """The next message."""
        return json.loads(self.line())

    def line(self) -> bytes:
        while b"\n" not in self._rest:
            assert self.process.stdout is not None
            ready, _, _ = select.select([self.process.stdout], [], [], SECONDS)
            assert ready, "nothing was answered"
            part = os.read(self.process.stdout.fileno(), 2**16)
            assert part, "the server has gone"
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def until(self, deadline: float) -> Iterator[Any]:
        """All messages that come until then."""
        assert self.process.stdout is not None
        while (left := deadline - time.monotonic()) > 0:
            if select.select([self.process.stdout], [], [], left)[0]:
                self._rest += os.read(self.process.stdout.fileno(), 2**16)
        *lines, self._rest = self._rest.split(b"\n")
        yield from map(json.loads, lines)

    def ask(self, method: str, **params: Any) -> Any:
        """Send a request, and return its answer."""
        self._id += 1
        self.send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        answer = self.receive()
        assert answer["id"] == self._id
        return answer

    def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool, and return its result."""
        return self.ask("tools/call", name=tool, arguments=arguments)["result"]

    def initialize(self, version: str = HANDSHAKE_VERSIONS[-1]) -> Any:
        client = {"name": "tests", "version": "1"}
        return self.ask("initialize", protocolVersion=version, capabilities={}, clientInfo=client)

    def end(self) -> tuple[int, bytes, str]:
        """Say nothing more; return how it ended, and what else was sent and said."""
        assert self.process.stdin is not None
        if not self.process.stdin.closed:
            self.process.stdin.close()
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        out = self._rest + (b"" if self.process.stdout.closed else self.process.stdout.read())
        err = self.process.stderr.read().decode()
        return self.process.wait(SECONDS), out, err

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "file").write_text("x")
    server = Served(tmp_path)
    yield server
    server.kill()


def error_of(answer: Any) -> tuple[Any, int]:
    return answer["id"], answer["error"]["code"]


def test_the_tools_are_there_at_once_and_no_store_is_imported_for_them(tmp_path: Path) -> None:
    server = Served(tmp_path, python=("-X", "importtime"))
    server.initialize()
    took = time.monotonic() - server.began
    code, _, imported = server.end()
    server.kill()

    assert code == 0
    assert took < SOON
    assert "holdfast.cli.mcp.stdio" in imported
    for heavy in ("asyncio", "sqlite3", "ormsgpack", "zstandard", "holdfast.stores.base", "mcp"):
        assert f" {heavy}\n" not in imported
    assert not (tmp_path / ".holdfast").exists()


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
def test_every_version_with_a_handshake_is_agreed_on(served: Served, version: str) -> None:
    told = served.initialize(version)["result"]
    served.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    assert told["protocolVersion"] == version
    assert told["capabilities"] == {"tools": {"listChanged": False}}
    assert served.ask("ping")["result"] == {}
    assert len(served.ask("tools/list")["result"]["tools"]) == len(TOOLS)
    assert not served.call("checkpoint", name="first")["isError"]


@pytest.mark.parametrize("asked", ["2023-01-01", "2099-12-31", *STATELESS_VERSIONS, ""])
def test_a_version_without_a_handshake_of_ours_is_answered_with_the_newest(
    served: Served, asked: str
) -> None:
    assert served.initialize(asked)["result"]["protocolVersion"] == HANDSHAKE_VERSIONS[-1]


def stateless(version: Any = STATELESS_VERSIONS[-1], **params: Any) -> dict[str, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
    }
    return {"_meta": meta, **params}


def test_requests_that_carry_their_version_need_no_handshake(served: Served) -> None:
    found = served.ask("server/discover", **stateless())["result"]
    listed = served.ask("tools/list", **stateless())["result"]
    kept = served.ask("tools/call", **stateless(name="checkpoint", arguments={"name": "a"}))

    assert found["supportedVersions"] == [*STATELESS_VERSIONS]
    assert found["resultType"] == listed["resultType"] == "complete"
    assert kept["result"]["resultType"] == "complete"
    server = kept["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]
    assert (server["name"], kept["result"]["isError"]) == ("holdfast", False)
    unknown = served.ask("tools/list", **stateless("1900-01-01"))["error"]
    assert (unknown["code"], unknown["data"]["requested"]) == (-32022, "1900-01-01")
    assert STATELESS_VERSIONS[-1] in unknown["data"]["supported"]
    for params in (stateless(5), {"_meta": {"io.modelcontextprotocol/protocolVersion": "x"}}):
        assert "error" in served.ask("tools/list", **params)
    assert served.ask("ping", **stateless())["error"]["code"] == -32601
    # An older client on the same pipe is served as well.
    assert served.initialize()["result"]["protocolVersion"] == HANDSHAKE_VERSIONS[-1]


def test_several_messages_in_one_are_answered_in_one_where_the_version_has_that(
    served: Served,
) -> None:
    served.initialize("2025-03-26")
    served.send(
        [
            {"jsonrpc": "2.0", "id": "a", "method": "ping"},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": "b", "method": "tools/call", "params": {"name": "log"}},
            {"jsonrpc": "2.0", "id": "c", "method": "nothing"},
            7,
        ]
    )
    answers = served.receive()
    served.send([{"jsonrpc": "2.0", "method": "notifications/initialized"}])  # nothing to answer
    served.send([])
    assert error_of(served.receive()) == (None, -32600)

    assert [each["id"] for each in answers] == ["a", "b", "c", None]
    assert answers[1]["result"]["structuredContent"]["checkpoints"] == []
    assert [each["error"]["code"] for each in answers[2:]] == [-32601, -32600]


def test_several_messages_in_one_are_refused_where_the_version_has_none(served: Served) -> None:
    served.initialize("2025-06-18")
    served.send([{"jsonrpc": "2.0", "id": 1, "method": "ping"}])

    assert error_of(served.receive()) == (None, -32600)


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (b"not json", (None, -32700)),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping"', (None, -32700)),
        (b"\xff\xfe", (None, -32700)),
        (b'{"jsonrpc": "2.0", "id": NaN, "method": "ping"}', (None, -32700)),
        (b'{"jsonrpc": "2.0", "id": 1e999, "method": "ping"}', (None, -32700)),
        (b"9" * 10_000, (None, -32700)),
        (b"[" * 100_000, (None, -32700)),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, (None, -32700)),
        (b"5", (None, -32600)),
        (b'"text"', (None, -32600)),
        (b"null", (None, -32600)),
        (b"{}", (None, -32600)),
        (b'{"id": 3, "method": "ping"}', (3, -32600)),
        (b'{"jsonrpc": "1.0", "id": "x", "method": "ping"}', ("x", -32600)),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', (None, -32600)),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', (None, -32600)),
        (b'{"jsonrpc": "2.0", "id": [1], "method": "ping"}', (None, -32600)),
        (b'{"jsonrpc": "2.0", "id": 4, "method": 5}', (4, -32600)),
        (b'{"jsonrpc": "2.0", "id": 5}', (5, -32600)),
        (b'{"jsonrpc": "2.0", "id": 6, "method": "ping", "params": [1]}', (6, -32602)),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "nothing/here"}', (7, -32601)),
        (b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "nothing"}', ("\ud800", -32601)),
        (b'{"jsonrpc": "2.0", "id": 8, "method": "resources/list"}', (8, -32601)),
        (b'{"jsonrpc": "2.0", "id": 9, "method": "initialize"}', (9, -32602)),
        (b'{"jsonrpc": "2.0", "id": 10, "method": "tools/call"}', (10, -32602)),
        (
            b'{"jsonrpc":"2.0","id":11,"method":"tools/call","params":{"name":"rm"}}',
            (11, -32602),
        ),
        (
            b'{"jsonrpc":"2.0","id":12,"method":"tools/call",'
            b'"params":{"name":"log","arguments":[]}}',
            (12, -32602),
        ),
        (
            b'{"jsonrpc":"2.0","id":13,"method":"tools/list","params":{"cursor":"x"}}',
            (13, -32602),
        ),
        (b'{"jsonrpc":"2.0","id":14,"method":"ping","params":{"_meta":1}}', (14, -32602)),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_wrong_is_answered_as_json_rpc_says_and_the_next_is_served(
    served: Served, line: bytes, answer: tuple[Any, int]
) -> None:
    served.write(line)

    assert error_of(served.receive()) == answer
    assert served.ask("ping")["result"] == {}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"  \r",
        b'{"jsonrpc": "2.0", "method": "notifications/initialized"}',
        b'{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1}}',
        b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}}',
        b'{"jsonrpc": "2.0", "method": "notifications/cancelled"}',
        b'{"jsonrpc": "2.0", "method": "notifications/later", "params": []}',
        b'{"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "checkpoint"}}',
        b'{"jsonrpc": "2.0", "id": 1, "result": {}}',
        b'{"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": ""}}',
    ],
)
def test_what_needs_no_answer_gets_none(served: Served, line: bytes) -> None:
    served.write(line)

    assert served.ask("ping")["result"] == {}


def test_a_message_without_end_takes_no_room_and_the_next_is_served(served: Served) -> None:
    served.write(b'{"jsonrpc": "2.0", "id": 1, "method": "' + b"x" * LARGEST + b'"}')
    answer = served.receive()

    assert error_of(answer) == (None, -32700)
    assert str(LARGEST) in answer["error"]["message"]
    assert served.ask("ping")["result"] == {}


@pytest.mark.parametrize("depth", [50, 900, 980, 990, 5000])
def test_values_of_any_depth_are_answered(served: Served, depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    for params in (
        b'{"name": "log", "arguments": {"limit": %b}}',
        b'{"name": "checkpoint", "arguments": {"name": "x", "%%s": %b}}',
        b'{"name": "log", "_meta": {"sessionId": %b, "progressToken": 1}}',
    ):
        params = params % deep
        served.write(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + params + b"}")
        assert served.receive()["jsonrpc"] == "2.0"
    served.write(
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":' + deep + b"}}"
    )
    served.send({"jsonrpc": "2.0", "id": "after", "method": "ping"})

    answers = iter(served.receive, {"jsonrpc": "2.0", "id": "after", "result": {}})
    assert {error_of(each) for each in answers} <= {(None, -32700)}


def test_a_client_on_sockets_that_dies_with_answers_unread_ends_the_server(
    tmp_path: Path,
) -> None:
    ours, its = socket.socketpair()
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast", "mcp"],
        cwd=tmp_path,
        env=environment(),
        stdin=its.fileno(),
        stdout=its.fileno(),
        stderr=subprocess.PIPE,
    )
    its.close()
    ours.sendall(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    assert select.select([ours], [], [], SECONDS)[0]
    ours.close()

    assert process.wait(SECONDS) == 0
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()


def test_a_long_message_that_fits_is_taken(served: Served) -> None:
    refused = served.call("checkpoint", name="x" * 10**7)

    assert refused["isError"]
    assert len(refused["content"][0]["text"]) < 200


def test_a_call_that_was_cancelled_before_it_began_is_neither_done_nor_answered(
    served: Served,
) -> None:
    def call(number: int, name: str) -> dict[str, Any]:
        params = {"name": "checkpoint", "arguments": {"name": name}}
        return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}

    cancel = {"method": "notifications/cancelled", "params": {"requestId": 2, "reason": "enough"}}
    served.send(call(1, "first"), call(2, "never"), call(3, "last"), {"jsonrpc": "2.0", **cancel})

    assert [served.receive()["id"], served.receive()["id"]] == [1, 3]
    log = served.call("log")["structuredContent"]["checkpoints"]
    assert [each["step_name"] for each in log] == ["last", "first"]


def test_a_ping_is_answered_while_a_call_is_under_way(served: Served) -> None:
    params = {"name": "checkpoint", "arguments": {"name": "first"}}
    served.send(
        {"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": params},
        {"jsonrpc": "2.0", "id": "quick", "method": "ping"},
    )

    assert [served.receive()["id"], served.receive()["id"]] == ["quick", "slow"]


def test_what_was_asked_before_the_end_is_answered_and_the_server_ends(served: Served) -> None:
    params = {"name": "checkpoint", "arguments": {"name": "last"}}
    served.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    assert served.process.stdin is not None
    served.process.stdin.write(b'{"jsonrpc": "2.0", "id": 2, "method": "ping"}')  # no line end

    code, out, err = served.end()

    answers = [json.loads(line) for line in out.splitlines()]
    assert {each["id"] for each in answers} == {1, 2}
    assert not any(each["result"].get("isError") for each in answers)
    assert (code, err) == (0, "")


def test_a_client_that_reads_no_more_ends_the_server_although_its_input_stays_open(
    served: Served,
) -> None:
    assert served.process.stdout is not None
    served.process.stdout.close()
    served.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})

    assert served.process.wait(SECONDS) == 0


def test_a_client_that_reads_late_gets_every_answer(served: Served) -> None:
    assert served.process.stdin is not None
    os.set_blocking(served.process.stdin.fileno(), False)
    sent, message = 0, b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
    try:
        while sent < 10_000 and os.write(served.process.stdin.fileno(), message) == len(message):
            sent += 1
    except BlockingIOError:
        pass
    os.set_blocking(served.process.stdin.fileno(), True)

    assert sent > 10
    for _ in range(sent):
        assert len(served.receive()["result"]["tools"]) == len(TOOLS)


def test_what_prints_meanwhile_does_not_get_between_the_messages(holdfast: Holdfast) -> None:
    done = holdfast.within(
        "import os, sys\n"
        "from holdfast.cli.mcp.stdio import own_streams\n"
        "with own_streams() as (reads, writes):\n"
        "    print('noise', flush=True)\n"
        "    os.system('echo more noise; cat')\n"
        "    os.write(writes, b'message')\n"
        "print(' and later')\n"
    )

    assert (done.code, done.out, done.err) == (0, "message and later\n", "noise\nmore noise\n")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_stream_that_is_closed_from_the_start_is_said_or_not_needed(
    tmp_path: Path, closed: str
) -> None:
    ping = '{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
    done = subprocess.run(
        f"echo '{ping}' | {sys.executable} -m holdfast mcp {closed}",
        shell=True,
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )

    assert "Traceback" not in done.stderr
    assert done.stdout == ('{"jsonrpc":"2.0","id":1,"result":{}}\n' if closed == "2>&-" else "")


def test_a_directory_that_is_not_there_is_said_at_once(holdfast: Holdfast) -> None:
    done = holdfast("mcp", "--workspace", "nowhere")

    assert (done.code, done.out) == (1, "")
    assert "nowhere is no directory" in done.err


def test_a_server_that_is_killed_at_random_has_kept_all_that_it_said(tmp_path: Path) -> None:
    chance = Random(15)
    kept: set[str] = set()

    def write(text: str) -> None:
        for number in range(40):
            (tmp_path / f"{number}.txt").write_text(text)

    def files() -> set[str]:
        return {each.read_text() for each in tmp_path.glob("*.txt")}

    server = Served(tmp_path)
    for name in ("one", "two"):
        write(name)
        kept.add(server.call("checkpoint", name=name)["structuredContent"]["checkpoint_id"])
    server.kill()

    for number in range(12):
        server = Served(tmp_path)
        server.call("log")
        for tool, arguments in (
            ("rollback", {"checkpoint": ("one", "two")[number % 2]}),
            ("checkpoint", {"name": f"number {number}"}),
        ):
            params = {"name": tool, "arguments": arguments}
            server.send({"jsonrpc": "2.0", "id": tool, "method": "tools/call", "params": params})
        for answer in server.until(time.monotonic() + chance.uniform(0, 0.15)):
            if not answer["result"]["isError"]:
                kept.add(answer["result"]["structuredContent"]["checkpoint_id"])
        server.kill()

    server = Served(tmp_path)
    for name in ("one", "two"):
        assert not server.call("rollback", checkpoint=name)["isError"]
        assert files() == {name}
    log = server.call("log", limit=1000)["structuredContent"]["checkpoints"]
    server.kill()
    assert len(kept) > 2
    assert kept <= {each["checkpoint_id"] for each in log}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
METHODS = st.sampled_from(
    ["initialize", "ping", "tools/list", "tools/call", "server/discover", "notifications/cancelled"]
)
NAMES = st.sampled_from(["checkpoint", "log", "diff", "rollback", "fork", "rewind", "../x", ""])
CALLS = st.fixed_dictionaries(
    {"name": NAMES | JSON},
    optional={
        "arguments": JSON
        | st.dictionaries(
            st.sampled_from(["name", "note", "limit", "old", "new", "text", "checkpoint"]),
            JSON | st.sampled_from(["@", "@~1", "first", "../../etc", "/", "~", "\0"]),
        ),
        "_meta": JSON,
    },
)
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | JSON, "method": METHODS | JSON},
    optional={"id": JSON, "params": CALLS | JSON},
)
LINES = st.one_of(
    st.binary(max_size=100).map(lambda data: data.replace(b"\n", b" ")),
    JSON.map(lambda value: json.dumps(value).encode()),
    MESSAGES.map(lambda value: json.dumps(value).encode()),
    st.lists(MESSAGES, max_size=3).map(lambda value: json.dumps(value).encode()),
)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for all that is thrown at it, below a directory that is none of its business."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").write_text("secret\n")
    workspace = outside / "workspace"
    workspace.mkdir()
    (workspace / "file").write_text("x")
    server = Served(workspace, "--workspace", str(workspace))
    server.initialize("2025-03-26")
    server.call("checkpoint", name="first")
    yield server
    assert sorted(os.listdir(outside)) == ["secret", "workspace"]
    assert (outside / "secret").read_text() == "secret\n"
    assert set(os.listdir(workspace)) <= {".holdfast", "file"}
    assert server.process.poll() is None
    code, _, err = server.end()
    assert (code, err) == (0, "")
    server.kill()


@settings(deadline=None, max_examples=300)
@given(lines=st.lists(LINES, min_size=1, max_size=4), number=st.integers(0, 2**50))
def test_whatever_is_sent_each_answer_is_a_message_and_the_server_goes_on(
    fuzzed: Served, lines: list[bytes], number: int
) -> None:
    fuzzed.write(*lines)
    params = {"name": "log", "arguments": {"limit": 1}}
    mark = f"mark {number}"
    fuzzed.send({"jsonrpc": "2.0", "id": mark, "method": "tools/call", "params": params})

    while True:
        answer = fuzzed.receive()
        for each in answer if isinstance(answer, list) else [answer]:
            assert each["jsonrpc"] == "2.0"
            assert ("result" in each) != ("error" in each)
            if "content" in each.get("result", {}):
                text = each["result"]["content"][0]["text"]
                assert "fault of holdfast" not in text, text
        if isinstance(answer, dict) and answer["id"] == mark:
            assert not answer["result"]["isError"]
            return


@given(messages=st.lists(MESSAGES, max_size=5))
def test_the_protocol_gives_a_result_a_call_or_an_error_that_has_a_code(
    messages: list[Any],
) -> None:
    protocol = Protocol(TOOLS)
    codes = {error.code for error in map(protocol_error, [protocol] * len(messages), messages)}

    assert codes <= {0, -32600, -32601, -32602, -32022}


def protocol_error(protocol: Protocol, value: Any) -> RpcError:
    try:
        message = message_of(value)
        if message is not None:
            protocol.answer(message)
    except RpcError as error:
        return error
    return RpcError(0, "none")
