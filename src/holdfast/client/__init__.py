"""Client and SyncClient: one interface over a store, async and sync.

Both are thin: what a verb does is a plan in ``holdfast.verbs``; here it is carried out. Verbs that
belong together are a group, which a client has as an attribute (``client.handoffs.accept``) and
whose verbs it has itself (``client.accept``).
"""

from __future__ import annotations

from holdfast.client.aio import Client
from holdfast.client.approvals import Approvals, AsyncApprovals
from holdfast.client.effects import AsyncEffects, Effects
from holdfast.client.events import AsyncEvents, Events
from holdfast.client.handoffs import AsyncHandoffs, Handoffs
from holdfast.client.sync import SyncClient
from holdfast.client.upkeep import AsyncUpkeep, Upkeep

__all__ = [
    "Approvals",
    "AsyncApprovals",
    "AsyncEffects",
    "AsyncEvents",
    "AsyncHandoffs",
    "AsyncUpkeep",
    "Client",
    "Effects",
    "Events",
    "Handoffs",
    "SyncClient",
    "Upkeep",
]
