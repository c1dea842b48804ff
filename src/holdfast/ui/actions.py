"""What the page changes: each verb is that of the command line, with the same rules."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.access.naming import Names
from holdfast.cli.exits import Refused, UsageError
from holdfast.cli.output.json_schemas import (
    CHECKPOINT,
    OFFER,
    SHAPES,
    TRUTH,
    record,
)
from holdfast.coding_agents.hook_project import is_everything
from holdfast.core.short_repr import brief
from holdfast.ui.numbers import data_of, meant
from holdfast.ui.routes import Parameters, Route
from holdfast.workspace.registry import is_workspace

if TYPE_CHECKING:
    from holdfast.cli.access.rollback_preview import Terms
    from holdfast.client import SyncClient
    from holdfast.stores.base import SessionInfo

_TEXTS = {
    "args": "the list of arguments by position (args_text)",
    "kwargs": "the object of arguments by name (kwargs_text)",
    "value": "what it returned (value_text)",
}
SCOPES = ("all", "state", "files")
OUTCOMES = ("done", "failed", "retry")


def _session(names: Names, given: Parameters) -> SessionInfo:
    """Return the session that is meant, of exactly that agent where one is named."""
    agent, session = given.text("agent"), given.needed("session")
    return names.session(session) if agent is None else names.session_of(agent, session)


def _terms(given: Parameters, scope: str = "all") -> Terms:
    from holdfast.cli.access.rollback_preview import Terms

    flags = given.flag("accept_irreversible"), given.flag("takeover")
    return Terms(scope, *flags, tools=given.tools)


def rollback(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Take a session back to a checkpoint, or say what that would do."""
    from holdfast.cli.access.going_back import check_stems_from, prepared
    from holdfast.cli.access.rollback_preview import as_json

    names = Names(client)
    said = given.needed("id")
    scope = given.choice("scope", SCOPES, "all")
    if given.text("session") is None:
        target = names.checkpoint(said)
        session = names.session_of(target.agent_id, target.session_id)
    else:
        session = _session(names, given)
        target = names.checkpoint(said)
    check_stems_from(names, target, session, said)
    with prepared(client, session, target, _terms(given, scope)) as going:
        done = None if given.flag("dry_run") else going.carry_out()
    return as_json(going.preview, done)


def undo(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Take back the last rollback of a session, or what was put back after a crash."""
    from holdfast.cli.access.going_back import prepared
    from holdfast.cli.access.rollback_preview import as_json
    from holdfast.cli.access.what_to_undo import recovery_undo, what_to_undo

    names = Names(client)
    session = _session(names, given)
    expected = given.text("head")
    if expected is not None and session.head.checkpoint_id != expected:
        raise Refused(
            f"session {session.session_id!r} has gone on since: look at it, and undo what was last"
        )
    last = what_to_undo(client, names, session, is_named=True)
    is_dry = given.flag("dry_run")
    if last.kind == "rewind":
        raise Refused(
            f"session {last.session.session_id!r} was rewound, and leading back needs the files "
            "of its coding agent: use `holdfast undo` in its directory"
        )
    if last.recovery is not None:
        with recovery_undo(client, last.session, last.recovery, None) as undoing:
            now = None if is_dry else undoing.carry_out(given.flag("takeover"))
        return undoing.as_json(now)
    assert last.target is not None
    with prepared(client, last.session, last.target, _terms(given), is_undo=True) as going:
        done = None if is_dry else going.carry_out()
    return as_json(going.preview, done)


def fork(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Begin a new session at a checkpoint; its files stay in the store."""
    from holdfast.cli.access.forking import forked_json, free_name

    names = Names(client)
    source = names.checkpoint(given.needed("id"))
    name = given.text("name") or free_name(names, source)
    made = client.fork(source.checkpoint_id, session_id=name)
    return forked_json(source, made, name, None, False)


def restore(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Put the files of a checkpoint into a directory that the user names."""
    from holdfast.cli.access.putting_back import put_back
    from holdfast.cli.access.trees import find_tree

    said = given.needed("directory").strip()
    if "\0" in said:
        raise UsageError("directory is a path, which has no NUL in it")
    target = _target(client, said)
    tree = find_tree(client, given.needed("id"), None)
    is_dry = given.flag("dry_run")
    with put_back(client, tree, target) as putting:
        done = putting.planned
        if not is_dry and putting.is_needed:
            done = putting.carry_out()
        return putting.as_json(done, is_dry)


def _target(client: SyncClient, said: str) -> Path:
    """Return the directory that is meant: a new or empty one, or one whose files are kept here.

    Whoever types a path into a page does not stand in it: nothing else is looked through, or loses
    a file.
    """
    try:
        target = Path(said).expanduser()
        if not target.is_absolute():
            raise UsageError(
                "directory is a whole path: nobody sees in which one this server works"
            )
        if target.exists() and not target.is_dir():
            raise UsageError(f"directory {said!r} is a file")
        if is_everything(os.path.realpath(target)):
            raise UsageError(f"directory {said!r} is a home or a disk: name one within")
        is_free = not target.exists() or not any(target.iterdir())
    except (OSError, RuntimeError) as error:  # too long, a circle of links, a home of nobody
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"directory {brief(said)} cannot be used: {reason}") from None
    if not is_free and not is_workspace(client.store, os.fsencode(os.path.realpath(target))):
        raise Refused(
            f"directory {said!r} is not empty, and no workspace of this store: name a new one, or "
            "use `holdfast restore` in it"
        )
    return target


def adopt(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Have a session go on from the head of another, with its state and files."""
    from holdfast.cli.access.adopting import adopting

    names = Names(client)
    session = _session(names, given)
    other = names.session_of(
        given.text("from_agent") or session.agent_id, given.needed("from_session")
    )
    with adopting(client, session, other) as going:
        made = None if given.flag("dry_run") else going.carry_out(given.flag("takeover"))
    return going.as_json(made)


def expire(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Remove a checkpoint now, or say which one it would be."""
    from holdfast.cli.output.checkpoints import checkpoint_json

    info = Names(client).checkpoint(given.needed("id"))
    is_dry = given.flag("dry_run")
    removed = False if is_dry else client.expire(info.checkpoint_id)
    return {"dry_run": is_dry, "removed": removed, "checkpoint": checkpoint_json(info)}


def approve(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Allow a call that waits, as it was asked for or with other arguments."""
    from holdfast.cli.access.questions import decided_json, find_question, replaced

    args, kwargs = _value(given, "args"), _value(given, "kwargs")
    if not isinstance(args, list | None):
        raise UsageError("args is a list of the arguments by place")
    if not isinstance(kwargs, dict | None):
        raise UsageError("kwargs is an object of the arguments by name")
    reason = given.text("reason")
    question = find_question(client, given.needed("id"))
    others = replaced([each for each in (args, kwargs) if each is not None])
    asked = client.approve(question.effect_id, reason, **others)
    return decided_json(asked, True, reason)


def _value(given: Parameters, name: str) -> Any:
    """Return data of the typed form, which may be given as a text of JSON."""
    text = given.text(f"{name}_text")
    return meant(given.raw(name) if text is None else data_of(text, _TEXTS[name]))


def deny(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Refuse a call that waits."""
    from holdfast.cli.access.questions import decided_json, find_question

    reason = given.text("reason")
    asked = client.deny(find_question(client, given.needed("id")).effect_id, reason)
    return decided_json(asked, False, reason)


def resolve(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Decide of a call of unknown end."""
    from holdfast.cli.access.unknown_calls import NOT_DONE, find_unknown
    from holdfast.cli.access.waiting import call_json

    outcome = given.choice("outcome", OUTCOMES, "")
    said: dict[str, Any] = {"retry": True}
    if outcome == "done":
        said = {"done": _value(given, "value")}
    elif outcome == "failed":
        said = {"failed": given.text("reason", NOT_DONE)}
    call = find_unknown(client, given.needed("id"))
    client.resolve(call.effect_id, takeover=given.flag("takeover"), **said)
    return {"call": call_json(call), "outcome": outcome}


def accept_offer(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Take an offer for the agent that it was made to; its session begins with that."""
    from holdfast.cli.output.offers import offer_json

    offered = Names(client).checkpoint(given.needed("id")).checkpoint_id
    client.accept(offered)
    return {"offer": offer_json(client.offer(offered))}


def reject_offer(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Turn an offer down for good, and say why."""
    from holdfast.cli.output.offers import offer_json

    offered = Names(client).checkpoint(given.needed("id")).checkpoint_id
    return {"offer": offer_json(client.reject(offered, given.text("reason")))}


_ID = {"id": "the checkpoint, as the command line takes it"}
_CALL = {"id": "the call, or how its id begins"}
_SESSION = {"agent": "the agent", "session": "the session"}
_DRY = {"dry_run": "only say what would be done"}
_TAKEOVER = {"takeover": "take the session from a process that was not heard of for long"}
_ACCEPT = {"accept_irreversible": "go back past calls that stay done"}
_FORCED = (_ACCEPT, _TAKEOVER, _DRY)
_WHY = {"reason": "why"}


_EXPIRED = record(dry_run=TRUTH, removed=TRUTH, checkpoint=CHECKPOINT)
_OFFER = record(offer=OFFER)


def _verb(path: str, answer: Any, summary: str, schema: Any, *given: dict[str, str]) -> Route:
    parameters = {name: said for each in given for name, said in each.items()}
    return Route(path, answer, summary, parameters, schema, writes=True)


ROUTES: tuple[Route, ...] = (
    _verb(
        "rollback",
        rollback,
        "Take a session back to a checkpoint",
        SHAPES["rollback"],
        _ID,
        _SESSION,
        {"scope": "what goes back: all, state or files"},
        *_FORCED,
    ),
    _verb(
        "undo",
        undo,
        "Take back the last rollback",
        SHAPES["undo"],
        _SESSION,
        {"head": "only while this is the head of the session"},
        *_FORCED,
    ),
    _verb(
        "fork",
        fork,
        "Begin a new session at a checkpoint",
        SHAPES["fork"],
        _ID,
        {"name": "the new session"},
    ),
    _verb(
        "restore",
        restore,
        "Put the files of a checkpoint into a directory",
        SHAPES["restore"],
        _ID,
        {"directory": "a whole path on the machine of the server"},
        _DRY,
    ),
    _verb(
        "adopt",
        adopt,
        "Go on from the head of another session",
        SHAPES["adopt"],
        _SESSION,
        {"from_agent": "the agent of the other", "from_session": "the other session"},
        _TAKEOVER,
        _DRY,
    ),
    _verb("expire", expire, "Remove a checkpoint", _EXPIRED, _ID, _DRY),
    _verb(
        "approve",
        approve,
        "Allow a call that waits",
        SHAPES["approve"],
        _CALL,
        _WHY,
        {"args": "other arguments by place", "kwargs": "other arguments by name"},
        {"args_text": "the same as a text of JSON", "kwargs_text": "the same as a text of JSON"},
    ),
    _verb("deny", deny, "Refuse a call that waits", SHAPES["deny"], _CALL, _WHY),
    _verb(
        "resolve",
        resolve,
        "Decide of a call of unknown end",
        SHAPES["resolve"],
        _CALL,
        {"outcome": "done, failed or retry", "value": "what it gave, if it is done"},
        {"value_text": "the same as a text of JSON"},
        _WHY,
        _TAKEOVER,
    ),
    _verb("accept-offer", accept_offer, "Take an offer", _OFFER, _ID),
    _verb("reject-offer", reject_offer, "Turn an offer down", _OFFER, _ID, _WHY),
)
