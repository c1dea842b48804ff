"""opencode, which speaks OpenAI's chat completions to a provider that its settings name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from tests.coding_agents.kit import (
    Action,
    Edit,
    RealProgram,
    Reply,
    Said,
    Shell,
    Subagent,
    Write,
    sse,
)

CONFIG = ".config/opencode/opencode.json"


class OpenCode(RealProgram):
    """opencode as ``opencode run`` runs it, offline."""

    name: ClassVar[str] = "opencode"
    command: ClassVar[str] = "opencode"

    def configure(self) -> None:
        """Name the scripted model, and allow all tools."""
        options = {"baseURL": f"{self.url}/v1", "apiKey": "dummy"}
        model = {"name": "one", "limit": {"context": 200_000, "output": 8_000}}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Scripted",
            "options": options,
            "models": {"one": model},
        }
        config = self.home / CONFIG
        for folder in (config.parent, self.project / ".opencode"):
            has_fetched(folder)
        config.write_text(
            json.dumps(
                {
                    "model": "scripted/one",
                    "small_model": "scripted/one",
                    "share": "disabled",
                    "autoupdate": False,
                    "permission": "allow",
                    "provider": {"scripted": provider},
                }
            )
        )

    def variables(self) -> dict[str, str]:
        """Keep it from the network: its packages are sought on a port where nobody listens."""
        return {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "npm_config_registry": "http://127.0.0.1:9/",
            "npm_config_fetch_retries": "0",
        }

    def arguments(self, prompt: str, resume: Sequence[str] | None) -> list[str]:
        """Return the command that gives a prompt without a terminal."""
        session = [] if resume is None else list(resume)[1:]
        # Word by word: it puts quotes around an argument with spaces.
        return [self.program, "run", "--format", "json", *session, "--", *prompt.split(" ")]

    def said(self, path: str, body: Any) -> Said | None:
        """Return what a request tells the model; None for one that asks for a title."""
        if not path.endswith("/chat/completions") or not body.get("tools"):
            return None
        said: Said = []
        for message in body["messages"]:
            text = _text(message.get("content"))
            if message["role"] == "user":
                said.append(("user", text))
            elif message["role"] == "tool":
                said.append(("result", text))
            elif message["role"] == "assistant":
                said += [("agent", text)] if text else []
                for call in message.get("tool_calls") or ():
                    function = call["function"]
                    said.append(("call", function["name"], json.loads(function["arguments"])))
        return said

    def answer(self, path: str, body: Any, reply: Reply) -> tuple[str, bytes]:
        """Return a reply as a stream of chunks."""
        deltas: list[tuple[dict[str, Any], str | None]] = [({"role": "assistant"}, None)]
        if reply.text:
            deltas.append(({"content": reply.text}, None))
        for at, action in enumerate(reply.calls):
            name, arguments = call_of(action)
            identity = self.call_id(body, at)
            function = {"name": name, "arguments": json.dumps(arguments)}
            call = {"index": at, "id": identity, "type": "function", "function": function}
            deltas.append(({"tool_calls": [call]}, None))
        deltas.append(({}, "tool_calls" if reply.calls else "stop"))
        chunks = [
            {
                "id": "chunk",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": body["model"],
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            }
            for delta, finish in deltas
        ]
        return "text/event-stream", sse(chunks, end="[DONE]")

    def call_id(self, body: Any, at: int) -> str:
        """Return the id of a call in an answer."""
        return (
            f"call_{hashlib.sha256(json.dumps([body['messages'], at]).encode()).hexdigest()[:24]}"
        )

    def beside(self, method: str, path: str, body: Any) -> tuple[int, str, bytes]:
        """Return a title for a conversation."""
        if method == "POST" and path.endswith("/chat/completions"):
            kind, answer = self.answer(path, body, Reply("A title"))
            return 200, kind, answer
        return super().beside(method, path, body)


def has_fetched(folder: Path) -> None:
    """Leave a directory of settings as it is once opencode has fetched its package for plugins.

    Otherwise it tries that at every start, and a start within a minute waits for the lock of the
    one before.
    """
    (folder / "node_modules").mkdir(parents=True, exist_ok=True)
    root = {"dependencies": {"@opencode-ai/plugin": "*"}}
    (folder / "package-lock.json").write_text(json.dumps({"packages": {"": root}}))


def call_of(action: Action) -> tuple[str, dict[str, Any]]:
    """Return the tool that does an action, and its arguments."""
    match action:
        case Write(path, text):
            return "write", {"filePath": path, "content": text}
        case Edit(path, old, new):
            return "edit", {"filePath": path, "oldString": old, "newString": new}
        case Shell(command):
            return "bash", {"command": command, "description": "Runs a command"}
        case Subagent(prompt):
            arguments = {"description": "Help out", "prompt": prompt, "subagent_type": "general"}
            return "task", arguments
        case _:
            return action.name, dict(action.arguments)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(each.get("text", "") for each in content or ())
