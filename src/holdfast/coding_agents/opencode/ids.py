"""The ids of opencode: a kind, a time by which they are in order, and chance.

Six bytes in hexadecimal are the time in milliseconds with a counter of 12 bits behind it, then come
14 letters and digits. Those of sessions count the time backwards, so that the newest comes first.
"""

from __future__ import annotations

import re
import secrets
import string
import time
from collections import defaultdict
from collections.abc import Iterable

_CHANCE = string.digits + string.ascii_uppercase + string.ascii_lowercase
"""In the order of their bytes, which is how opencode orders ids."""
_LENGTH = 14
_SHAPE = re.compile(r"[a-z]{2,8}_[0-9a-f]{12}[0-9A-Za-z]{14}")
SESSION = re.compile(r"ses_[0-9A-Za-z]{1,60}")


def new_session_id() -> str:
    """Return an id for a session that begins now."""
    now = time.time_ns() // 10**6 * 0x1000 + 1
    return f"ses_{~now & 0xFFFF_FFFF_FFFF:012x}{_chance()}"


def is_known(identity: object) -> bool:
    """Return whether an id is made as opencode makes them."""
    return isinstance(identity, str) and _SHAPE.fullmatch(identity) is not None


def renamed(identities: Iterable[str]) -> dict[str, str]:
    """Return a new id for each, with the same time, such that their order stays."""
    alike: dict[str, list[str]] = defaultdict(list)
    for each in sorted(set(identities)):
        alike[each[:-_LENGTH]].append(each)
    return {
        old: start + chance
        for start, olds in alike.items()
        for old, chance in zip(olds, _chances(len(olds), but=olds), strict=True)
    }


def _chances(count: int, but: list[str]) -> list[str]:
    """Return different endings in ascending order, none of which is in use."""
    taken = {each[-_LENGTH:] for each in but}
    found: set[str] = set()
    while len(found) < count:
        if (chance := _chance()) not in taken:
            found.add(chance)
    return sorted(found)


def _chance() -> str:
    return "".join(secrets.choice(_CHANCE) for _ in range(_LENGTH))
