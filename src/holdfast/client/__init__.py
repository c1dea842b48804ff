"""Client and SyncClient: one interface over a store, async and sync.

Both are thin: what a verb does is a plan in ``holdfast.verbs``; here it is carried out.
"""

from __future__ import annotations

from holdfast.client.aio import Client
from holdfast.client.sync import SyncClient

__all__ = ["Client", "SyncClient"]
