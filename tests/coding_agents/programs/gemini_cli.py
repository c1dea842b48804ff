"""Gemini CLI, which speaks Google's generateContent."""

from __future__ import annotations

import json
from collections.abc import Sequence
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

MODEL = "gemini-2.5-flash"
_OWN_WORDS = ("<session_context>", "[The previous response was interrupted before it completed.]")
"""How what the program itself says begins."""


class GeminiCli(RealProgram):
    """Run as ``gemini -p``."""

    name = "gemini-cli"
    command = "gemini"
    trusts = True
    """Whether the project is trusted without having been asked for."""

    def configure(self) -> None:
        folder = self.home / ".gemini"
        folder.mkdir(exist_ok=True)
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
            "privacy": {"usageStatisticsEnabled": False},
        }
        (folder / "settings.json").write_text(json.dumps(settings))

    def variables(self) -> dict[str, str]:
        return {
            "GOOGLE_GEMINI_BASE_URL": self.url,
            "GEMINI_API_KEY": "dummy",
            **({"GEMINI_CLI_TRUST_WORKSPACE": "true"} if self.trusts else {}),
        }

    def arguments(self, prompt: str, resume: Sequence[str] | None) -> list[str]:
        goes_on = [] if resume is None else list(resume[1:])
        return [self.program, *goes_on, "-p", prompt, "--yolo", "-m", MODEL, "-o", "stream-json"]

    def said(self, path: str, body: Any) -> Said | None:
        if "enerateContent" not in path or not body.get("tools"):
            return None
        found: Said = []
        answered = set()  # its own resume sends results more than once
        for content in body["contents"]:
            for part in content["parts"]:
                text = part.get("text", "")
                if text and not part.get("thought") and not text.startswith(_OWN_WORDS):
                    found.append(("user" if content["role"] == "user" else "agent", text))
                elif call := part.get("functionCall"):
                    found.append(("call", call["name"], call["args"]))
                elif (result := part.get("functionResponse")) and result["id"] not in answered:
                    answered.add(result["id"])
                    response = result["response"]
                    found.append(("result", response.get("output", response.get("error"))))
        return found

    def answer(self, path: str, body: Any, reply: Reply) -> tuple[str, bytes]:
        calls = [_call(self, each) for each in reply.calls]
        names = {each["name"] for tool in body["tools"] for each in tool["functionDeclarations"]}
        if not calls and "complete_task" in names:  # how a subagent says that it is done
            calls = [
                ("complete_task", {"response": reply.text, "result": {"response": reply.text}})
            ]
        parts: list[Any] = [{"text": reply.text}] if reply.text else []
        parts += [{"functionCall": {"name": name, "args": given}} for name, given in calls]
        answer = {
            "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 1, "totalTokenCount": 2},
        }
        if "stream" in path:
            return "text/event-stream", sse([answer])
        return "application/json", json.dumps(answer).encode()


def _call(program: RealProgram, action: Action) -> tuple[str, dict[str, Any]]:
    match action:
        case Write(path, text):
            return "write_file", {"file_path": str(program.project / path), "content": text}
        case Edit(path, old, new):
            given = {"old_string": old, "new_string": new, "instruction": "Change it."}
            return "replace", {"file_path": str(program.project / path), **given}
        case Shell(command):
            return "run_shell_command", {"command": command}
        case Subagent(prompt):
            return "invoke_agent", {"agent_name": "generalist", "prompt": prompt}
        case Tool(name, arguments):
            return name, dict(arguments)
