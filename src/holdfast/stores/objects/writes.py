"""What the store with large blobs apart writes, as plans; no I/O of their own."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from holdfast.errors import (
    CheckpointConflictError,
    NoteExistsError,
    RefusedError,
    StoreError,
    StoreFullError,
)
from holdfast.stores.base import Commit, NotesOnly
from holdfast.stores.objects.packs import Pack, packs_of, sizes_of
from holdfast.stores.objects.reads import ATTEMPTS
from holdfast.stores.objects.removal import BlobRemoval, Holding
from holdfast.stores.objects.requests import BlobPlan, Within, commit_within
from holdfast.stores.objects.uploads import Led
from holdfast.system import crash_points


class BlobWrites(BlobRemoval):
    """A plan for every method."""

    def commit(self, commit: Commit | NotesOnly) -> BlobPlan[None]:
        """Upload what is large and not there, and then commit the rest with stubs in its stead.

        Objects that are there are asked for, so what was lost or altered is uploaded again. The
        commit claims its uploads, and itself, with notes that are there once. gc does the same
        before it takes what no stub leads to: if it was first, the commit is refused, and all is
        uploaded anew.
        """
        sizes = sizes_of(commit.chunks)
        large = {name: size for name, size in sizes.items() if size > self.above}
        if not large:
            yield commit_within(commit)
            return
        owner = yield from self._new_owner_id()
        there = yield from self._relied_on(list(large))
        for _ in range(ATTEMPTS):
            missing = {name: size for name, size in large.items() if name not in there.stubs}
            packs = packs_of(owner, missing)
            try:
                fresh = yield from self._upload(packs, commit.chunks)
            except StoreFullError:
                yield from self._tidy(packs)  # the space that the others took
                raise
            crash_points.reach("objects:uploaded")
            claims = (*there.claims, *fresh.claims)
            small = {name: commit.chunks[name] for name in sizes if name not in large}
            chunks = {**small, **there.stubs, **fresh.stubs}
            try:
                yield commit_within(replace(commit, chunks=chunks, notes=(*commit.notes, *claims)))
                return
            except (CheckpointConflictError, RefusedError) as refusal:
                yield from self._tidy(packs)
                scopes = {claim.scope for claim in claims}
                if not isinstance(refusal, NoteExistsError) or refusal.note.scope not in scopes:
                    raise
            there = Led({}, ())
        raise StoreError("gc takes the objects of this save again and again: save later")

    def _tidy(self, packs: list[Pack]) -> BlobPlan[None]:
        """Remove objects that a commit made useless; what became of that matters more."""
        try:
            yield from self._take([Holding.of_new(each) for each in packs])
        except StoreError:
            pass  # gc takes what is left

    def delete(self, checkpoint_ids: Collection[str]) -> BlobPlan[int]:
        """Ask the store within."""
        return (yield Within(lambda store: store.delete(checkpoint_ids)))  # type: ignore[no-any-return]

    def sweep(self, now: datetime) -> BlobPlan[int]:
        """Ask the store within."""
        return (yield Within(lambda store: store.sweep(now)))  # type: ignore[no-any-return]
