"""Whose call an event is about: Gemini CLI tells its hooks nothing of subagents.

While one works, the main chat waits for it, and the subagent's own chat, in a folder named as the
session, ends with a message of the model whose calls are not written yet.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.coding_agents.json_lines import JsonLines, newest
from holdfast.coding_agents.told import Moment, Told

_PLAIN = re.compile("[A-Za-z0-9_-]{1,200}")
_STARTS = ("invoke_agent",)
"""Tools that only the main agent has."""
_MOST = 64


def completed(told: Told, files: JsonLines) -> Told:
    """Return an event of a call with the subagent that made it, if one did, and with its chat.

    A call that the main agent makes beside a working subagent is taken for the subagent's; of
    several subagents the one that has waited for longest is taken.
    """
    if told.moment is not Moment.CALL or told.tool in _STARTS or told.transcript is None:
        return told
    waiting = _open_since(told.transcript)
    if waiting is None or not _PLAIN.fullmatch(told.session):
        return told
    folder = os.path.join(os.path.dirname(told.transcript), told.session)
    working = []
    for name in _chats(folder):
        since = _open_since(os.path.join(folder, name))
        if since is not None and since >= waiting:
            working.append((since, name))
    if not working:
        return told
    _, name = min(working)
    chat = os.path.join(folder, name)
    return replace(told, subagent_id=name.removesuffix(".jsonl"), transcript=chat)


def _chats(folder: str) -> list[str]:
    try:
        names = os.listdir(folder)
    except (OSError, ValueError):
        return []
    chats = (name for name in names if name.endswith(".jsonl"))
    return sorted(name for name in chats if _PLAIN.fullmatch(name[:-6]))[-_MOST:]


def _open_since(chat: str) -> str | None:
    """Return when the message was written whose calls a chat waits for; None if there is none."""
    last = next(filter(_is_message, newest(chat)), None)
    if last is None or last.get("type") != "gemini" or "toolCalls" in last:
        return None
    time = last.get("timestamp")
    return time if isinstance(time, str) else None


def _is_message(entry: Any) -> bool:
    return isinstance(entry, Mapping) and isinstance(entry.get("id"), str)
