"""What only the chats of Gemini CLI say of an event: whose call it is, and what was said last.

It tells its hooks nothing of subagents. While one works, the main chat waits for it, and the
subagent's own chat, in a folder named as the session, ends with a message of the model whose calls
are not written yet.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace

from holdfast.coding_agents.json_lines import JsonLines
from holdfast.coding_agents.told import Moment, Told
from holdfast.core.conversation.programs.gemini_chat import messages_in, text_in

_PLAIN = re.compile("[A-Za-z0-9_-]{1,200}")
_STARTS = ("invoke_agent",)
"""Tools that only the main agent has."""
_MOST = 64


def completed(told: Told, files: JsonLines) -> Told:
    """Return an event with what its chat says of it."""
    if told.moment is Moment.END:
        return _with_last_message(told, files)
    if told.moment is Moment.CALL and told.tool not in _STARTS:
        return _with_subagent(told, files)
    return told


def _with_last_message(told: Told, files: JsonLines) -> Told:
    """Return an end with its last message: the program tells all that was said in the turn."""
    entries = files.read(told.transcript) if told.transcript else None
    last = next(messages_in(entries or []), {})
    text = text_in(last.get("content")).strip() if last.get("type") == "gemini" else ""
    is_of_turn = bool(text) and (told.last_message or "").rstrip().endswith(text)
    return replace(told, last_message=text) if is_of_turn else told


def _with_subagent(told: Told, files: JsonLines) -> Told:
    """Return a call with the subagent that made it, if one did, and with the subagent's chat.

    A call that the main agent makes beside a working subagent is taken for the subagent's; of
    several subagents the one that has waited for longest is taken.
    """
    waiting = _open_since(told.transcript, files)
    if told.transcript is None or waiting is None or not _PLAIN.fullmatch(told.session):
        return told
    folder = os.path.join(os.path.dirname(told.transcript), told.session)
    working = []
    for name in _chats(folder):
        since = _open_since(os.path.join(folder, name), files)
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


def _open_since(chat: str | None, files: JsonLines) -> str | None:
    """Return when the message was written whose calls a chat waits for; None if there is none."""
    last = next(messages_in((files.read(chat) if chat else None) or []), {})
    time = last.get("timestamp")
    is_open = last.get("type") == "gemini" and "toolCalls" not in last
    return time if is_open and isinstance(time, str) else None
