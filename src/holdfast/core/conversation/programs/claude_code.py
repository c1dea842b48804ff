"""Claude Code's transcripts: the lines that Claude's Agent SDK keeps too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from holdfast.core.conversation.forms import Native
from holdfast.core.conversation.frameworks import claude_agent_sdk


def _extract(conversation: Any) -> Native | None:
    native = claude_agent_sdk.FORM.extract(conversation)
    # The program's own system prompt is no part of what was said, and goes to no other agent.
    return None if native is None else replace(native, system=())


FORM = replace(claude_agent_sdk.FORM, framework="claude-code", extract=_extract)
