"""Which checkpoint or session is meant by what was typed, and the short names of ids.

Ids are ordered by time, so those of one minute begin alike: listings show how they end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from holdfast.cli.exits import Ambiguous, NotFound
from holdfast.cli.parsing import close_to
from holdfast.core.short_repr import brief
from holdfast.stores.base import Query

if TYPE_CHECKING:
    from holdfast.cli.access.opening import LazyClient
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.stores.base import SessionInfo

SHORTEST = 4
_PAGE = 5000
_COUNTED = 20_000
"""How many ids are compared for short names; in larger stores longer ones are shown."""
_LONG = 12
_PART_OF_ID = re.compile(rf"[0-9a-f-]{{{SHORTEST},36}}")
_LONGEST = 1100
"""Names of agents and sessions have at most 1024 characters."""
_FARTHEST = 9
"""How many digits a number of steps may have."""
_SHOWN = 5


class Names:
    """Finds what is meant in one store."""

    def __init__(self, client: SyncClient | LazyClient) -> None:
        self.client = client
        self.store = client.store

    @cached_property
    def sessions(self) -> list[SessionInfo]:
        """Every session, the one touched last first."""
        return self.store.heads()

    def session(self, given: str | None) -> SessionInfo:
        """The session that is meant; the newest if none is named."""
        if given is None:
            if not self.sessions:
                raise NotFound("the store holds no checkpoints yet")
            return self.sessions[0]
        names = [(each, (each.session_id, name_of(each))) for each in self.sessions]
        for found in (
            [each for each, (short, _) in names if short == given],
            [each for each, (_, whole) in names if whole == given],
            [each for each, both in names if any(name.startswith(given) for name in both)],
        ):
            if len(found) > 1:
                listed = ", ".join(name_of(each) for each in found[:_SHOWN])
                raise Ambiguous(f"{brief(given)} fits several sessions: {listed}. Name one of them")
            if found:
                return found[0]
        known = [each.session_id for each in self.sessions]
        raise NotFound(f"there is no session {brief(given)}", close_to(given, known))

    def checkpoint(self, given: str | None, session: str | None = None) -> CheckpointInfo:
        """The checkpoint that is meant; the head if none is named."""
        given = "@" if given is None else given
        found = self._plain(given, session)
        if found is None and (parts := relative(given)):
            base = self._plain(parts[0], session)
            if base is not None:
                return self._before(base, parts[1], given)
        if found is not None:
            return found
        raise NotFound(f"there is no checkpoint {brief(given)}", self._close_to(given))

    def _plain(self, given: str, session: str | None) -> CheckpointInfo | None:
        if len(given) > _LONGEST or "\0" in given:
            return None  # it cannot be the name of anything
        if given == "@":
            return self.session(session).head
        if given.endswith("@"):
            return self.session(given[:-1]).head
        return (
            self._by_id(given)
            or self._by_name(given, session)
            or self._by_tag(given)
            or self._head_of(given)
        )

    def _by_id(self, given: str) -> CheckpointInfo | None:
        begins = self.store.match(given, 3) if len(given) >= SHORTEST else []
        if given in begins:
            begins = [given]
        ends: list[str] = []
        if given not in begins and _PART_OF_ID.fullmatch(given):
            ends = [each for each in self._ids() if each.endswith(given)]
        found = list(dict.fromkeys([*begins, *ends]))
        if len(found) > 1:
            listed = ", ".join(found[:_SHOWN])
            raise Ambiguous(
                f"{brief(given)} fits several checkpoints: {listed}. Give more of the id"
            )
        infos = self.store.query(Query(ids=found)) if found else []
        return infos[0] if infos else None

    def _ids(self) -> Iterator[str]:
        after = ""
        while page := self.store.match("", _PAGE, after):
            yield from page
            if len(page) < _PAGE:
                return
            after = page[-1]

    def _by_name(self, given: str, session: str | None) -> CheckpointInfo | None:
        infos = self._known
        if session is not None:
            meant = self.session(session)
            infos = [i for i in infos if _session_of(i) == (meant.agent_id, meant.session_id)]
        return next((info for info in infos if info.step_name == given), None)

    @cached_property
    def _known(self) -> list[CheckpointInfo]:
        return self.store.query(Query())

    def _by_tag(self, given: str) -> CheckpointInfo | None:
        """By the id that LangGraph gave it."""
        found = [info for info in self._known if info.metadata.get("checkpoint_id") == given]
        threads = {_session_of(info) for info in found}
        if len(threads) > 1:
            listed = ", ".join(info.checkpoint_id for info in found[:_SHOWN])
            raise Ambiguous(
                f"{brief(given)} is in several threads: {listed}. Give one of these ids"
            )
        return found[0] if found else None

    def _head_of(self, given: str) -> CheckpointInfo | None:
        return next((s.head for s in self.sessions if given in (s.session_id, name_of(s))), None)

    def _before(self, info: CheckpointInfo, back: str, given: str) -> CheckpointInfo:
        counts = [] if back[0] == "-" else back[1:].split("~")
        is_far = any(len(each) > _FARTHEST for each in counts)
        steps = sum(int(each or 1) for each in counts if not is_far) if counts else len(back)
        if not steps and not is_far:
            return info
        older = self.client.ancestors(info.checkpoint_id)
        if is_far or steps > len(older):
            raise NotFound(
                f"{brief(given)} goes back too far: there are {len(older)} checkpoints before"
            )
        return older[steps - 1]

    def _close_to(self, given: str) -> list[str]:
        known = {info.step_name for info in self._known if info.step_name}
        known |= {each.session_id for each in self.sessions}
        return close_to(given, known)


def relative(given: str) -> tuple[str, str] | None:
    """What stands before ``-``, ``--`` or ``~2``, and that; None if it does not end so."""
    base = given.rstrip("-")
    if base == given:
        end = len(given.rstrip("~0123456789"))
        tilde = given.find("~", end)
        base = given[:tilde] if tilde >= 0 else given
    return (base, given[len(base) :]) if base and base != given else None


def name_of(session: SessionInfo) -> str:
    """The whole name of a session."""
    return f"{session.agent_id}/{session.session_id}"


def _session_of(info: CheckpointInfo) -> tuple[str, str]:
    return info.agent_id, info.session_id


class Short:
    """The shortest ends of ids that tell some apart from all in a store."""

    def __init__(self, client: SyncClient | LazyClient, shown: Iterable[CheckpointInfo]) -> None:
        wanted = [info.checkpoint_id for info in shown]
        every = client.store.match("", _COUNTED)
        self._length = SHORTEST if len(every) < _COUNTED else _LONG
        known = {*every, *wanted}
        while self._length < max(map(len, wanted), default=0):
            ends = Counter(each[-self._length :] for each in known)
            if all(ends[each[-self._length :]] == 1 for each in wanted):
                break
            self._length += 1

    def __call__(self, checkpoint_id: str) -> str:
        return checkpoint_id[-self._length :]
