"""The shapes of what the reading addresses answer: those of ``--json``, and what is added."""

from __future__ import annotations

from holdfast.cli.output.json_schemas import (
    ASKED,
    CHECKPOINT,
    CHECKPOINT_FIELDS,
    EFFECT,
    OFFER,
    PROGRESS,
    QUESTION,
    SHAPES,
    TEXT,
    TRUTH,
    TYPED,
    UNKNOWN_CALL,
    WHOLE,
    Schema,
    maybe,
    record,
    several,
)


def with_optional(shape: Schema, **fields: Schema) -> Schema:
    """Return a shape with fields that are only sometimes there."""
    return {**shape, "properties": {**shape["properties"], **fields}}


CONDITIONS = (
    "running",
    "waiting",
    "failed",
    "unknown",
    "rolled back",
    "ended",
    "handed off",
    "stopped",
    "cut off",
)
"""What may be said of a session, and asked for."""

NEXT = maybe(TEXT)
_SESSION: dict[str, Schema] = {
    "agent_id": TEXT,
    "session_id": TEXT,
    "checkpoints": WHOLE,
    "head": CHECKPOINT,
    "progress": PROGRESS,
    "interrupts": WHOLE,
    "standing": maybe(TEXT),
    "conditions": several({"enum": list(CONDITIONS)}),
}
_PLACE = record(checkpoint_id=TEXT, agent_id=TEXT, session_id=TEXT)
SESSIONS = record(
    sessions=several(record(**_SESSION)),
    next=NEXT,
    total=maybe(WHOLE),
    agents=several(TEXT),
    frameworks=several(TEXT),
)
SESSION = record(
    session=record(
        **_SESSION,
        origin=maybe(_PLACE),
        holder=maybe(TEXT),
        exploration=maybe(record(name=TEXT)),
        undo=maybe(record(kind=TEXT, target=maybe(TEXT))),
    )
)
MARKERS = (
    "head",
    "failed",
    "rolled back",
    "handed off",
    "rollback",
    "fork",
    "interrupt",
    "compaction",
)
BRANCH = record(
    agent_id=TEXT,
    session_id=TEXT,
    checkpoints=WHOLE,
    more=WHOLE,
    kind={"enum": ["fork", "handoff", "exploration", "continued"]},
)
LOG = record(
    session=SHAPES["log"]["properties"]["session"],
    checkpoints=several(
        record(
            **CHECKPOINT_FIELDS,
            markers=several({"enum": list(MARKERS)}),
            progress=PROGRESS,
            files=maybe(record(files=WHOLE, added=maybe(WHOLE), removed=maybe(WHOLE))),
            forked_from=maybe(TEXT),
            messages={"type": "null"},
            lane_parent=maybe(TEXT),
            branch=maybe(BRANCH),
            forks_hidden=WHOLE,
        )
    ),
    next=NEXT,
)
CHECKPOINT_ANSWER = record(
    checkpoint=CHECKPOINT,
    progress=PROGRESS,
    workspace=maybe(
        record(tree_id=TEXT, files=WHOLE, bytes=WHOLE, workspace=TEXT, message=maybe(TEXT))
    ),
    interrupts=several(ASKED),
    offer=maybe(OFFER),
    sizes=record(logical=WHOLE, new=maybe(WHOLE)),
    parent=maybe(TEXT),
    children=several(
        record(checkpoint_id=TEXT, agent_id=TEXT, session_id=TEXT, step_name=maybe(TEXT))
    ),
    has=record(files=TRUTH, effects=TRUTH, tasks=TRUTH, context=TRUTH),
)
EFFECTS = record(
    checkpoint_id=TEXT,
    effects=several(
        {
            **record(
                **EFFECT["properties"],
                standing=TRUTH,
                text=TEXT,
                unfinished=TRUTH,
                unknown=TRUTH,
                running=TRUTH,
            ),
            "additionalProperties": TYPED,
        }
    ),
    next=NEXT,
    total=WHOLE,
)
PART: Schema = {
    **record(type=TEXT),
    "properties": {
        "type": TEXT,
        "cut": {**WHOLE, "description": "how long it is, where only its beginning is given"},
        "src": {**TEXT, "description": "the address of the whole"},
        "size": {**WHOLE, "description": "how many bytes a blob has"},
    },
    "additionalProperties": TYPED,
}
MESSAGES = record(
    checkpoint_id=TEXT,
    messages=several(record(role=TEXT, parts=several(PART), index=WHOLE, new=maybe(TRUTH))),
    total=WHOLE,
    next=NEXT,
    removed=WHOLE,
    lost=several(TEXT),
    pending=several(TEXT),
)
INBOX = record(
    approvals=several(
        {
            **QUESTION,
            "properties": {
                **QUESTION["properties"],
                "text": TEXT,
                "args_text": {**TEXT, "description": "args as JSON, to be edited and given back"},
                "kwargs_text": TEXT,
            },
        }
    ),
    unknown=several(with_optional(UNKNOWN_CALL, text=TEXT)),
    interrupts=several(ASKED),
    offers=several(OFFER),
    total=WHOLE,
    damaged=several(TEXT),
)
