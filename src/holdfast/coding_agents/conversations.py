"""The conversation that a recorded checkpoint stands in: found, checked, and cut there."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.coding_agents import programs
from holdfast.coding_agents.masking import masked
from holdfast.coding_agents.recorded import program_of
from holdfast.coding_agents.transcript import Cut, Point
from holdfast.core.conversation.said import Said, messages_in
from holdfast.core.short_repr import brief
from holdfast.errors import (
    CheckpointNotFoundError,
    CodingAgentError,
    InvalidArgumentError,
    TranscriptError,
)
from holdfast.verbs.read import get_info

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.coding_agents.transcript import Transcript
    from holdfast.model import CheckpointInfo

_JUST_MADE_SECONDS = 10.0
_LATE_SECONDS = 2.0
_LOOK_SECONDS = 0.1


def info_of(client: SyncClient, checkpoint_id: Any) -> CheckpointInfo | None:
    """Return the checkpoint of an id that a tag holds; None if it is gone."""
    if not isinstance(checkpoint_id, str):
        return None
    try:
        return client.runtime.run(get_info(checkpoint_id))
    except (CheckpointNotFoundError, InvalidArgumentError):
        return None


def state_of(client: SyncClient, info: CheckpointInfo) -> dict[str, Any]:
    """Return what a recorded checkpoint holds beside its files."""
    state = client.restore(info.checkpoint_id, on_unknown="raw").execution_state
    if not isinstance(state, Mapping):
        raise CodingAgentError(
            f"checkpoint {info.checkpoint_id} holds a {type(state).__name__} where the hook keeps "
            "what the agent told"
        )
    return dict(state)


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """A conversation, known up to a checkpoint."""

    info: CheckpointInfo
    state: Mapping[str, Any]
    transcript: Transcript
    point: Point

    @classmethod
    def at(cls, client: SyncClient, info: CheckpointInfo) -> Conversation:
        """Return the conversation that a checkpoint stands in; refused if it is not as known."""
        program = program_of(info)
        transcript = None if program is None else programs.transcript(program.name)
        if program is None or transcript is None:
            title = info.agent_id if program is None else program.title
            raise TranscriptError(
                f"how {title} keeps its conversations is not known to this version of Holdfast"
            )
        state = state_of(client, info)
        kept = state.get("conversation")
        if kept is not None:
            found = kept.get("format") if isinstance(kept, Mapping) else type(kept).__name__
            if found != transcript.format:
                raise TranscriptError(
                    f"checkpoint {info.checkpoint_id} holds a conversation of the format "
                    f"{brief(found)}; the one that is known is {transcript.format!r}"
                )
            if not isinstance(kept.get("entries"), (list, tuple)):
                raise TranscriptError(
                    f"checkpoint {info.checkpoint_id} holds a conversation without entries: "
                    f"{brief(kept.get('entries'))}"
                )
        point = Point.of_state(info.session_id, state)
        return cls(info=info, state=state, transcript=transcript, point=point)

    def cut(self, client: SyncClient) -> Cut:
        """Return the conversation up to the checkpoint.

        Programs write what was said a moment late, so it is waited for at a step just made.
        """
        age = (datetime.now(UTC) - self.info.created_at).total_seconds()
        end = time.monotonic() + (_LATE_SECONDS if 0 <= age < _JUST_MADE_SECONDS else 0)
        while True:
            try:
                found = self.transcript.cut(self.point, self._later(client))
                if found.note is None or time.monotonic() >= end:
                    return found
            except TranscriptError:
                if time.monotonic() >= end:
                    raise
            time.sleep(_LOOK_SECONDS)

    def _later(self, client: SyncClient) -> Iterator[Sequence[Any]]:
        """Give what later checkpoints and the program's own file know, the nearest first."""
        every = client.timeline(self.info.agent_id, self.info.session_id, limit=None)
        ids = [each.checkpoint_id for each in every]
        newer = (
            every[: ids.index(self.info.checkpoint_id)] if self.info.checkpoint_id in ids else []
        )
        for info in reversed(newer):
            entries = Point.of_state(info.session_id, state_of(client, info)).entries
            if entries:
                yield entries
        live = self.transcript.live(self.point)
        if live is not None:
            yield live

    def write_as_new(self, cut: Cut, project: Path) -> tuple[str, Path | None]:
        """Write a conversation under an id that no session has yet; return that and the file."""
        new_id = self.transcript.new_id()
        try:
            return new_id, self.transcript.write(cut, new_id, project)
        except OSError as error:
            raise TranscriptError(f"the conversation cannot be written: {error}") from error

    def is_there(self) -> bool:
        """Return whether the program still has the conversation."""
        try:
            return self.transcript.live(self.point) is not None
        except TranscriptError:  # it is there, but not as known: never written over
            return True

    def now(self) -> list[Any]:
        """Return all that was said until now: what the program's own file has, else what is kept.

        Secrets are hidden, as it is to be stored.
        """
        try:
            live = self.transcript.live(self.point)
        except TranscriptError:  # it is not as known; what was kept is
            live = None
        return list(self.point.entries) if live is None else list(masked(live))

    def kept(self, entries: Sequence[Any]) -> dict[str, Any]:
        """Return entries as a state holds them."""
        return {"format": self.transcript.format, "entries": list(entries)}

    def messages(self, entries: Sequence[Any]) -> list[Said]:
        """Return entries as people read them."""
        return messages_in("custom", {"conversation": self.kept(entries)})
