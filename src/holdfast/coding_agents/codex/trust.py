"""Whether Codex runs the hook: it runs those only that its user has approved.

Codex keeps the approvals in its config.toml, each bound to a hash of the hook. It is asked itself
for what waits, and told to write down what was approved: the file is its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.coding_agents.codex.app_server import AppServer, app_server
from holdfast.coding_agents.codex.rollout_files import home
from holdfast.coding_agents.hook_entries import command_of_ours
from holdfast.coding_agents.installing import hook_command
from holdfast.errors import CodingAgentError


@dataclass(frozen=True)
class Known:
    """A hook of ours, as Codex knows it."""

    key: str
    event: str
    hash: str
    command: list[str]
    is_trusted: bool
    is_enabled: bool


def known_hooks(file: Path, folder: Path) -> list[Known]:
    """Return the hooks of ours in a file that Codex has read; none if it does not read it."""
    with app_server(folder) as server:
        return _known(server, file, folder)


def trust(file: Path, folder: Path) -> list[str]:
    """Approve the hooks of ours in a file, and return the events; those of others are left alone.

    Only on the explicit word of the user, and only those that run this very Holdfast: a project may
    bring along a program of that name.
    """
    with app_server(folder) as server:
        found = _known(server, file, folder)
        if not found:
            raise CodingAgentError(f"{unread(file, folder)}; then try again")
        waiting = [hook for hook in found if not hook.is_trusted]
        own = hook_command("codex")
        others = [hook.command[0] for hook in waiting if hook.command[: len(own)] != own]
        if others:
            raise CodingAgentError(
                f"the hook in {file} runs {others[0]}, which is not this Holdfast: it was not "
                "approved. `holdfast hook install codex` brings it up to date"
            )
        if waiting:
            approved = {hook.key: {"trusted_hash": hook.hash} for hook in waiting}
            edit = {"keyPath": "hooks.state", "value": approved, "mergeStrategy": "upsert"}
            server.ask("config/batchWrite", {"edits": [edit], "reloadUserConfig": True})
        left = [hook.event for hook in _known(server, file, folder) if not hook.is_trusted]
        if left:
            raise CodingAgentError(
                f"Codex still does not trust the hook at {', '.join(left)}: approve it with /hooks"
            )
        return [hook.event for hook in waiting]


def unread(file: Path, folder: Path) -> str:
    """Return what to do where Codex does not read a file that has the hook."""
    if file.parent == home():
        why, remedy = "", "see that its config.toml does not say hooks = false under [features]"
    else:
        why = " (it does so only in projects that you trust)"
        remedy = f"start codex in {folder} and say that you trust it, or install with --user"
    return f"Codex does not read {file}{why}: {remedy}"


def _known(server: AppServer, file: Path, folder: Path) -> list[Known]:
    answer = server.ask("hooks/list", {"cwds": [str(folder)]})
    data = answer.get("data")
    found = []
    for each in data if isinstance(data, list) else []:
        hooks = each.get("hooks") if isinstance(each, Mapping) else None
        for hook in hooks if isinstance(hooks, list) else []:
            known = _of_ours(hook, file)
            if known is not None:
                found.append(known)
    return found


def _of_ours(hook: Any, file: Path) -> Known | None:
    match hook:
        case {
            "key": str(key),
            "currentHash": str(its_hash),
            "sourcePath": str(source),
            "command": str(command),
            "eventName": str(event),
            "trustStatus": str(status),
        }:
            pass
        case _:
            return None
    if os.path.realpath(source) != os.path.realpath(file):
        return None
    words = command_of_ours(command, "codex")
    if words is None:
        return None
    is_trusted = status in ("trusted", "managed")
    named = event[:1].upper() + event[1:]  # as hooks.json has it
    return Known(key, named, its_hash, words, is_trusted, hook.get("enabled") is not False)
