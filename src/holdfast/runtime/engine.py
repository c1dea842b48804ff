"""What a client remembers between calls, so that saving costs what changed."""

from __future__ import annotations

import secrets
from typing import Any

from holdfast.core.chunk_encoder import Base
from holdfast.core.chunk_format import prepare
from holdfast.core.layout_reader import base_of
from holdfast.stores.base import Record, Store
from holdfast.stores.capabilities import files_of, tick_of
from holdfast.system.recent import Recent


class Engine:
    """The memory of one client: how recent states were cut, and where its sessions stand."""

    def __init__(self, store: Store) -> None:
        prepare()
        self._store = store
        self._can: dict[type, bool] = {}
        self.shares_chunks = store.shares_chunks
        self.allow_pickle = store.allow_pickle
        # Fingerprints decide what is written, so nobody may be able to foresee a collision.
        self.seed = secrets.randbits(64)
        self._bases: Recent[str, Base] = Recent(256)
        self._restored: Recent[str, Record] = Recent(4)
        self._heads: Recent[tuple[str, str], str] = Recent(10_000)
        self._resumed: Recent[tuple[str, str], str] = Recent(4)
        self._claims: Recent[tuple[str, str], Any] = Recent(10_000)

    def can(self, capability: type) -> bool:
        """Return whether the store has a capability."""
        known = self._can.get(capability)
        if known is None:
            known = self._can[capability] = self._store.capability(capability) is not None
        return known

    def tick(self) -> Any:
        """Return what differs once anybody has written since; None if the store cannot tell."""
        return tick_of(self._store)

    @property
    def files(self) -> tuple[str, ...]:
        """Where on this disk the store lives."""
        return files_of(self._store)

    def base(self, checkpoint_id: str | None) -> Base | None:
        """Return what is known of a checkpoint's chunks, if it was saved or restored lately."""
        if checkpoint_id is None or not self.shares_chunks:
            return None
        base = self._bases.get(checkpoint_id)
        if base is None:
            record = self._restored.get(checkpoint_id)
            if record is not None:
                root = bytes.fromhex(record.info.content_id)
                base = base_of(root, record.chunks, self.seed)
                self._bases.put(checkpoint_id, base)
                self._restored.drop(lambda key, _: key == checkpoint_id)
        return base

    def saved(self, session: tuple[str, str], checkpoint_id: str, base: Base | None) -> None:
        """Remember a save: it is the head of its session now."""
        if base is not None:
            self._bases.put(checkpoint_id, base)
        self._heads.put(session, checkpoint_id)

    def restored(self, record: Record) -> None:
        """Remember a restored record, so that the first save after it is not slow."""
        if self.shares_chunks:
            info = record.info
            self._restored.put(info.checkpoint_id, record)
            self._resumed.put((info.agent_id, info.session_id), info.checkpoint_id)

    def last_restored(self, session: tuple[str, str]) -> str | None:
        """Return the checkpoint of a session that was restored last: likely the next base."""
        return self._resumed.get(session)

    def head(self, session: tuple[str, str]) -> str | None:
        """Return the checkpoint this client saved last in a session."""
        return self._heads.get(session)

    def claimed(self, session: tuple[str, str], claim: Any) -> None:
        """Remember the offer that a session works on."""
        self._claims.put(session, claim)

    def claim(self, session: tuple[str, str]) -> Any:
        """Return the claim that a session works on."""
        return self._claims.get(session)

    def claim_of(self, offer_id: str) -> Any:
        """Return the claim this client has on an offer."""
        return self._claims.find(lambda claim: claim.offer_id == offer_id)

    def unclaimed(self, offer_id: str) -> None:
        """Forget the claim on an offer: it is settled or lost."""
        self._claims.drop(lambda _, claim: claim.offer_id == offer_id)

    def unsure(self, session: tuple[str, str]) -> None:
        """Ask the store for the head next time: a save failed or was cancelled half-way."""
        self._heads.drop(lambda key, _: key == session)

    def forget(self, *checkpoint_ids: Any) -> None:
        """Forget checkpoints that are gone."""
        gone = frozenset(checkpoint_ids)
        self._bases.drop(lambda key, _: key in gone)
        self._restored.drop(lambda key, _: key in gone)
        self._heads.drop(lambda _, value: value in gone)
        self._resumed.drop(lambda _, value: value in gone)
