"""Codex, against a model that speaks OpenAI's Responses API."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import count
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

_USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 15,
}
_SUBAGENTS = "multi_agent_v1"
_WAIT = "wait_agent"


class Codex(RealProgram):
    """Codex in a project that its user trusts, where hooks need no approval of their own."""

    name = "codex"
    command = "codex"
    flags: tuple[str, ...] = ("--dangerously-bypass-hook-trust",)

    _numbers = count(1)

    def configure(self) -> None:
        """Write config.toml; its model is one that Codex offers apply_patch to."""
        folder = self.home / ".codex"
        folder.mkdir()
        (folder / "config.toml").write_text(
            "# written by its user\n"
            'model = "gpt-5.5"\n'
            'model_provider = "scripted"\n'
            "check_for_update_on_startup = false  # not here\n\n"
            "[analytics]\nenabled = false\n\n"
            "[model_providers.scripted]\n"
            'name = "scripted"\n'
            f'base_url = "{self.url}/v1"\n'
            'wire_api = "responses"\n'
            'env_key = "SCRIPTED_KEY"\n'
            "request_max_retries = 0\nstream_max_retries = 0\n\n"
            f"[projects.{json.dumps(str(self.project))}]\n"
            'trust_level = "trusted"\n\n'
            "[notice.model_migrations]\n"
            '"gpt-5.5" = "gpt-6-sol"\n'  # it offers others no more
        )

    def variables(self) -> dict[str, str]:
        """Return the key of the model, and where Codex is at home."""
        return {"SCRIPTED_KEY": "none", "CODEX_HOME": str(self.home / ".codex")}

    def arguments(self, prompt: str, resume: Sequence[str] | None) -> list[str]:
        """Return ``codex exec [resume ID]``; what it may do is not asked for."""
        session = [] if resume is None or len(resume) < 3 else ["resume", resume[2]]
        return [
            *(self.program, "exec", *session, "--json", "--skip-git-repo-check"),
            *("--dangerously-bypass-approvals-and-sandbox", *self.flags),
            prompt,
        ]

    def said(self, path: str, body: Any) -> Said | None:
        """Return what the model is told; that a subagent is waited for is no turn of its own."""
        if not path.endswith("/responses"):
            return None
        found: Said = []
        started: set[str] = set()
        for item in body["input"]:
            kind = item["type"]
            if kind == "message":
                text = "".join(part.get("text", "") for part in item["content"])
                if item["role"] == "assistant":
                    found.append(("agent", text))
                elif item["role"] == "user" and not text.startswith("<"):
                    found.append(("user", text))
            elif kind in ("function_call", "custom_tool_call"):
                if item["name"] == _WAIT:
                    continue
                if item["name"] == "spawn_agent":
                    started.add(item["call_id"])
                given = item.get("input") or json.loads(item["arguments"])
                server = item.get("namespace", "")
                name = f"{server}__{item['name']}" if server.startswith("mcp__") else item["name"]
                found.append(("call", name, given))
            elif kind.endswith("_output") and item["call_id"] not in started:
                found.append(("result", item["output"]))
        return found

    def unfinished(self, said: Said, what: str) -> Said:
        """Return the call with what Codex says, right behind it, of one that has no output."""
        found: Said = []
        for each in said:
            if each[0] == "call" and what in str(each):
                found += [each, ("result", "aborted")]
            elif what not in str(each):
                found.append(each)
        return found

    def answer(self, path: str, body: Any, reply: Reply) -> tuple[str, bytes]:
        """Return a reply as events of a response."""
        last = body["input"][-1]
        spawned = _agent_of(body["input"]) if last["type"] == "function_call_output" else None
        if spawned is not None:
            items = [self._function(_WAIT, targets=[spawned], timeout_ms=60_000)]
        else:
            calls = [self._call(action, body["input"]) for action in reply.calls]
            items = [*_message(reply.text), *calls]
        number = f"resp_{next(self._numbers)}"
        events: list[Any] = [{"type": "response.created", "response": {"id": number}}]
        for index, item in enumerate(items):
            events.append(
                {"type": "response.output_item.done", "output_index": index, "item": item}
            )
        end = {"id": number, "usage": _USAGE}
        events.append({"type": "response.completed", "response": end})
        return "text/event-stream", sse(events, named=True)

    def _call(self, action: Action, before: Sequence[Any]) -> dict[str, Any]:
        match action:
            case Write(path, text):
                lines = [f"+{line}" for line in text.splitlines()]
                return self._patch(f"*** Add File: {path}", *lines)
            case Edit(path, old, new):
                return self._patch(f"*** Update File: {path}", *self._hunk(path, old, new))
            case Shell(command):
                return self._function("exec_command", cmd=command, yield_time_ms=30_000)
            case Subagent(prompt):
                return self._function("spawn_agent", message=prompt)
            case Tool("apply_patch", {"lines": lines}):
                return self._patch(*lines)
            case Tool("write_stdin", arguments):
                return self._function("write_stdin", session_id=_running(before), **arguments)
            case Tool(name, arguments):
                return self._function(name, **arguments)

    def _function(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        namespace = {"namespace": _SUBAGENTS} if name in ("spawn_agent", _WAIT) else {}
        if name.startswith("mcp__"):
            server, _, name = name.rpartition("__")
            namespace = {"namespace": server}
        return {
            "type": "function_call",
            "id": f"fc_{next(self._numbers)}",
            "call_id": f"call_{next(self._numbers)}",
            "name": name,
            **namespace,
            "arguments": json.dumps(arguments),
        }

    def _patch(self, *lines: str) -> dict[str, Any]:
        return {
            "type": "custom_tool_call",
            "id": f"ctc_{next(self._numbers)}",
            "call_id": f"call_{next(self._numbers)}",
            "name": "apply_patch",
            "input": "\n".join(("*** Begin Patch", *lines, "*** End Patch", "")),
        }

    def _hunk(self, path: str, old: str, new: str) -> list[str]:
        """Return the lines of a patch that changes those in which something stands."""
        found = []
        for line in (self.project / path).read_text().splitlines():
            if old in line:
                found += ["@@", f"-{line}", f"+{line.replace(old, new)}"]
        return found


def _message(text: str) -> list[dict[str, Any]]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"type": "message", "role": "assistant", "id": "msg_1", "content": content}
    return [message] if text else []


def _running(items: Sequence[Any]) -> int:
    """Return the number of the command that was left running last."""
    outputs = [item["output"] for item in items if item["type"] == "function_call_output"]
    found = re.findall(r"running with session ID (\d+)", "\n".join(outputs))
    return int(found[-1])


def _agent_of(items: Sequence[Any]) -> str | None:
    """Return the subagent that was started last, if nothing was done since."""
    names = {item["call_id"]: item["name"] for item in items if item["type"] == "function_call"}
    last = items[-1]
    if names.get(last["call_id"]) != "spawn_agent":
        return None
    agent: str | None = json.loads(last["output"]).get("agent_id")
    return agent
