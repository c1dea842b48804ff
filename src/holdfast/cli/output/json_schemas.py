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


def _maybe(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _list(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def _map(schema: Schema) -> Schema:
    return {"type": "object", "additionalProperties": schema}


def _record(**fields: Schema) -> Schema:
    names = {name.removesuffix("_"): schema for name, schema in fields.items()}
    return {"type": "object", "properties": names, "required": list(names)}


def _one_of(*schemas: Schema) -> Schema:
    return {"anyOf": list(schemas)}


_CHECKPOINT_FIELDS: dict[str, Schema] = {field.name: dict(field.type.schema) for field in FIELDS}
CHECKPOINT = _record(**_CHECKPOINT_FIELDS)
PROGRESS = _maybe(_record(done=WHOLE, total=WHOLE))
MARKER: Schema = {"enum": ["head", "failed", "rolled back", "handed off"]}
TASK: Schema = {
    **_record(id=TEXT, name=TEXT, status=TEXT),
    "additionalProperties": TYPED,
}
EFFECT: Schema = {
    **_record(id=TEXT, index=WHOLE, tool=TEXT, kind=TEXT, status=TEXT),
    "additionalProperties": TYPED,
}
MESSAGE = _record(role=TEXT, text=TEXT, calls=_list(_record(name=TEXT, arguments=TEXT)))
SPOKEN = _record(added=_list(MESSAGE), removed=_list(MESSAGE))
_CHANGES: dict[str, Schema] = {
    "added": _map(TYPED),
    "removed": _map(TYPED),
    "changed": _map(_record(old=TYPED, new=TYPED)),
    "moved": _map(TEXT),
}
FILES = _record(
    added=_list(TEXT),
    removed=_list(TEXT),
    modified=_list(TEXT),
    renamed=_list(_list(TEXT)),
    mode=_list(TEXT),
    touched=_list(TEXT),
    text=_maybe(TEXT),
)
SCOPE: Schema = {"enum": ["project", "local", "user"]}
HOOK_STANDING = _record(
    program=TEXT,
    installed=TRUTH,
    works=TRUTH,
    in_use=TRUTH,
    places=_list(_record(scope=SCOPE, path=TEXT, command=_maybe(_list(TEXT)))),
    last_event=_maybe(_record(name=TEXT, at=TIME, count=_maybe(WHOLE))),
    faults=_list(TEXT),
    advice=_list(TEXT),
    problems=_list(_record(text=TEXT, first=TIME, last=TIME, count=WHOLE)),
)
QUESTION = _record(
    id=TEXT,
    agent_id=TEXT,
    session_id=TEXT,
    tool=TEXT,
    kind=TEXT,
    args=_list(TYPED),
    kwargs=_map(TYPED),
    asked_at=TIME,
    expires_at=_maybe(TIME),
)
UNKNOWN_CALL = _record(
    id=TEXT,
    agent_id=TEXT,
    session_id=TEXT,
    tool=TEXT,
    kind=TEXT,
    args=_list(TYPED),
    kwargs=_map(TYPED),
    started_at=TIME,
    reason=_maybe(TEXT),
)
OFFER = _record(
    checkpoint_id=TEXT,
    from_agent=TEXT,
    from_session=TEXT,
    to_agent=TEXT,
    contract=_maybe(TEXT),
    schema=_maybe({"type": "object"}),
    offered_at=TIME,
    expires_at=_maybe(TIME),
    attempts=WHOLE,
    worker=_maybe(TEXT),
    claimed_until=_maybe(TIME),
    session_id=_maybe(TEXT),
    outcome=_maybe(TEXT),
    reason=_maybe(TEXT),
    open=TRUTH,
)
_WENT_BACK = _record(
    agent_id=TEXT,
    session_id=TEXT,
    from_=TEXT,
    target=TEXT,
    checkpoint_id=_maybe(TEXT),
    dry_run=TRUTH,
    changes=WHOLE,
    files=_maybe(_record(written=_list(TEXT), removed=_list(TEXT))),
    workspace=_maybe(TEXT),
    undone=_list(TEXT),
    remaining=_list(TEXT),
    problems=_map(TEXT),
)
_REWOUND = _record(
    agent_id=TEXT,
    session_id=TEXT,
    target=TEXT,
    from_=TEXT,
    new_session_id=_maybe(TEXT),
    checkpoint_id=_maybe(TEXT),
    dry_run=TRUTH,
    files=_maybe(_record(written=_list(TEXT), removed=_list(TEXT))),
    workspace=_maybe(TEXT),
    conversation=_maybe(_record(path=_maybe(TEXT), entries=WHOLE)),
    note=_maybe(TEXT),
    prompt=_maybe(TEXT),
    resume=_maybe(_list(TEXT)),
)
_DECIDED = _record(call=QUESTION, allowed=TRUTH, reason=_maybe(TEXT))

_ERROR = _record(code=WHOLE, kind=TEXT, message=TEXT)
_ERROR["properties"]["suggestions"] = _list(TEXT)

ASKED = _record(
    id=_maybe(TEXT),
    agent_id=TEXT,
    session_id=TEXT,
    checkpoint_id=TEXT,
    node=_maybe(TEXT),
    value=TYPED,
    resume=TEXT,
)
"""A question that a LangGraph thread waits at."""

SHAPES: dict[str, Schema] = {
    "init": _record(url=TEXT, created=TRUTH, checkpoints=WHOLE),
    "status": _record(
        url=TEXT,
        source=TEXT,
        checkpoints=WHOLE,
        sessions=WHOLE,
        stored_bytes=WHOLE,
        head=_maybe(CHECKPOINT),
        pending=WHOLE,
        offers=_map(WHOLE),
        waiting=_record(
            unknown=_list(UNKNOWN_CALL),
            approvals=_list(QUESTION),
            interrupts=_list(ASKED),
            offers=_map(WHOLE),
        ),
    ),
    "demo": _record(said=_list(TEXT)),
    "doctor": _record(
        ok=TRUTH,
        checks=_list(
            _record(name=TEXT, verdict={"enum": ["ok", "warning", "failed"]}, detail=TEXT)
        ),
    ),
    "sessions": _record(
        sessions=_list(
            _record(
                agent_id=TEXT,
                session_id=TEXT,
                checkpoints=WHOLE,
                head=CHECKPOINT,
                progress=PROGRESS,
                interrupts=WHOLE,
            )
        )
    ),
    "log": _record(
        session=_maybe(
            _record(
                agent_id=TEXT,
                session_id=TEXT,
                checkpoints=WHOLE,
                standing=_maybe({"enum": list(get_args(Standing))}),
            )
        ),
        checkpoints=_list(
            _record(
                **_CHECKPOINT_FIELDS,
                markers=_list(MARKER),
                progress=PROGRESS,
                files=_maybe(_record(files=WHOLE, added=_maybe(WHOLE), removed=_maybe(WHOLE))),
                forked_from=_maybe(TEXT),
                messages=_maybe(SPOKEN),
            )
        ),
    ),
    "show": _one_of(
        _record(
            checkpoint=CHECKPOINT,
            progress=PROGRESS,
            state=TYPED,
            context=TYPED,
            tasks=_list(TASK),
            effects=_list(EFFECT),
            workspace=_maybe(
                _record(
                    tree_id=TEXT, files=WHOLE, bytes=WHOLE, workspace=TEXT, message=_maybe(TEXT)
                )
            ),
            messages=_list(MESSAGE),
            interrupts=_list(ASKED),
        ),
        _record(checkpoint_id=TEXT, path=TEXT, value=TYPED),
        _record(checkpoint_id=TEXT, messages=_list(MESSAGE)),
    ),
    "diff": _record(
        from_=TEXT,
        to=_maybe(TEXT),
        **_CHANGES,
        messages=_maybe(SPOKEN),
        files=_maybe(FILES),
    ),
    "replay": _record(
        session_id=TEXT,
        steps=_list(
            _record(
                checkpoint=CHECKPOINT,
                calls=_list(EFFECT),
                changes=_maybe(_record(**_CHANGES)),
                tree_id=_maybe(TEXT),
                unfinished=TRUTH,
            )
        ),
    ),
    "bisect": _record(
        session_id=TEXT,
        first_bad=_maybe(CHECKPOINT),
        suspects=_list(TEXT),
        tested=_list(_record(checkpoint_id=TEXT, verdict={"enum": ["good", "bad", "skip"]})),
    ),
    "watch": {
        "description": "one object on each line",
        **_one_of(
            _record(
                kind={"const": "checkpoint"},
                new=TRUTH,
                checkpoint=_record(**_CHECKPOINT_FIELDS, progress=PROGRESS),
            ),
            _record(kind={"const": "approval"}, id=TEXT, session_id=TEXT, call=TEXT),
        ),
    },
    "rollback": _WENT_BACK,
    "rewind": _REWOUND,
    "undo": _one_of(_WENT_BACK, _REWOUND),
    "fork": _record(
        checkpoint_id=TEXT,
        agent_id=TEXT,
        session_id=TEXT,
        parent_id=TEXT,
        directory=_maybe(TEXT),
        linked=TRUTH,
    ),
    "wrap": _record(
        agent_id=TEXT,
        session_id=TEXT,
        exit_code=WHOLE,
        checkpoints=_list(TEXT),
        problems=_list(TEXT),
        warnings=_list(TEXT),
    ),
    "snapshot": _record(
        checkpoint_id=TEXT,
        session_id=TEXT,
        tree_id=TEXT,
        files=WHOLE,
        bytes=WHOLE,
        new_bytes=WHOLE,
        skipped=_list(_record(path=TEXT, reason=TEXT)),
    ),
    "restore": _record(
        directory=TEXT,
        tree_id=TEXT,
        dry_run=TRUTH,
        undo_tree=_maybe(TEXT),
        written=_maybe(_list(TEXT)),
        removed=_list(TEXT),
        touched=_list(TEXT),
        late=_list(TEXT),
        stayed=_list(TEXT),
        held=_list(TEXT),
    ),
    "tasks": _record(checkpoint_id=TEXT, progress=PROGRESS, tasks=_list(TASK)),
    "effects": _record(session_id=TEXT, effects=_list(EFFECT)),
    "pending": _record(pending=_list(QUESTION), interrupts=_list(ASKED)),
    "approve": _DECIDED,
    "deny": _DECIDED,
    "resolve": _record(call=UNKNOWN_CALL, outcome={"enum": ["done", "failed", "retry"]}),
    "handoff": _record(offer=OFFER),
    "continue": _record(
        checkpoint_id=TEXT,
        agent_id=TEXT,
        session_id=TEXT,
        parent_id=TEXT,
        framework=TEXT,
        lost=_list(TEXT),
        unknown=_list(TEXT),
    ),
    "inbox": _record(agent_id=TEXT, offers=_list(OFFER)),
    "stats": _record(
        store=TEXT,
        checkpoints=WHOLE,
        sessions=WHOLE,
        chunks=WHOLE,
        logical_bytes=WHOLE,
        stored_bytes=WHOLE,
        sharing=NUMBER,
    ),
    "verify": _record(
        ok=TRUTH,
        checkpoints=WHOLE,
        damaged=_list(_record(checkpoint_id=TEXT, reason=TEXT)),
        loose=_list(_record(checkpoint_id=TEXT, reason=TEXT)),
    ),
    "prune": _record(dry_run=TRUTH, kept=WHOLE, removed=_list(CHECKPOINT)),
    "gc": _record(
        dry_run=TRUTH,
        chunks=WHOLE,
        bytes=WHOLE,
        waiting_chunks=WHOLE,
        waiting_bytes=WHOLE,
        grace_seconds=NUMBER,
    ),
    "export": _record(path=TEXT, checkpoints=WHOLE, chunks=WHOLE, notes=WHOLE, bytes=WHOLE),
    "import": _one_of(
        _record(checkpoints=WHOLE, skipped=WHOLE, notes=WHOLE, problems=_list(TEXT)),
        _record(threads=WHOLE, checkpoints=WHOLE, skipped=WHOLE, writes=WHOLE),
    ),
    "migrate": _record(store=TEXT, from_=_maybe(WHOLE), to=WHOLE, migrated=TRUTH),
    "hook": _one_of(
        _record(
            action={"const": "record"},
            checkpoint_id=_maybe(TEXT),
            session_id=TEXT,
            step_name=TEXT,
            files=_maybe(WHOLE),
            tree_id=_maybe(TEXT),
        ),
        _record(
            action={"const": "install"},
            program=TEXT,
            scope=SCOPE,
            path=TEXT,
            changed=TRUTH,
            command=_list(TEXT),
            trusted=_maybe(_list(TEXT)),
            advice=_list(TEXT),
        ),
        _record(
            action={"const": "uninstall"},
            program=TEXT,
            path=TEXT,
            changed=TRUTH,
            removed=_list(TEXT),
            left=_list(TEXT),
        ),
        _record(action={"const": "offer"}, programs=_list(TEXT)),
        _record(
            action={"const": "status"},
            ok=TRUTH,
            store_problem=_maybe(TEXT),
            programs=_list(HOOK_STANDING),
        ),
    ),
    "completion": _record(shell=TEXT, script=TEXT),
    "error": _record(error=_ERROR),
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
