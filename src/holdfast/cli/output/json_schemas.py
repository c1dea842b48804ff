"""The shapes of what ``--json`` prints, as JSON Schemas; they are published with the pages.

A field may be added to a shape; none is removed or gets another meaning. Values of a state are in
the typed form of ``holdfast.core.json_form``: plain JSON, and ``{"$type": …, "value": …}`` for the
rest.
"""

from __future__ import annotations

from typing import Any, get_args

from holdfast.cli.access.session_status import Standing
from holdfast.model import FIELDS

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
TRUTH: Schema = {"type": "boolean"}
TIME: Schema = {"type": "string", "format": "date-time"}
TYPED: Schema = {"description": "a value in the typed form"}


def maybe(schema: Schema) -> Schema:
    """Return the schema of what may be null."""
    return {"anyOf": [schema, {"type": "null"}]}


def several(schema: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": schema}


def mapping(schema: Schema) -> Schema:
    """Return the schema of an object whose names are not known."""
    return {"type": "object", "additionalProperties": schema}


def record(**fields: Schema) -> Schema:
    """Return the schema of an object that has all of these fields."""
    names = {name.removesuffix("_"): schema for name, schema in fields.items()}
    return {"type": "object", "properties": names, "required": list(names)}


def one_of(*schemas: Schema) -> Schema:
    """Return the schema of what is one of several."""
    return {"anyOf": list(schemas)}


CHECKPOINT_FIELDS: dict[str, Schema] = {field.name: dict(field.type.schema) for field in FIELDS}
CHECKPOINT = record(**CHECKPOINT_FIELDS)
PROGRESS = maybe(record(done=WHOLE, total=WHOLE))
MARKER: Schema = {"enum": ["head", "failed", "rolled back", "handed off"]}
TASK: Schema = {
    **record(id=TEXT, name=TEXT, status=TEXT),
    "additionalProperties": TYPED,
}
EFFECT: Schema = {
    **record(id=TEXT, index=WHOLE, tool=TEXT, kind=TEXT, status=TEXT),
    "additionalProperties": TYPED,
}
MESSAGE = record(role=TEXT, text=TEXT, calls=several(record(name=TEXT, arguments=TEXT)))
SPOKEN = record(added=several(MESSAGE), removed=several(MESSAGE))
_CHANGES: dict[str, Schema] = {
    "added": mapping(TYPED),
    "removed": mapping(TYPED),
    "changed": mapping(record(old=TYPED, new=TYPED)),
    "moved": mapping(TEXT),
}
FILES = record(
    added=several(TEXT),
    removed=several(TEXT),
    modified=several(TEXT),
    renamed=several(several(TEXT)),
    mode=several(TEXT),
    touched=several(TEXT),
    text=maybe(TEXT),
)
SCOPE: Schema = {"enum": ["project", "local", "user"]}
HOOK_STANDING = record(
    program=TEXT,
    installed=TRUTH,
    works=TRUTH,
    in_use=TRUTH,
    places=several(record(scope=SCOPE, path=TEXT, command=maybe(several(TEXT)))),
    last_event=maybe(record(name=TEXT, at=TIME, count=maybe(WHOLE))),
    faults=several(TEXT),
    advice=several(TEXT),
    problems=several(record(text=TEXT, first=TIME, last=TIME, count=WHOLE)),
)
QUESTION = record(
    id=TEXT,
    agent_id=TEXT,
    session_id=TEXT,
    tool=TEXT,
    kind=TEXT,
    args=several(TYPED),
    kwargs=mapping(TYPED),
    asked_at=TIME,
    expires_at=maybe(TIME),
)
UNKNOWN_CALL = record(
    id=TEXT,
    agent_id=TEXT,
    session_id=TEXT,
    tool=TEXT,
    kind=TEXT,
    args=several(TYPED),
    kwargs=mapping(TYPED),
    started_at=TIME,
    reason=maybe(TEXT),
)
OFFER = record(
    checkpoint_id=TEXT,
    from_agent=TEXT,
    from_session=TEXT,
    to_agent=TEXT,
    contract=maybe(TEXT),
    schema=maybe({"type": "object"}),
    offered_at=TIME,
    expires_at=maybe(TIME),
    attempts=WHOLE,
    worker=maybe(TEXT),
    claimed_until=maybe(TIME),
    session_id=maybe(TEXT),
    outcome=maybe(TEXT),
    reason=maybe(TEXT),
    open=TRUTH,
)
_WENT_BACK = record(
    agent_id=TEXT,
    session_id=TEXT,
    from_=TEXT,
    target=TEXT,
    checkpoint_id=maybe(TEXT),
    dry_run=TRUTH,
    changes=WHOLE,
    files=maybe(record(written=several(TEXT), removed=several(TEXT))),
    workspace=maybe(TEXT),
    undone=several(TEXT),
    remaining=several(TEXT),
    calls=mapping(TEXT),
    problems=mapping(TEXT),
)
_REWOUND = record(
    agent_id=TEXT,
    session_id=TEXT,
    target=TEXT,
    from_=TEXT,
    new_session_id=maybe(TEXT),
    checkpoint_id=maybe(TEXT),
    dry_run=TRUTH,
    files=maybe(record(written=several(TEXT), removed=several(TEXT))),
    workspace=maybe(TEXT),
    conversation=maybe(record(path=maybe(TEXT), entries=WHOLE)),
    note=maybe(TEXT),
    prompt=maybe(TEXT),
    resume=maybe(several(TEXT)),
)
_DECIDED = record(call=QUESTION, allowed=TRUTH, reason=maybe(TEXT))

_ERROR = record(code=WHOLE, kind=TEXT, message=TEXT)
_ERROR["properties"] |= {
    "suggestions": several(TEXT),
    "unless": {**TEXT, "description": "the option with which it is done all the same"},
}

ASKED = record(
    id=maybe(TEXT),
    agent_id=TEXT,
    session_id=TEXT,
    checkpoint_id=TEXT,
    node=maybe(TEXT),
    value=TYPED,
    resume=TEXT,
)
"""A question that a LangGraph thread waits at."""

SHAPES: dict[str, Schema] = {
    "init": record(url=TEXT, created=TRUTH, checkpoints=WHOLE),
    "status": record(
        url=TEXT,
        source=TEXT,
        checkpoints=WHOLE,
        sessions=WHOLE,
        stored_bytes=WHOLE,
        head=maybe(CHECKPOINT),
        pending=WHOLE,
        offers=mapping(WHOLE),
        waiting=record(
            unknown=several(UNKNOWN_CALL),
            approvals=several(QUESTION),
            interrupts=several(ASKED),
            offers=mapping(WHOLE),
        ),
    ),
    "demo": record(said=several(TEXT)),
    "doctor": record(
        ok=TRUTH,
        checks=several(
            record(name=TEXT, verdict={"enum": ["ok", "warning", "failed"]}, detail=TEXT)
        ),
    ),
    "sessions": record(
        sessions=several(
            record(
                agent_id=TEXT,
                session_id=TEXT,
                checkpoints=WHOLE,
                head=CHECKPOINT,
                progress=PROGRESS,
                interrupts=WHOLE,
            )
        )
    ),
    "log": record(
        session=maybe(
            record(
                agent_id=TEXT,
                session_id=TEXT,
                checkpoints=WHOLE,
                standing=maybe({"enum": list(get_args(Standing))}),
            )
        ),
        checkpoints=several(
            record(
                **CHECKPOINT_FIELDS,
                markers=several(MARKER),
                progress=PROGRESS,
                files=maybe(record(files=WHOLE, added=maybe(WHOLE), removed=maybe(WHOLE))),
                forked_from=maybe(TEXT),
                messages=maybe(SPOKEN),
            )
        ),
    ),
    "show": one_of(
        record(
            checkpoint=CHECKPOINT,
            progress=PROGRESS,
            state=TYPED,
            context=TYPED,
            tasks=several(TASK),
            effects=several(EFFECT),
            workspace=maybe(
                record(tree_id=TEXT, files=WHOLE, bytes=WHOLE, workspace=TEXT, message=maybe(TEXT))
            ),
            messages=several(MESSAGE),
            interrupts=several(ASKED),
        ),
        record(checkpoint_id=TEXT, path=TEXT, value=TYPED),
        record(checkpoint_id=TEXT, messages=several(MESSAGE)),
    ),
    "diff": record(
        from_=TEXT,
        to=maybe(TEXT),
        **_CHANGES,
        messages=maybe(SPOKEN),
        files=maybe(FILES),
    ),
    "replay": record(
        session_id=TEXT,
        steps=several(
            record(
                checkpoint=CHECKPOINT,
                calls=several(EFFECT),
                changes=maybe(record(**_CHANGES)),
                tree_id=maybe(TEXT),
                unfinished=TRUTH,
            )
        ),
    ),
    "bisect": record(
        session_id=TEXT,
        first_bad=maybe(CHECKPOINT),
        suspects=several(TEXT),
        tested=several(record(checkpoint_id=TEXT, verdict={"enum": ["good", "bad", "skip"]})),
    ),
    "watch": {
        "description": "one object on each line",
        **one_of(
            record(
                kind={"const": "checkpoint"},
                new=TRUTH,
                checkpoint=record(**CHECKPOINT_FIELDS, progress=PROGRESS),
            ),
            record(kind={"const": "approval"}, id=TEXT, session_id=TEXT, call=TEXT),
        ),
    },
    "rollback": _WENT_BACK,
    "rewind": _REWOUND,
    "undo": one_of(_WENT_BACK, _REWOUND),
    "fork": record(
        checkpoint_id=TEXT,
        agent_id=TEXT,
        session_id=TEXT,
        parent_id=TEXT,
        directory=maybe(TEXT),
        linked=TRUTH,
    ),
    "adopt": record(
        agent_id=TEXT,
        session_id=TEXT,
        from_=TEXT,
        adopted=TEXT,
        checkpoint_id=maybe(TEXT),
        dry_run=TRUTH,
        changes=WHOLE,
        files=maybe(record(written=several(TEXT), removed=several(TEXT))),
        workspace=maybe(TEXT),
    ),
    "wrap": record(
        agent_id=TEXT,
        session_id=TEXT,
        exit_code=WHOLE,
        checkpoints=several(TEXT),
        problems=several(TEXT),
        warnings=several(TEXT),
    ),
    "ui": record(url=TEXT, store=TEXT, read_only=TRUTH, key=maybe(TEXT)),
    "snapshot": record(
        checkpoint_id=TEXT,
        session_id=TEXT,
        tree_id=TEXT,
        files=WHOLE,
        bytes=WHOLE,
        new_bytes=WHOLE,
        skipped=several(record(path=TEXT, reason=TEXT)),
    ),
    "restore": record(
        directory=TEXT,
        tree_id=TEXT,
        dry_run=TRUTH,
        undo_tree=maybe(TEXT),
        written=maybe(several(TEXT)),
        removed=several(TEXT),
        touched=several(TEXT),
        late=several(TEXT),
        stayed=several(TEXT),
        held=several(TEXT),
    ),
    "tasks": record(checkpoint_id=TEXT, progress=PROGRESS, tasks=several(TASK)),
    "effects": record(session_id=TEXT, effects=several(EFFECT)),
    "pending": record(pending=several(QUESTION), interrupts=several(ASKED)),
    "approve": _DECIDED,
    "deny": _DECIDED,
    "resolve": record(call=UNKNOWN_CALL, outcome={"enum": ["done", "failed", "retry"]}),
    "handoff": record(offer=OFFER),
    "continue": record(
        checkpoint_id=TEXT,
        agent_id=TEXT,
        session_id=TEXT,
        parent_id=TEXT,
        framework=TEXT,
        lost=several(TEXT),
        unknown=several(TEXT),
    ),
    "inbox": record(agent_id=TEXT, offers=several(OFFER)),
    "stats": record(
        store=TEXT,
        checkpoints=WHOLE,
        sessions=WHOLE,
        chunks=WHOLE,
        logical_bytes=WHOLE,
        stored_bytes=WHOLE,
        sharing=NUMBER,
    ),
    "verify": record(
        ok=TRUTH,
        checkpoints=WHOLE,
        damaged=several(record(checkpoint_id=TEXT, reason=TEXT)),
        loose=several(record(checkpoint_id=TEXT, reason=TEXT)),
    ),
    "prune": record(dry_run=TRUTH, kept=WHOLE, removed=several(CHECKPOINT)),
    "gc": record(
        dry_run=TRUTH,
        chunks=WHOLE,
        bytes=WHOLE,
        waiting_chunks=WHOLE,
        waiting_bytes=WHOLE,
        grace_seconds=NUMBER,
    ),
    "export": record(path=TEXT, checkpoints=WHOLE, chunks=WHOLE, notes=WHOLE, bytes=WHOLE),
    "import": one_of(
        record(checkpoints=WHOLE, skipped=WHOLE, notes=WHOLE, problems=several(TEXT)),
        record(threads=WHOLE, checkpoints=WHOLE, skipped=WHOLE, writes=WHOLE),
    ),
    "migrate": record(store=TEXT, from_=maybe(WHOLE), to=WHOLE, migrated=TRUTH),
    "hook": one_of(
        record(
            action={"const": "record"},
            checkpoint_id=maybe(TEXT),
            session_id=TEXT,
            step_name=TEXT,
            files=maybe(WHOLE),
            tree_id=maybe(TEXT),
        ),
        record(
            action={"const": "install"},
            program=TEXT,
            scope=SCOPE,
            path=TEXT,
            changed=TRUTH,
            command=several(TEXT),
            trusted=maybe(several(TEXT)),
            advice=several(TEXT),
        ),
        record(
            action={"const": "uninstall"},
            program=TEXT,
            path=TEXT,
            changed=TRUTH,
            removed=several(TEXT),
            left=several(TEXT),
        ),
        record(action={"const": "offer"}, programs=several(TEXT)),
        record(
            action={"const": "status"},
            ok=TRUTH,
            store_problem=maybe(TEXT),
            programs=several(HOOK_STANDING),
        ),
    ),
    "completion": record(shell=TEXT, script=TEXT),
    "error": record(error=_ERROR),
}
"""By the name of the command; ``error`` is what any of them prints to standard error instead."""


def document(name: str) -> Schema:
    """Return the schema of a shape, as a document of its own."""
    title = "what goes wrong" if name == "error" else f"holdfast {name} --json"
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **SHAPES[name],
    }
