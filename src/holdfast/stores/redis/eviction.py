"""Whether a Redis server may drop what it acknowledged, and what it has dropped.

A server with an eviction policy makes room by removing keys: records, notes, chunks, and whole
listings. Holdfast opens none unless it is told to. Where that happened, ``lost`` finds what is
listed in one place and gone in another; all in pages, so that no command holds the server up.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from holdfast.errors import (
    CheckpointIntegrityError,
    InvalidArgumentError,
    StoreConnectionError,
)
from holdfast.model import CheckpointInfo
from holdfast.stores.redis.errors import redis_errors
from holdfast.stores.redis.keys import (
    SEQ,
    Keys,
    as_bytes,
    as_text,
    id_at,
    number_filed,
    parted,
    touch,
)
from holdfast.stores.redis.reads import BATCH, RedisPlan, RedisReads, batches, page_of
from holdfast.stores.redis.records import IndexEntry, unpack_record
from holdfast.stores.shared.tags import numbers_of, unfiled_in

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
    """Look at each record by its id, and at what else is listed where it is not by its id."""
    keys = reads.keys
    found: dict[str, str] = {}
    low = b"-"
    while page := (yield from page_of(keys.ids, low)):
        found.update((yield from _lost_by_id(reads, [as_text(member) for member in page])))
        low = b"(" + page[-1]
    found.update((yield from _lost_in(reads, keys.all)))
    low = b"-"
    while page := (yield from page_of(keys.sessions, low)):
        for member in page:
            found.update((yield from _lost_in(reads, keys.session_of(member))))
        found.update((yield from _untouched(reads, page)))
        low = b"(" + page[-1]
    low, last = b"-", ""
    while page := (yield from page_of(keys.agents, low)):
        for member in page:
            agent, _ = parted(member)
            if agent != last:
                found.update((yield from _lost_in(reads, keys.agent(agent))))
            last = agent
        low = b"(" + page[-1]
    return [(i, how) for i, how in sorted(found.items()) if i not in expired]


def _lost_by_id(reads: RedisReads, ids: list[str]) -> RedisPlan[dict[str, str]]:
    """Return which of the ids have no record, or one that its session or time does not list.

    Removing takes a record and its entries at one moment: what is listed still was not.
    """
    keys, found = reads.keys, dict[str, str]()
    for part in batches(ids):
        (values,) = yield [("MGET", *map(keys.record, part))]
        listed = yield [("ZSCORE", keys.ids, as_bytes(i)) for i in part]
        filed: list[IndexEntry] = []
        infos: list[CheckpointInfo] = []
        for i, value, score in zip(part, values, listed, strict=True):
            if value is None and score is not None:
                found[i] = RECORD_GONE
            elif value is not None:
                with suppress(CheckpointIntegrityError):  # verify reads it, and says what is wrong
                    placed = unpack_record(i, value)
                    filed.append(IndexEntry.of(placed.info, placed.place))
                    infos.append(placed.info)
        if filed:
            by_time = yield [("ZSCORE", keys.all, each.place) for each in filed]
            in_session = yield [("ZSCORE", keys.session(*e.session), e.place) for e in filed]
            unfiled = yield from _unfiled(keys, infos)
            there = yield [("EXISTS", keys.record(each.checkpoint_id)) for each in filed]
            for each, *listings, is_there in zip(filed, by_time, in_session, there, strict=True):
                if is_there and (None in listings or each.checkpoint_id in unfiled):
                    found[each.checkpoint_id] = LISTING_GONE
    return found


def _untouched(reads: RedisReads, sessions: list[bytes]) -> RedisPlan[dict[str, str]]:
    """Return the newest records of sessions that are not listed as touched by these."""
    keys, found = reads.keys, dict[str, str]()
    for part in batches(sessions):
        asked = [("ZREVRANGE", keys.session_of(who), 0, 0) for who in part]
        before = yield asked
        newest = [(who, each[0]) for who, each in zip(part, before, strict=True) if each]
        listed = yield [("ZSCORE", keys.touched, touch(place, who)) for who, place in newest]
        still = {each[0] for each in (yield asked) if each}
        for (_, place), score in zip(newest, listed, strict=True):
            if score is None and place in still:
                found[id_at(place)] = LISTING_GONE
    return found


def _unfiled(keys: Keys, infos: list[CheckpointInfo]) -> RedisPlan[set[str]]:
    """Return which records have a tag by which their session is not filed."""
    asked = [
        (info.checkpoint_id, number, number_filed(number) + IndexEntry.of(info).who)
        for info in infos
        for name, value in info.metadata.items()
        for number in numbers_of(name, value)
    ]
    filed: dict[str, set[int]] = {info.checkpoint_id: set() for info in infos}
    for part in batches(asked):
        scores = yield [("ZSCORE", keys.tags, member) for _, _, member in part]
        for (checkpoint_id, number, _), score in zip(part, scores, strict=True):
            if score is not None:
                filed[checkpoint_id].add(number)
    found = (info for info in infos if unfiled_in(info.metadata, filed[info.checkpoint_id]))
    return {info.checkpoint_id for info in found}


def _lost_in(reads: RedisReads, key: bytes) -> RedisPlan[dict[str, str]]:
    """Return what a listing names that is not to be found by its id."""
    keys, found, low = reads.keys, dict[str, str](), b"-"
    while page := (yield from page_of(key, low)):
        for part in batches(page):
            scores = yield [("ZSCORE", keys.ids, as_bytes(id_at(member))) for member in part]
            unlisted = [m for m, score in zip(part, scores, strict=True) if score is None]
            if unlisted:
                there = yield [("EXISTS", keys.record(id_at(member))) for member in unlisted]
                still = yield [("ZSCORE", key, member) for member in unlisted]
                for member, is_there, score in zip(unlisted, there, still, strict=True):
                    if score is not None:  # else it was removed meanwhile
                        found[id_at(member)] = LISTING_GONE if is_there else RECORD_GONE
        low = b"(" + page[-1]
    return found


def _lost_notes(reads: RedisReads, expired: set[str | bytes]) -> RedisPlan[list[tuple[str, str]]]:
    keys = reads.keys
    found: list[tuple[str, str]] = []
    low = b"-"
    while part := (yield from page_of(keys.notes, low, BATCH)):
        low = b"(" + part[-1]
        entries = [(member[:SEQ], *parted(member[SEQ:])) for member in part]
        there = yield [("EXISTS", keys.note(scope, key)) for _, scope, key in entries]
        ordered = yield [
            ("ZSCORE", keys.order(scope), seq + as_bytes(key)) for seq, scope, key in entries
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
