"""Conversations as the programs of coding agents keep them: one module each, with its ``FORM``.

What the hook recorded of a program is a state with ``{"conversation": {"format", "entries"}}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from holdfast.core.conversation.forms import Form, Native

_MODULES = {
    "claude-code/1": "claude_code",
    "codex/1": "codex",
    "gemini-cli/1": "gemini_cli",
    "opencode/1": "opencode",
}
"""Which module reads a format; its ``FORM.extract`` is given the conversation, not the state."""


def kept_in(state: Any) -> tuple[Form, Native] | None:
    """Return the conversation that a hook has recorded, and its form; None if there is none."""
    kept = state.get("conversation") if isinstance(state, Mapping) else None
    named = kept.get("format") if isinstance(kept, Mapping) else None
    if not isinstance(named, str) or named not in _MODULES:
        return None
    form: Form = import_module(f"{__package__}.{_MODULES[named]}").FORM
    native = form.extract(kept)
    return None if native is None else (form, native)
