"""Offers of a checkpoint to another agent: made, found, claimed and settled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from holdfast.client.verb_group import VerbGroup
from holdfast.core.contracts import Contract
from holdfast.errors import InvalidArgumentError
from holdfast.model import Checkpoint, Framework
from holdfast.runtime import AsyncRuntime, SyncRuntime
from holdfast.runtime.steps import Plan
from holdfast.verbs import handoff
from holdfast.verbs.handoff import DEFAULT_LEASE, Offer

if TYPE_CHECKING:
    from holdfast.core.conversation.settling import Rest
    from holdfast.runtime.engine import Engine
    from holdfast.session.continuing import Continued


def _offering(
    engine: Engine,
    checkpoint_id: str,
    target_agent_id: str,
    contract: Contract | None,
    ttl_seconds: float | None,
    events: bool,
    to_framework: Framework | str | None,
    tool_names: Mapping[str, str] | None,
) -> Plan[str]:
    offer = (engine, checkpoint_id, target_agent_id, contract, ttl_seconds, events)
    if to_framework is None:
        if tool_names is not None:
            raise InvalidArgumentError("tool_names= goes with to_framework=")
        return handoff.handoff(*offer)
    from holdfast.session import continuing

    return continuing.handoff(*offer, to_framework, tool_names)


def _continuing(
    engine: Engine,
    checkpoint_id: str,
    framework: Framework | str,
    session_id: str | None,
    agent_id: str | None,
    tool_names: Mapping[str, str] | None,
    rest: Rest | None,
) -> Plan[Continued]:
    from holdfast.session import continuing

    return continuing.continue_in(
        engine,
        checkpoint_id,
        framework,
        session_id=session_id,
        agent_id=agent_id,
        tool_names=tool_names,
        rest=rest,
    )


class Handoffs(VerbGroup[SyncRuntime]):
    """Handing work to another agent, and taking it over: ``client.handoffs``."""

    def handoff(
        self,
        checkpoint_id: str,
        target_agent_id: str,
        contract: Contract | None = None,
        ttl_seconds: float | None = None,
        *,
        events: bool = True,
        to_framework: Framework | str | None = None,
        tool_names: Mapping[str, str] | None = None,
    ) -> str:
        """Offer a checkpoint to another agent, announce it, and return the id of the offer.

        The contract is a pydantic model, a dataclass or a JSON Schema that the state has to fit
        (ContractError names where it does not), or a name that is only recorded. An offer with a
        ``ttl_seconds`` is gone when that is over. With ``to_framework`` the offer holds the
        conversation in that framework's own state, as ``continue_in`` makes it, so that who accepts
        it goes on there.
        """
        return self.runtime.run(
            _offering(
                self._engine,
                checkpoint_id,
                target_agent_id,
                contract,
                ttl_seconds,
                events,
                to_framework,
                tool_names,
            )
        )

    def continue_in(
        self,
        checkpoint_id: str,
        framework: Framework | str,
        *,
        session_id: str | None = None,
        agent_id: str | None = None,
        tool_names: Mapping[str, str] | None = None,
        rest: Rest | None = None,
    ) -> Continued:
        """Go on with the conversation of a checkpoint in another framework, in a new session.

        Its first checkpoint has this one as its parent, and that framework's own state; files and
        tasks are carried on. Open the session with that framework's adapter (``agent_id`` is the
        framework's name unless given). ``tool_names`` says how the next agent calls the tools.
        Calls without an answer are settled from what was recorded; the ``rest`` is kept where
        the framework runs it, and else dropped or answered as interrupted. What could not be
        carried is in ``lost``.
        """
        return self.runtime.run(
            _continuing(
                self._engine, checkpoint_id, framework, session_id, agent_id, tool_names, rest
            )
        )

    def inbox(self, agent_id: str | None = None, *, every: bool = False) -> list[Offer]:
        """Return the open offers to an agent, or to all, the oldest first.

        With ``every`` also those that are taken or settled.
        """
        return self.runtime.run(handoff.inbox(self._engine, agent_id, every))

    def offer(self, checkpoint_id: str) -> Offer:
        """Return an offer, and what became of it so far."""
        return self.runtime.run(handoff.offer(self._engine, checkpoint_id))

    def accept(
        self,
        checkpoint_id: str,
        contract: Contract | None = None,
        *,
        session_id: str | None = None,
        worker: str | None = None,
        lease_seconds: float = DEFAULT_LEASE,
    ) -> Checkpoint:
        """Claim an offer, and go on from it in a session of the receiving agent.

        Of several workers one wins; the others get a HandoffError. Saving in that session renews
        the claim. If it is neither renewed nor settled, the offer returns to the inbox when the
        lease ends, and who accepts it next goes on from what was saved last.
        """
        return self.runtime.run(
            handoff.accept(self._engine, checkpoint_id, contract, session_id, worker, lease_seconds)
        )

    def take(
        self,
        agent_id: str,
        contract: Contract | None = None,
        *,
        worker: str | None = None,
        lease_seconds: float = DEFAULT_LEASE,
        timeout: float | None = None,
    ) -> Checkpoint | None:
        """Accept the oldest open offer to an agent, waiting for one; None after ``timeout``."""
        return self.runtime.run(
            handoff.take(self._engine, agent_id, contract, worker, lease_seconds, timeout)
        )

    def renew(self, checkpoint_id: str, lease_seconds: float | None = None) -> Offer:
        """Hold on to an offer for another lease; a HandoffError if it was lost to another."""
        return self.runtime.run(handoff.renew(self._engine, checkpoint_id, lease_seconds))

    def complete(self, checkpoint_id: str, reason: str | None = None) -> Offer:
        """Say that the work on an offer is done; only who holds it can, and only once."""
        return self.runtime.run(handoff.settle(self._engine, checkpoint_id, "completed", reason))

    def reject(self, checkpoint_id: str, reason: str | None = None) -> Offer:
        """Turn an offer down for good, and say why."""
        return self.runtime.run(handoff.settle(self._engine, checkpoint_id, "rejected", reason))


class AsyncHandoffs(VerbGroup[AsyncRuntime]):
    """Handoffs, awaited."""

    async def handoff(
        self,
        checkpoint_id: str,
        target_agent_id: str,
        contract: Contract | None = None,
        ttl_seconds: float | None = None,
        *,
        events: bool = True,
        to_framework: Framework | str | None = None,
        tool_names: Mapping[str, str] | None = None,
    ) -> str:
        """Offer a checkpoint to another agent, announce it, and return the id of the offer.

        See Handoffs.handoff.
        """
        return await self.runtime.run(
            _offering(
                self._engine,
                checkpoint_id,
                target_agent_id,
                contract,
                ttl_seconds,
                events,
                to_framework,
                tool_names,
            )
        )

    async def continue_in(
        self,
        checkpoint_id: str,
        framework: Framework | str,
        *,
        session_id: str | None = None,
        agent_id: str | None = None,
        tool_names: Mapping[str, str] | None = None,
        rest: Rest | None = None,
    ) -> Continued:
        """Go on with the conversation of a checkpoint in another framework, in a new session.

        See Handoffs.continue_in.
        """
        return await self.runtime.run(
            _continuing(
                self._engine, checkpoint_id, framework, session_id, agent_id, tool_names, rest
            )
        )

    async def inbox(self, agent_id: str | None = None, *, every: bool = False) -> list[Offer]:
        """Return the open offers to an agent, or to all, the oldest first.

        With ``every`` also those that are taken or settled.
        """
        return await self.runtime.run(handoff.inbox(self._engine, agent_id, every))

    async def offer(self, checkpoint_id: str) -> Offer:
        """Return an offer, and what became of it so far."""
        return await self.runtime.run(handoff.offer(self._engine, checkpoint_id))

    async def accept(
        self,
        checkpoint_id: str,
        contract: Contract | None = None,
        *,
        session_id: str | None = None,
        worker: str | None = None,
        lease_seconds: float = DEFAULT_LEASE,
    ) -> Checkpoint:
        """Claim an offer, and go on from it in a session of the receiving agent.

        See Handoffs.accept.
        """
        return await self.runtime.run(
            handoff.accept(self._engine, checkpoint_id, contract, session_id, worker, lease_seconds)
        )

    async def take(
        self,
        agent_id: str,
        contract: Contract | None = None,
        *,
        worker: str | None = None,
        lease_seconds: float = DEFAULT_LEASE,
        timeout: float | None = None,
    ) -> Checkpoint | None:
        """Accept the oldest open offer to an agent, waiting for one; None after ``timeout``."""
        return await self.runtime.run(
            handoff.take(self._engine, agent_id, contract, worker, lease_seconds, timeout)
        )

    async def renew(self, checkpoint_id: str, lease_seconds: float | None = None) -> Offer:
        """Hold on to an offer for another lease; a HandoffError if it was lost to another."""
        return await self.runtime.run(handoff.renew(self._engine, checkpoint_id, lease_seconds))

    async def complete(self, checkpoint_id: str, reason: str | None = None) -> Offer:
        """Say that the work on an offer is done; only who holds it can, and only once."""
        return await self.runtime.run(
            handoff.settle(self._engine, checkpoint_id, "completed", reason)
        )

    async def reject(self, checkpoint_id: str, reason: str | None = None) -> Offer:
        """Turn an offer down for good, and say why."""
        return await self.runtime.run(
            handoff.settle(self._engine, checkpoint_id, "rejected", reason)
        )
