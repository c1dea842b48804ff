"""Whether a Redis server may drop what it acknowledged, and what it has dropped.

A server with an eviction policy makes room by removing keys: records, notes, chunks, and whole
listings. Holdfast opens none unless it is told to. Where that happened, ``lost`` finds what is
listed in one place and gone in another; all in pages, so that no command holds the server up.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from holdfast.errors import InvalidArgumentError, StoreConnectionError
from holdfast.stores.redis.errors import redis_errors
from holdfast.stores.redis.keys import SEQ, as_text, id_at, parted
from holdfast.stores.redis.reads import RedisPlan, RedisReads, batches, members_of

logger = logging.getLogger("holdfast")

KEEPS_ALL = "noeviction"
_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
RECORD_GONE = "it is listed, and its record is gone: the server has dropped it"
LISTING_GONE = "its record is there, and a listing of it is gone: the server has dropped that"


def allowed(given: bool | None, option: str | None) -> bool:
    """Return whether a server that evicts is to be opened: an argument, or the option of a URL."""
    if given is not None:
        if not isinstance(given, bool):
            raise InvalidArgumentError(f"allow_eviction is True or False, not {given!r}")
        return given
    if option is None or option.lower() in _NO:
        return False
    if option.lower() not in _YES:
        raise InvalidArgumentError(f"allow_eviction is true or false, not {option!r}")
    return True


def check_policy(nodes: list[Any], name: str, is_allowed: bool) -> tuple[str, ...]:
    """Refuse servers that evict, unless told otherwise; returns what a user should know of them."""
    policies = {_policy(node) for node in nodes}
    evicting = sorted(policy for policy in policies if policy not in (None, KEEPS_ALL))
    if evicting and not is_allowed:
        raise StoreConnectionError(
            f"{name} drops checkpoints that it acknowledged when its memory is full: its "
            f"maxmemory-policy is {evicting[0]}. Set it to {KEEPS_ALL} (CONFIG SET "
            f"maxmemory-policy {KEEPS_ALL}, or the settings of the service), or, where "
            "checkpoints may vanish, open it with allow_eviction=True (?allow_eviction=true)"
        )
    concerns: list[str] = []
    if evicting:
        concerns.append(
            f"its maxmemory-policy is {evicting[0]}: it drops checkpoints when its memory is full, "
            "as allow_eviction lets it"
        )
    if None in policies:
        concerns.append(
            "it does not say whether it evicts (neither CONFIG GET nor INFO is permitted): see "
            f"that its maxmemory-policy is {KEEPS_ALL}"
        )
    for concern in concerns:
        logger.warning("%s: %s", name, concern)
    return tuple(concerns)


def _policy(node: Any) -> str | None:
    """Return the eviction policy of a server; None if it does not tell."""
    try:
        answer = node.execute_command("CONFIG GET", "maxmemory-policy")
        found = answer if isinstance(answer, dict) else dict(_pairs(answer))
        for value in found.values():
            return _text(value)
    except redis_errors():
        logger.debug("CONFIG GET is not permitted; INFO is asked", exc_info=True)
    try:
        about = node.execute_command("INFO", "memory")
    except redis_errors():
        return None
    value = about.get("maxmemory_policy") if isinstance(about, dict) else None
    return None if value is None else _text(value)


def _pairs(answer: list[Any]) -> Iterator[tuple[Any, Any]]:
    yield from zip(answer[::2], answer[1::2], strict=False)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def lost(reads: RedisReads) -> RedisPlan[list[tuple[str, str]]]:
    """Return checkpoints and scopes that are listed in one place and gone in another, and how."""
    expired = yield from _expired(reads)
    found = yield from _lost_records(reads, expired)
    found += yield from _lost_notes(reads, expired)
    return found


def _expired(reads: RedisReads) -> RedisPlan[set[str | bytes]]:
    """Return the ids of records, and the entries of notes, that are over and wait to be swept."""
    found: set[str | bytes] = set()
    for group in (yield from reads.expired()).values():
        found.update(filed.checkpoint_id for filed in group)
    for member in (yield from reads.expired_notes()):
        found.add(member)
    return found


def _lost_records(reads: RedisReads, expired: set[str | bytes]) -> RedisPlan[list[tuple[str, str]]]:
    keys = reads.keys
    by_id = {as_text(member) for member in (yield from members_of(keys.ids))}
    by_time = {id_at(member) for member in (yield from members_of(keys.all))}
    by_session: set[str] = set()
    for member in (yield from members_of(keys.sessions)):
        session, agent = parted(member)
        listed = yield from members_of(keys.session(agent, session))
        by_session.update(map(id_at, listed))
    lists = (by_id, by_time, by_session)
    found: list[tuple[str, str]] = []
    for part in batches(sorted(by_id | by_time | by_session)):
        there = yield [("EXISTS", keys.record(i)) for i in part]
        # Removing takes a record and its entries at one moment: what is listed still was not.
        listed = yield [("ZSCORE", keys.ids, i.encode("utf-8", "surrogatepass")) for i in part]
        for i, is_there, score in zip(part, there, listed, strict=True):
            if i in expired:
                continue
            if not is_there and (score is not None or i not in by_id):
                found.append((i, RECORD_GONE))
            elif is_there and not all(i in each for each in lists):
                found.append((i, LISTING_GONE))
    return found


def _lost_notes(reads: RedisReads, expired: set[str | bytes]) -> RedisPlan[list[tuple[str, str]]]:
    keys = reads.keys
    found: list[tuple[str, str]] = []
    for part in batches((yield from members_of(keys.notes))):
        entries = [(member[:SEQ], *parted(member[SEQ:])) for member in part]
        there = yield [("EXISTS", keys.note(scope, key)) for _, scope, key in entries]
        ordered = yield [
            ("ZSCORE", keys.order(scope), seq + key.encode("utf-8", "surrogatepass"))
            for seq, scope, key in entries
        ]
        listed = yield [("ZSCORE", keys.notes, member) for member in part]
        for member, (_, scope, key), is_there, order, score in zip(
            part, entries, there, ordered, listed, strict=True
        ):
            if score is None or member in expired:  # removed meanwhile, or over
                continue
            if not is_there:
                found.append((scope, f"its note {key!r} is listed and gone: the server dropped it"))
            elif order is None:
                found.append((scope, f"its note {key!r} is there, and the listing of it is gone"))
    return found
