"""A model for Claude's program on a loopback port: it says what a script says, in SSE."""

import json
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from claude_agent_sdk import ClaudeAgentOptions

Blocks = list[dict[str, Any]]
Script = Callable[[list[dict[str, Any]]], Blocks]
"""Gives the blocks of the answer to messages, without what the program adds to them."""


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def call(call_id: str, tool: str, /, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": tool, "input": arguments}


def results_in(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the results that messages hold, as text, by the ids of their calls."""
    return {
        block["tool_use_id"]: _text(block["content"])
        for message in messages
        for block in message["content"]
        if block["type"] == "tool_result"
    }


def said_in(messages: list[dict[str, Any]], role: str = "user") -> list[str]:
    """Return the texts that one side said."""
    return [
        block["text"]
        for message in messages
        for block in message["content"]
        if message["role"] == role and block["type"] == "text"
    ]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = [block["text"] for block in content if block["type"] == "text"]
    return "".join(each for each in texts if "<system-reminder>" not in each).removesuffix("\n")


class ClaudeServer:
    """Answers the requests of Claude's program; ``requests`` are the messages of each."""

    def __init__(self, script: Script) -> None:
        self.requests: list[list[dict[str, Any]]] = []
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: Any) -> None:
                pass

            def do_HEAD(self) -> None:
                self._json({})

            def do_GET(self) -> None:
                self._json({})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if not self.path.startswith("/v1/messages") or "count_tokens" in self.path:
                    self._json({"input_tokens": 1})
                    return
                messages = [_plain(each) for each in body["messages"]]
                with outer._lock:
                    outer.requests.append(messages)
                    number = len(outer.requests)
                blocks = script(messages)
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("connection", "close")
                self.end_headers()
                for event in _events(blocks, f"msg_{os.getpid()}_{number}"):
                    line = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
                    self.wfile.write(line.encode())
                self.close_connection = True

            def _json(self, value: Any) -> None:
                data = json.dumps(value).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def options(self, home: Path, **more: Any) -> ClaudeAgentOptions:
        """Return options under which the program asks this model, and nothing of a user's."""
        home.mkdir(parents=True, exist_ok=True)
        cwd = home / "project"
        cwd.mkdir(exist_ok=True)
        environment = {
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{self._server.server_port}",
            "ANTHROPIC_API_KEY": "dummy",
            "HOME": str(home),
            "CLAUDE_CONFIG_DIR": str(home / ".claude"),
            "CLAUDE_CODE_MAX_RETRIES": "0",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "IS_SANDBOX": "1",
        }
        given: dict[str, Any] = {
            "cwd": cwd,
            "env": environment,
            "model": "claude-sonnet-4-5",
            "permission_mode": "bypassPermissions",
            "setting_sources": [],
            "system_prompt": "You are terse.",
        }
        return ClaudeAgentOptions(**{**given, **more})


def _plain(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message of a request without the reminders that the program adds."""
    content = message["content"]
    blocks = [text(content)] if isinstance(content, str) else content
    kept = [b for b in blocks if b["type"] != "text" or "<system-reminder>" not in b["text"]]
    return {"role": message["role"], "content": kept}


def _events(blocks: Blocks, message_id: str) -> Iterator[dict[str, Any]]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    begun: dict[str, Any] = {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
    }
    begun |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield {"type": "message_start", "message": begun}
    for index, block in enumerate(blocks):
        at = {"index": index}
        if block["type"] == "tool_use":
            start = {**block, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        elif block["type"] == "thinking":
            start = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        else:
            start = text("")
            deltas = [{"type": "text_delta", "text": block["text"]}]
        yield {"type": "content_block_start", **at, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", **at, "delta": delta}
        yield {"type": "content_block_stop", **at}
    reason = "tool_use" if any(b["type"] == "tool_use" for b in blocks) else "end_turn"
    ended = {"stop_reason": reason, "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}
