"""Which checkpoint or session is meant by what was typed.

Ids mean what they mean to the library. Heads (``@``), ancestors (``@~2``), names of steps, of
sessions and of LangGraph's checkpoints are words of the command line, which looks for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from holdfast.cli.exits import Ambiguous, NotFound
from holdfast.cli.parsing import close_to
from holdfast.core.short_repr import brief
from holdfast.errors import AmbiguousIdError, CheckpointNotFoundError, InvalidArgumentError
from holdfast.stores.base import Query
from holdfast.stores.capabilities import FindsSessions

if TYPE_CHECKING:
    from holdfast.cli.access.opening import LazyClient
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.stores.base import SessionInfo

_PAGE = 1000
_NEAR = 5 * _PAGE
"""So many of the newest checkpoints are looked through before what costs no more than a look."""
_TAIL = re.compile(r"[0-9a-f-]{4,36}")
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
        self._step_names: set[str] = set()
        """Those that were seen in looking for one."""
        self._near: dict[str | None, list[CheckpointInfo]] = {}

    @cached_property
    def sessions(self) -> list[SessionInfo]:
        """Every session, the one touched last first."""
        return self.store.heads()

    def session(self, given: str | None) -> SessionInfo:
        """Return the session that is meant; the newest if none is named.

        Only if nothing is called so, nor begins so, are all sessions read, for names like it.
        """
        if given is None:
            newest = self.store.heads(limit=1)
            if not newest:
                raise NotFound("the store holds no checkpoints yet")
            return newest[0]
        for find in (self._of_name, self._of_whole_name, self._beginning):
            found = find(given)
            if len(found) > 1:
                listed = ", ".join(name_of(each) for each in found[:_SHOWN])
                raise Ambiguous(f"{brief(given)} fits several sessions: {listed}. Name one of them")
            if found:
                return found[0]
        known = [each.session_id for each in self.sessions]
        raise NotFound(f"there is no session {brief(given)}", close_to(given, known))

    def _of_name(self, given: str) -> list[SessionInfo]:
        return self.store.heads(session_id=given) if _can_be_name(given) else []

    def _of_whole_name(self, given: str) -> list[SessionInfo]:
        """Return sessions that are called so together with their agent: either name may have /."""
        found: list[SessionInfo] = []
        for at, letter in enumerate(given):
            agent, session = given[:at], given[at + 1 :]
            if letter == "/" and agent and session and _can_be_name(given):
                found += self.store.heads(agent, session_id=session)
        return found

    def _beginning(self, given: str) -> list[SessionInfo]:
        finds = self.store.capability(FindsSessions)
        if finds is not None:
            return finds.beginning(given, _SHOWN + 1)
        return [
            each
            for each in self.sessions
            if each.session_id.startswith(given) or name_of(each).startswith(given)
        ]

    def session_of(self, agent_id: str, session_id: str) -> SessionInfo:
        """Return the session of exactly that agent and name."""
        for each in self.store.heads(agent_id, session_id=session_id):
            return each
        whole = f"{agent_id}/{session_id}"
        raise NotFound(
            f"there is no session {brief(whole)}", close_to(whole, map(name_of, self.sessions))
        )

    def checkpoint(self, given: str | None, session: str | None = None) -> CheckpointInfo:
        """Return the checkpoint that is meant; the head if none is named."""
        given = "@" if given is None else given
        parts = relative(given)
        if parts is not None and parts[0].endswith("@"):
            return self._before(self._head(parts[0], session), parts[1], given)
        for find in (self._plain, self._far):
            found = find(given, session)
            if found is not None:
                return found
            base = None if parts is None else find(parts[0], session)
            if parts is not None and base is not None:
                return self._before(base, parts[1], given)
        raise NotFound(f"there is no checkpoint {brief(given)}", self._close_to(given))

    def _plain(self, given: str, session: str | None) -> CheckpointInfo | None:
        """Return what is found without reading the store: a name among the newest only."""
        if not _can_be_name(given):
            return None
        if given.endswith("@"):
            return self._head(given, session)
        return (
            self._by_id(given)
            or self._by_name(given, self._newest(session))
            or self._head_of(given)
        )

    def _far(self, given: str, session: str | None) -> CheckpointInfo | None:
        """Return what nothing but reading all checkpoints finds, or all ids."""
        if not _can_be_name(given):
            return None
        newest = self._newest(session)
        every = self._newest_first(session) if len(newest) == _NEAR else iter(newest)
        return self._by_name(given, every) or self._by_tail(given)

    def _head(self, given: str, session: str | None) -> CheckpointInfo:
        return self.session(given[:-1] or session).head

    def _by_id(self, given: str) -> CheckpointInfo | None:
        from holdfast.verbs.read import get_info

        try:
            return self.client.runtime.run(get_info(given))
        except (CheckpointNotFoundError, InvalidArgumentError):
            return None

    def begins_id(self, given: str) -> bool:
        """Return whether a text is an id or the beginning of one, which comes before any name."""
        try:
            return self._by_id(given) is not None
        except AmbiguousIdError:
            return True

    def _by_name(self, given: str, infos: Iterable[CheckpointInfo]) -> CheckpointInfo | None:
        """Return the newest of that step name, else the one to which LangGraph gave that id."""
        tagged: list[CheckpointInfo] = []
        for info in infos:
            if info.step_name == given:
                return info
            if info.metadata.get("checkpoint_id") == given:
                tagged.append(info)
            if info.step_name:
                self._step_names.add(info.step_name)
        if len({(info.agent_id, info.session_id) for info in tagged}) > 1:
            listed = ", ".join(info.checkpoint_id for info in tagged[:_SHOWN])
            raise Ambiguous(
                f"{brief(given)} is in several threads: {listed}. Give one of these ids"
            )
        return tagged[0] if tagged else None

    def _newest(self, session: str | None) -> list[CheckpointInfo]:
        """Return the newest checkpoints, which are where a name is looked for first."""
        if session not in self._near:
            self._near[session] = list(islice(self._newest_first(session), _NEAR))
        return self._near[session]

    def _newest_first(self, session: str | None) -> Iterator[CheckpointInfo]:
        meant = None if session is None else self.session(session)
        query = Query(limit=_PAGE)
        if meant is not None:
            query = replace(query, agent_id=meant.agent_id, session_id=meant.session_id)
        while page := self.store.query(query):
            yield from page
            query = replace(query, before=page[-1].checkpoint_id)

    def _by_tail(self, given: str) -> CheckpointInfo | None:
        """Return the one whose id ends so, as listings of 0.3 named them; every id is looked at."""
        if not _TAIL.fullmatch(given):
            return None
        found = [each for each in self._ids() if each.endswith(given)]
        if len(found) > 1:
            raise AmbiguousIdError(given, found[:_SHOWN])
        infos = self.store.query(Query(ids=found)) if found else []
        return infos[0] if infos else None

    def _ids(self) -> Iterator[str]:
        after = ""
        while page := self.store.match("", _PAGE, after):
            yield from page
            after = page[-1]

    def _head_of(self, given: str) -> CheckpointInfo | None:
        found = self._of_name(given) or self._of_whole_name(given)
        return found[0].head if found else None

    def _before(self, info: CheckpointInfo, back: str, given: str) -> CheckpointInfo:
        counts = [] if back[0] == "-" else back[1:].split("~")
        is_far = any(len(each) > _FARTHEST for each in counts)
        steps = sum(int(each or 1) for each in counts if not is_far) if counts else len(back)
        if not steps and not is_far:
            return info
        older = self.client.ancestors(info.checkpoint_id, None if is_far else steps)
        if is_far or steps > len(older):
            raise NotFound(
                f"{brief(given)} goes back too far: there are {len(older)} checkpoints before"
            )
        return older[steps - 1]

    def _close_to(self, given: str) -> list[str]:
        return close_to(given, self._step_names | {each.session_id for each in self.sessions})


def _can_be_name(given: str) -> bool:
    return len(given) <= _LONGEST and "\0" not in given


def relative(given: str) -> tuple[str, str] | None:
    """Return what stands before ``-``, ``--`` or ``~2``, and that; None if it does not end so."""
    base = given.rstrip("-")
    if base == given:
        end = len(given.rstrip("~0123456789"))
        tilde = given.find("~", end)
        base = given[:tilde] if tilde >= 0 else given
    return (base, given[len(base) :]) if base and base != given else None


def name_of(session: SessionInfo) -> str:
    """Return the whole name of a session."""
    return f"{session.agent_id}/{session.session_id}"
