"""Verbs that write: save, put, fork."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast.core.chunk_encoder import Base, Encoded
from holdfast.errors import (
    CheckpointConflictError,
    CheckpointIntegrityError,
    CheckpointNotFoundError,
    FencedError,
    InvalidArgumentError,
    MissingBaseError,
    MissingParentError,
    NotTheHeadError,
    StoreError,
)
from holdfast.model import (
    Checkpoint,
    CheckpointInfo,
    Framework,
    check_known,
    check_record,
    checked_name,
    checksum_fits,
    encode_payload,
    make_payload,
    new_info,
)
from holdfast.runtime import steps
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.stores.base import Commit, Fence, Query
from holdfast.system.bytes_on_disk import BytesOnDisk
from holdfast.verbs.claims import Claim
from holdfast.verbs.events import note as announce
from holdfast.verbs.ids import resolve
from holdfast.verbs.notes import NoteBatch
from holdfast.verbs.open_offers import enter
from holdfast.verbs.read import get_info, restore


def save(
    engine: Engine,
    *,
    agent_id: str,
    framework: Framework | str,
    payload: dict[str, Any],
    session_id: str | None,
    parent_id: str | None,
    step_index: int,
    step_name: str | None,
    ttl_seconds: float | None,
    metadata: dict[str, Any],
    append_only: Iterable[str],
    events: bool,
) -> Plan[str]:
    """Keep a state as a new checkpoint; its parent is the session's head unless one is named.

    A claim that the session works on is renewed with it when half of its lease is over.
    """
    info = new_info(
        agent_id=agent_id,
        framework=framework,
        session_id=session_id,
        parent_id=parent_id,
        step_index=step_index,
        step_name=step_name,
        ttl_seconds=ttl_seconds,
        metadata=metadata,
    )
    session = (info.agent_id, info.session_id)
    known_parent = parent_id or (engine.head(session) if session_id is not None else None)
    # Encoded before anything is asked for: what is saved is the state as it is at the call.
    written = NoteBatch()
    claim = engine.claim(session)
    if claim is not None and claim.is_half_over:
        claim = claim.renewed(engine, written)
    if events:
        data = {"kind": "save", "session_id": info.session_id, "step_name": info.step_name}
        announce(engine, written, f"saves:{info.agent_id}", info.checkpoint_id, data, ttl_seconds)
    paths = [("execution_state", *name.split(".")) for name in append_only]
    writer = _Writer(engine, payload, paths, written=written, claim=claim)
    writer.encode(known_parent or engine.last_restored(session))
    try:
        if parent_id is not None:
            yield from _commit_child(writer, info, (yield from resolve(parent_id)))
        elif session_id is not None:
            yield from _commit_at_head(engine, writer, info, known_parent)
        else:
            yield from writer.commit(info, None)
    except BaseException:  # a cancelled save may be written all the same
        engine.unsure(session)
        raise
    engine.saved(session, info.checkpoint_id, writer.encoded.base)
    if claim is not None:
        engine.claimed(session, claim)
    return info.checkpoint_id


class _Writer:
    """Encodes a payload and commits it, sending all chunks where the base turns out to be gone."""

    def __init__(
        self,
        engine: Engine,
        payload: dict[str, Any],
        append_only: Iterable[tuple[str, ...]] = (),
        needs_parent: bool = True,
        written: NoteBatch | None = None,
        claim: Claim | None = None,
        unless: Fence | None = None,
    ) -> None:
        self.claim = claim
        self.unless = unless or (None if claim is None else claim.fence)
        self.follows: str | None = None
        self.engine = engine
        self.payload = payload
        self.needs_parent = needs_parent
        self.written = written or NoteBatch()
        self.append_only = append_only
        self.encoded: Encoded
        self.base_id: str | None = None

    def encode(self, base_id: str | None) -> None:
        base: Base | None = self.engine.base(base_id)
        self.base_id = base_id if base is not None else None
        self.encoded = encode_payload(
            self.payload,
            base,
            seed=self.engine.seed,
            allow_pickle=self.engine.allow_pickle,
            append_only=self.append_only,
            as_stored=True,
            apart=BytesOnDisk,
        )

    def commit(self, info: CheckpointInfo, parent_id: str | None) -> Plan[None]:
        """Commit it, unless the claim that its session works on was lost to another."""
        try:
            yield from self._commit_whole(info, parent_id)
        except FencedError as fenced:
            if self.claim is None or fenced.fence != self.claim.fence:
                raise
            raise self.claim.lost() from None

    def _commit_whole(self, info: CheckpointInfo, parent_id: str | None) -> Plan[None]:
        try:
            yield from steps.commit(self._commit(info, parent_id))
        except MissingBaseError:
            root = self.encoded.root
            self.engine.forget(self.base_id)
            self.encode(None)
            if self.encoded.root != root:
                raise StoreError(
                    "what this save builds on was removed just now, and the state has been changed "
                    "since the call: nothing was saved, save again"
                ) from None
            yield from self.written.take_linked()
            yield from steps.commit(self._commit(info, parent_id))

    def _commit(self, info: CheckpointInfo, parent_id: str | None) -> Commit:
        self.encoded.chunks.update(self.written.chunks)
        return Commit(
            self.record(info, parent_id),
            self.encoded.chunks,
            self.base_id,
            self.needs_parent,
            self.written.notes,
            self.unless,
            self.follows,
            instead_of=self.written.instead_of,
        )

    def record(self, info: CheckpointInfo, parent_id: str | None) -> CheckpointInfo:
        """Return the record as it is kept, with what is known once the payload is encoded."""
        encoded = self.encoded
        return info.with_(parent_id=parent_id, content_id=encoded.root.hex(), size=encoded.size)


def write(
    engine: Engine,
    info: CheckpointInfo,
    payload: dict[str, Any],
    append_only: Iterable[tuple[str, ...]] = (),
    written: NoteBatch | None = None,
    unless: Fence | None = None,
    follows: str | None = None,
) -> Plan[None]:
    """Keep a payload under a record that was made elsewhere; its parent may be gone or yet to come.

    ``append_only`` are paths in the payload, from its parts on; ``unless`` and ``follows`` are
    those of a commit. Written once more, it is there already; CheckpointConflictError if what is
    there is another.
    """
    session = (info.agent_id, info.session_id)
    claim = None if unless is not None else engine.claim(session)
    writer = _Writer(engine, payload, append_only, False, written, claim, unless)
    writer.follows = follows
    writer.encode(info.parent_id or engine.last_restored(session))
    try:
        yield from writer.commit(info, info.parent_id)
    except CheckpointConflictError:
        found = yield from steps.query(Query(ids=[info.checkpoint_id], include_expired=True))
        if [known.checksum for known in found] != [writer.record(info, info.parent_id).checksum]:
            raise
    engine.saved(session, info.checkpoint_id, writer.encoded.base)


def _commit_child(writer: _Writer, info: CheckpointInfo, parent_id: str | None) -> Plan[None]:
    try:
        yield from writer.commit(info, parent_id)
    except MissingParentError:
        raise CheckpointNotFoundError(
            str(parent_id),
            "it is named as the parent but is not in this store; save or import it first",
        ) from None


def _commit_at_head(
    engine: Engine, writer: _Writer, info: CheckpointInfo, head: str | None
) -> Plan[None]:
    """Commit behind what this client saved last, or what anybody else has saved since."""
    if head is not None:
        try:
            writer.follows = head
            yield from writer.commit(info, head)
            return
        except (NotTheHeadError, MissingParentError):
            engine.unsure((info.agent_id, info.session_id))
        finally:
            writer.follows = None
    for _ in range(3):
        newest = yield from _newest(info.agent_id, info.session_id)
        head = None if newest is None else newest.checkpoint_id
        try:
            yield from writer.commit(info, head)
            return
        except MissingParentError:  # removed meanwhile: whatever is the head now takes its place
            engine.forget(head)
    yield from writer.commit(info, None)


def _newest(agent_id: str, session_id: str) -> Plan[CheckpointInfo | None]:
    found = yield from steps.query(Query(agent_id=agent_id, session_id=session_id, limit=1))
    return found[0] if found else None


def put(engine: Engine, checkpoint: Checkpoint) -> Plan[str]:
    """Keep a checkpoint that was built elsewhere, exactly as it is."""
    if not isinstance(checkpoint, Checkpoint):
        raise InvalidArgumentError(f"put() takes a Checkpoint, not {type(checkpoint).__name__}")
    check_record(checkpoint.info("", 0))
    session = (checkpoint.agent_id, checkpoint.session_id)
    written = NoteBatch()
    enter(engine, written, checkpoint.info("", 0))
    writer = _Writer(engine, checkpoint.payload(), written=written, claim=engine.claim(session))
    writer.encode(checkpoint.parent_id)
    info = checkpoint.info(writer.encoded.root.hex(), writer.encoded.size)
    check_known(info)
    if not checksum_fits(info):
        raise CheckpointIntegrityError(
            checkpoint.checkpoint_id, "it was altered after it was built; build it again"
        )
    yield from _commit_child(writer, info, info.parent_id)
    engine.saved(session, info.checkpoint_id, writer.encoded.base)
    return info.checkpoint_id


def fork(
    engine: Engine,
    checkpoint_id: str,
    session_id: str | None,
    execution_state: Any,
    context: dict[str, Any] | None,
) -> Plan[str]:
    """Begin a new session at a checkpoint; unedited, nothing but the record is written."""
    source = yield from get_info(checkpoint_id)
    if session_id is not None:
        checked_name("session_id", session_id)
        if (yield from _newest(source.agent_id, session_id)) is not None:
            raise _not_new(source.agent_id, session_id)
    info = new_info(
        agent_id=source.agent_id,
        framework=source.framework,
        session_id=session_id,
        parent_id=source.checkpoint_id,
        step_index=source.step_index,
        step_name=source.step_name,
        ttl_seconds=source.ttl_seconds,
        metadata=source.metadata,
    )
    try:
        return (yield from derive(engine, source, info, execution_state, context, follows=""))
    except NotTheHeadError:
        raise _not_new(info.agent_id, info.session_id) from None


def _not_new(agent_id: str, session_id: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"session {session_id!r} of agent {agent_id!r} has checkpoints already: fork into a new one"
    )


def derive(
    engine: Engine,
    source: CheckpointInfo,
    info: CheckpointInfo,
    execution_state: Any = None,
    context: dict[str, Any] | None = None,
    written: NoteBatch | None = None,
    unless: Fence | None = None,
    follows: str | None = None,
) -> Plan[str]:
    """Write a checkpoint with the payload of another, edited where a part is given.

    ``unless`` and ``follows`` are those of a commit.
    """
    check_known(source)
    written = written or NoteBatch()
    session = (info.agent_id, info.session_id)
    if engine.shares_chunks and execution_state is None and context is None:
        info = info.with_(content_id=source.content_id, size=source.size)
        try:
            yield from steps.commit(
                Commit(
                    info,
                    written.chunks,
                    source.checkpoint_id,
                    notes=written.notes,
                    unless=unless,
                    follows=follows,
                )
            )
        except (MissingBaseError, MissingParentError):
            raise CheckpointNotFoundError(source.checkpoint_id) from None
        engine.saved(session, info.checkpoint_id, engine.base(source.checkpoint_id))
        return info.checkpoint_id
    whole = yield from restore(engine, source.checkpoint_id, True, "raw")
    payload = make_payload(
        whole.execution_state if execution_state is None else execution_state,
        whole.agent_context if context is None else checked_context(context),
        whole.tasks,
        whole.effects,
        whole.workspace,
    )
    writer = _Writer(engine, payload, written=written, unless=unless)
    writer.follows = follows
    writer.encode(source.checkpoint_id)
    yield from _commit_child(writer, info, source.checkpoint_id)
    engine.saved(session, info.checkpoint_id, writer.encoded.base)
    return info.checkpoint_id


def checked_context(context: object) -> dict[str, Any]:
    """Return the developer's own dict; anything else is refused."""
    if context is None:
        return {}
    if not isinstance(context, dict):
        raise InvalidArgumentError(f"context is a dict, not {type(context).__name__}")
    return context
