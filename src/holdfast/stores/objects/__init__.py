"""Large chunks in object storage, all else in another store."""

from holdfast.stores.objects.store import LargeBlobs

__all__ = ["LargeBlobs"]
