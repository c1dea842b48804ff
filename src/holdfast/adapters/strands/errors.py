"""What Strands and users of Holdfast both know as an error of a storage."""

from strands.types.exceptions import StorageError

from holdfast.errors import HoldfastError


class HoldfastStorageError(StorageError, HoldfastError):
    """A key could not be written, read, deleted or listed; its cause says why."""
