"""What a framework keeps for itself in its state: versions, ids, and how it holds messages."""

from __future__ import annotations

import re

from holdfast.core.diff import Diff, is_below
from holdfast.model import Framework

MESSAGES = "$.values.messages"
"""Where a LangGraph thread holds its messages."""
_OWN_PARTS = "checkpoint|parent|sealed|metadata|config|parent_config|created_at"
_OF_LANGGRAPH = re.compile(rf"\$\.(?:{_OWN_PARTS})(?![\w])|\$\.values(?:\.__|\['(?:branch:to:|__))")
"""Paths of versions, ids, and channels that lead to nodes."""


def without_plumbing(changes: Diff, framework: Framework, has_messages: bool) -> Diff:
    """Return what changed in a session but for what its framework keeps for itself.

    Of a LangGraph thread that leaves its values; of others, whose messages are shown apart, all
    that is beside the state.
    """
    kept = Diff()
    for name in ("added", "removed", "changed", "moved"):
        for path, value in getattr(changes, name).items():
            if not _is_plumbing(path, framework, has_messages):
                getattr(kept, name)[path] = value
    return kept


def _is_plumbing(path: str, framework: Framework, has_messages: bool) -> bool:
    if framework is Framework.LANGGRAPH:
        return _OF_LANGGRAPH.match(path) is not None
    return has_messages and is_below(path, "$")
