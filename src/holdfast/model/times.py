"""Times as whole microseconds, exactly."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def microseconds(moment: datetime) -> int:
    """Return the microseconds since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moment(since_epoch: int) -> datetime:
    """Return the UTC time of that many microseconds since 1970."""
    return _EPOCH + timedelta(0, 0, since_epoch)


def as_iso(moment: datetime) -> str:
    """Return a time as text: in UTC, unless it is of no zone at all."""
    return (moment if moment.tzinfo in (UTC, None) else moment.astimezone(UTC)).isoformat()
