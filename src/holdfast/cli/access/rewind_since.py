"""What happened since the point to which a coding agent goes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.cli.access.rewind_points import points
from holdfast.cli.output.checkpoints import payloads_of
from holdfast.coding_agents.conversations import Conversation
from holdfast.coding_agents.outside import is_shell, reaches_outside
from holdfast.coding_agents.recorded import main_session_of
from holdfast.errors import TranscriptError
from holdfast.stores.base import Query

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.coding_agents.rewinding import Rewind
    from holdfast.core.conversation.said import Said
    from holdfast.model import CheckpointInfo

_LOOKED_AT = 1000


@dataclass(frozen=True)
class Since:
    """What is left behind, and what stays all the same."""

    shells: int
    """Commands in a shell."""
    outside: list[CheckpointInfo]
    """Steps that reached beyond the files, as their names show."""
    others: dict[str, int]
    """Checkpoints of other sessions in the same directory, by session."""
    unsaid: list[Said]
    """Messages that the new conversation has not got."""


def since(client: SyncClient, going: Rewind) -> Since:
    """Return what was done and said between a point and now."""
    session, target = going.session, going.target
    own = points(client, session)
    ids = [each.checkpoint_id for each in own]
    at = ids.index(target.checkpoint_id) if target.checkpoint_id in ids else 0
    left = own[:at]
    return Since(
        shells=sum(map(is_shell, left)),
        outside=[each for each in left if reaches_outside(each)],
        others=_others(client, target, own),
        unsaid=_unsaid(client, going),
    )


def _unsaid(client: SyncClient, going: Rewind) -> list[Said]:
    if going.conversation is None or going.cut is None:
        return []
    kept = len(going.conversation.messages(going.cut.entries))
    try:
        last = Conversation.at(client, going.session.head)
    except TranscriptError:  # it is not as known: what goes cannot be told
        return []
    return last.messages(last.now())[kept:]


def _others(
    client: SyncClient, target: CheckpointInfo, own: Sequence[CheckpointInfo]
) -> dict[str, int]:
    mine = {(each.agent_id, main_session_of(each)) for each in (*own, target)}
    newer = [
        each
        for each in client.store.query(Query(since=target.created_at, limit=_LOOKED_AT))
        if (each.agent_id, main_session_of(each)) not in mine
    ]
    if not newer or not client.store.shares_chunks:
        return {}
    places = dict(_places(client, [target, *newer]))
    here = places.get(target.checkpoint_id)
    found: dict[str, int] = {}
    for each in newer:
        if here is not None and places.get(each.checkpoint_id) == here:
            found[each.session_id] = found.get(each.session_id, 0) + 1
    return found


def _places(client: SyncClient, infos: list[CheckpointInfo]) -> list[tuple[str, str]]:
    """Return the workspace whose files each checkpoint holds."""
    found = []
    for checkpoint_id, payload in payloads_of(client, infos):
        part = payload.get("workspace")
        name = part.get("workspace") if isinstance(part, dict) else None
        if isinstance(name, str):
            found.append((checkpoint_id, name))
    return found
