"""The tools that are offered: what a model reads of them, and what they take and give."""

from __future__ import annotations

from typing import Any

MOST_CHECKPOINTS = 1000
MOST_PATHS = 200
"""In a list of files: a model has to read it."""
LONGEST_TEXT = 50_000
LONGEST_NAME = 500
_LONGEST_ID = 1100
_LONGEST_NOTE = 20_000

Schema = dict[str, Any]


def _text(description: str, most: int) -> Schema:
    return {"type": "string", "description": description, "minLength": 1, "maxLength": most}


def _checkpoint(description: str) -> Schema:
    ways = "its id or the beginning of it, its name, @ (the newest) or @~2 (two before it)"
    return _text(f"{description}: {ways}", _LONGEST_ID)


def _object(required: list[str] | None = None, **properties: Schema) -> Schema:
    """Return the schema of arguments: no others are taken."""
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def _given(**properties: Schema) -> Schema:
    """Return the schema of a result, all of which is always there."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def _tool(
    name: str,
    title: str,
    description: str,
    takes: Schema,
    gives: Schema,
    *,
    reads: bool = False,
    destroys: bool = False,
    is_repeatable: bool = False,
) -> dict[str, Any]:
    return {
        "name": name,
        "title": title,
        "description": description,
        "inputSchema": takes,
        "outputSchema": gives,
        "annotations": {
            "title": title,
            "readOnlyHint": reads,
            "destructiveHint": destroys,
            "idempotentHint": reads or is_repeatable,
            "openWorldHint": False,
        },
    }


def _is(kind: str, description: str = "") -> Schema:
    return {"type": kind, **({"description": description} if description else {})}


def _maybe(kind: str, description: str = "") -> Schema:
    return {"type": [kind, "null"], **({"description": description} if description else {})}


_ID = _is("string", "the id of the checkpoint")
_SESSION = _is("string", "the session it belongs to")
_PATHS: Schema = {"type": "array", "items": {"type": "string"}}
_MORE = _is("integer", f"how many paths are not listed: of each list the first {MOST_PATHS} are")
_CHANGES: Schema = {
    "type": ["object", "null"],
    "description": "by path; null if neither checkpoint has files",
    "properties": {
        **dict.fromkeys(("added", "removed", "modified", "mode", "touched"), _PATHS),
        "renamed": {"type": "array", "items": _PATHS},
        "text": _maybe("string", f"the changed lines, the first {LONGEST_TEXT:,} characters"),
        "more": _MORE,
    },
}

TOOLS = (
    _tool(
        "checkpoint",
        "Keep a checkpoint",
        "Keep all files of the workspace as they are now, under a short name. Cheap: only what "
        "changed is stored. Call it before anything risky and after anything that works.",
        _object(
            ["name"],
            name=_text("what it is called, in a few words on one line", LONGEST_NAME),
            note=_text("what is worth knowing about this point", _LONGEST_NOTE),
        ),
        _given(
            checkpoint_id=_ID,
            session_id=_SESSION,
            files=_is("integer", "how many files it holds"),
            new_bytes=_is("integer", "how many bytes were new"),
        ),
    ),
    _tool(
        "log",
        "List checkpoints",
        "List the checkpoints of the current session, the newest first: those you made and those "
        "that were recorded after each step.",
        _object(
            limit={
                "type": "integer",
                "description": "how many, at most",
                "minimum": 1,
                "maximum": MOST_CHECKPOINTS,
                "default": 20,
            }
        ),
        _given(
            session_id=_SESSION,
            checkpoints={
                "type": "array",
                "items": _given(
                    checkpoint_id=_ID,
                    step_name=_maybe("string", "what it is called"),
                    created_at=_is("string"),
                    parent_id=_maybe("string", "the checkpoint before it"),
                ),
            },
        ),
        reads=True,
    ),
    _tool(
        "diff",
        "Compare checkpoints",
        "Tell what changed in the files from one checkpoint to another, or to the files as they "
        "are now.",
        _object(
            ["old"],
            old=_checkpoint("the checkpoint to compare with"),
            new=_checkpoint("the later one; left out, the files as they are now"),
            text={
                "type": "boolean",
                "description": "whether to give the changed lines too",
                "default": False,
            },
        ),
        {
            "type": "object",
            "properties": {
                "from": _ID,
                "to": _maybe("string", "null for the files as they are now"),
                "files": _CHANGES,
            },
            "required": ["from", "to", "files"],
        },
        reads=True,
    ),
    _tool(
        "rollback",
        "Roll the files back",
        "Put all files of the workspace back to a checkpoint, also what shell commands made, "
        "changed or deleted. They are kept first as they are: rolling back to the checkpoint "
        '"before rollback" undoes it. Your conversation goes on: read files again that changed.',
        _object(["checkpoint"], checkpoint=_checkpoint("where to go back to")),
        _given(
            checkpoint_id=_is("string", "the id of the newest checkpoint now"),
            target=_is("string", "the checkpoint whose files are here now"),
            written={**_PATHS, "description": "files that are other than you remember them"},
            removed={**_PATHS, "description": "files that are not there any more"},
            more=_MORE,
            note=_is("string", "what to do about it"),
        ),
        destroys=True,
        is_repeatable=True,
    ),
    _tool(
        "fork",
        "Try another way",
        "Begin a new session at a checkpoint, put its files into the workspace, and go on from "
        "there. The session before keeps all its checkpoints, among them the files as they were.",
        _object(
            ["checkpoint", "name"],
            checkpoint=_checkpoint("where to begin"),
            name=_text("what the new session is called", LONGEST_NAME),
        ),
        _given(
            checkpoint_id=_ID,
            session_id=_is("string", "the new session"),
            left=_is("string", "the session before"),
            current=_is("string", "the session that goes on: where your steps are recorded"),
            note=_is("string", "which session what you call next is about, and why"),
        ),
        destroys=True,
    ),
    _tool(
        "rewind",
        "Prepare going back with the conversation",
        "Put all files back to a checkpoint, and write the conversation up to there as a new "
        "session of this program. You cannot switch to it yourself: tell the user the command "
        "that is returned, and do nothing more. Files and conversation as they are now are kept.",
        _object(["checkpoint"], checkpoint=_checkpoint("where to go back to")),
        _given(
            command=_is("string", "what the user is to run to go on from there"),
            session_id=_is("string", "the new session"),
            checkpoint_id=_ID,
            target=_is("string", "the checkpoint whose files are here now"),
            prompt=_maybe("string", "what the user had asked at that point, to be worded anew"),
            written={**_PATHS, "description": "files that are other than you remember them"},
            removed={**_PATHS, "description": "files that are not there any more"},
            more=_MORE,
        ),
        destroys=True,
    ),
)
SCHEMAS = {tool["name"]: tool["inputSchema"] for tool in TOOLS}
