"""What a checkpoint says of its files, as commands show it."""

from __future__ import annotations

from typing import Any

from holdfast.errors import CheckpointIntegrityError
from holdfast.verbs import stored_values


def workspace_json(part: Any) -> dict[str, Any] | None:
    """Return what a checkpoint says of its files; None if it has none."""
    if part is None:
        return None
    try:
        return stored_values.fields_of("its workspace", part, _FILES, tuple(_FILES))
    except CheckpointIntegrityError:  # whoever wants the files is told; the rest can be read
        return None


_FILES: dict[str, stored_values.Kind] = {
    "tree_id": stored_values.TEXT,
    "files": stored_values.NUMBER,
    "bytes": stored_values.NUMBER,
    "workspace": stored_values.TEXT,
    "message": stored_values.MAYBE_TEXT,
}
