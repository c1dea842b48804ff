"""Claude Code, which speaks Anthropic's Messages API."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from tests.coding_agents.kit import (
    Action,
    Edit,
    RealProgram,
    Reply,
    Said,
    Shell,
    Subagent,
    Tool,
    Write,
    sse,
)

_REMINDER = re.compile(r"\s*<system-reminder>.*?</system-reminder>\s*", re.DOTALL)
_OWN_WORDS = ("Continue from where you left off.", "No response requested.")
"""What the program says in both sides' places when it goes on in the middle of a turn."""
_MODEL = "claude-sonnet-4-5"


class ClaudeCode(RealProgram):
    """Run as ``claude -p``."""

    name = "claude-code"
    command = "claude"

    def configure(self) -> None:
        """Need nothing: all is in the environment."""

    def variables(self) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "dummy",
            "ANTHROPIC_MODEL": _MODEL,
            "CLAUDE_CODE_MAX_RETRIES": "0",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "IS_SANDBOX": "1",  # it refuses to skip permissions for root otherwise
        }

    def arguments(self, prompt: str, resume: Sequence[str] | None) -> list[str]:
        goes_on = [] if resume is None else list(resume[1:])
        how = ["--dangerously-skip-permissions", "--output-format", "json"]
        return [self.program, *goes_on, "-p", prompt, *how]

    def said(self, path: str, body: Any) -> Said | None:
        if not path.startswith("/v1/messages") or "count_tokens" in path or not body.get("tools"):
            return None
        found: Said = []
        for message in body["messages"]:
            speaker = "user" if message["role"] == "user" else "agent"
            for block in _blocks(message["content"]):
                if block["type"] == "text":
                    text = _REMINDER.sub("", block["text"])
                    if text.strip() and text not in _OWN_WORDS:
                        found.append((speaker, text))
                elif block["type"] == "tool_use":
                    found.append(("call", block["name"], block["input"]))
                elif block["type"] == "tool_result":
                    found.append(("result", _result(block.get("content"))))
        return found

    def answer(self, path: str, body: Any, reply: Reply) -> tuple[str, bytes]:
        blocks = [{"type": "text", "text": reply.text}] if reply.text else []
        blocks += [self._call(each) for each in reply.calls]
        return "text/event-stream", sse(list(_events(blocks)), named=True)

    def beside(self, method: str, path: str, body: Any) -> tuple[int, str, bytes]:
        if path.startswith("/v1/messages") and "count_tokens" not in path:
            return 200, *self.answer(path, body, Reply("A conversation."))
        return 200, "application/json", json.dumps({"input_tokens": 1}).encode()

    def _call(self, action: Action) -> dict[str, Any]:
        tool, given = self._tool(action)
        return {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex}", "name": tool, "input": given}

    def _tool(self, action: Action) -> tuple[str, dict[str, Any]]:
        match action:
            case Write(path, text):
                return "Write", {"file_path": str(self.project / path), "content": text}
            case Edit(path, old, new):
                given = {"old_string": old, "new_string": new}
                return "Edit", {"file_path": str(self.project / path), **given}
            case Shell(command):
                return "Bash", {"command": command}
            case Subagent(prompt):
                return "Agent", {"prompt": prompt, "description": "help", **_IN_FRONT}
            case Tool(name, arguments):
                return name, dict(arguments)


_IN_FRONT: dict[str, Any] = {"subagent_type": "general-purpose", "run_in_background": False}


def _blocks(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _result(content: Any) -> str:
    texts = [each["text"] for each in _blocks(content or "") if each["type"] == "text"]
    return _REMINDER.sub("", "\n".join(texts))


def _events(blocks: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    begun: dict[str, Any] = {"id": f"msg_{uuid.uuid4().hex}", "type": "message"}
    begun |= {"role": "assistant", "model": _MODEL, "content": [], "stop_reason": None}
    begun |= {"stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    yield {"type": "message_start", "message": begun}
    for index, block in enumerate(blocks):
        if block["type"] == "tool_use":
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        else:
            start = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        yield {"type": "content_block_start", "index": index, "content_block": start}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    reason = "tool_use" if any(each["type"] == "tool_use" for each in blocks) else "end_turn"
    ended = {"stop_reason": reason, "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}
