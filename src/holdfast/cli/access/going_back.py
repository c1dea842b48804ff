"""Takes a session back to a checkpoint: looked at first, and then carried out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from holdfast.cli.access.naming import Names
from holdfast.cli.access.rollback_preview import RollbackPreview, Terms, files_of, look
from holdfast.cli.access.session_run import SessionFiles, check_is_ours, opened
from holdfast.cli.access.short_ids import short_id
from holdfast.cli.exits import UsageError
from holdfast.errors import CheckpointIntegrityError

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.session.rollback import RolledBack
    from holdfast.stores.base import SessionInfo


class GoingBack:
    """A rollback, or its undoing, that was looked at and may be carried out."""

    def __init__(
        self,
        client: SyncClient,
        preview: RollbackPreview,
        files: SessionFiles | None,
        terms: Terms,
        is_undo: bool,
    ) -> None:
        self.preview = preview
        self._client = client
        self._files = files
        self._terms = terms
        self._is_undo = is_undo

    def carry_out(self) -> RolledBack:
        """Do it, through a run."""
        terms = self._terms
        session, target = self.preview.session, self.preview.target
        with opened(self._client, session, self._files, terms.takeover, terms.tools) as run:
            if self._is_undo:
                return run.undo(accept_irreversible=terms.accept_irreversible)
            return run.rollback(
                target.checkpoint_id,
                scope=("state", "files") if terms.scope == "all" else (terms.scope,),
                accept_irreversible=terms.accept_irreversible,
            )


@contextmanager
def prepared(
    client: SyncClient,
    session: SessionInfo,
    target: CheckpointInfo,
    terms: Terms,
    is_undo: bool = False,
) -> Iterator[GoingBack]:
    """Give a rollback that was looked at; an error if it cannot be done."""
    check_is_ours(session, target)
    try:
        with files_of(client, session, target, terms.scope, terms.workspace) as files:
            seen = look(client, session, target, files, terms)
            yield GoingBack(client, seen, files, terms, is_undo)
    except CheckpointIntegrityError as error:
        head = session.head.checkpoint_id
        if error.checkpoint_id != head:
            raise
        raise CheckpointIntegrityError(
            head,
            f"{error.reason}; what the session did since cannot be told from it, and not undone: "
            f"`holdfast fork {short_id(client.store, target)}` goes on from there in a new session",
        ) from error


def check_stems_from(names: Names, target: CheckpointInfo, session: SessionInfo, said: str) -> None:
    """Refuse a checkpoint that a session does not stem from."""
    if (target.agent_id, target.session_id) == (session.agent_id, session.session_id):
        return
    older = {info.checkpoint_id for info in names.client.ancestors(session.head.checkpoint_id)}
    if target.checkpoint_id not in older:
        raise UsageError(
            f"{said} is a checkpoint of session {target.session_id!r}: "
            f"session {session.session_id!r} cannot go back to it; fork it instead"
        )
