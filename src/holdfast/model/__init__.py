"""The record: Checkpoint, CheckpointInfo, CheckpointBuilder, Framework, and their one table."""

from holdfast.ids import microseconds, moment
from holdfast.model.builder import CheckpointBuilder, new_info
from holdfast.model.checkpoint import (
    PAYLOAD,
    Checkpoint,
    encode_payload,
    make_payload,
    show_own_path,
)
from holdfast.model.checks import checked_name, is_count
from holdfast.model.field_types import Framework
from holdfast.model.fields import FIELDS, Header
from holdfast.model.notebook import Timeline
from holdfast.model.record import (
    CheckpointInfo,
    check_known,
    check_record,
    checksum,
    checksum_fits,
)

__all__ = [
    "FIELDS",
    "PAYLOAD",
    "Checkpoint",
    "CheckpointBuilder",
    "CheckpointInfo",
    "Framework",
    "Header",
    "Timeline",
    "check_known",
    "check_record",
    "checked_name",
    "checksum",
    "checksum_fits",
    "encode_payload",
    "is_count",
    "make_payload",
    "microseconds",
    "moment",
    "new_info",
    "show_own_path",
]

for _public in (Checkpoint, CheckpointBuilder, CheckpointInfo, Framework, Timeline):
    _public.__module__ = __name__  # by which states that hold one name its class
