"""Hostile values on a Redis server: each makes a good store bad in one way."""

from collections.abc import Callable
from typing import Any

import ormsgpack

from holdfast.stores.redis.keys import Keys

Bad = Callable[[Any, Keys], object]
GARBAGE = b"\xff\xfe\x00garbage\x80"


def _every(pattern: bytes, change: Callable[[Any, bytes], object]) -> Bad:
    """Change all keys whose names go on so after the prefix."""

    def make(client: Any, keys: Keys) -> None:
        lead = b"{%s}:" % keys.prefix.encode()
        start = keys._chunk if pattern == b"c:" else lead + pattern
        escaped = start.replace(b"[", b"\\[").replace(b"*", b"\\*")
        found = list(client.scan_iter(match=escaped + b"*"))
        assert found, f"no key begins with {start!r}"
        for key in found:
            change(client, key)

    return make


def _as(value: bytes) -> Callable[[Any, bytes], object]:
    return lambda client, key: (client.delete(key), client.set(key, value))


def _as_list(client: Any, key: bytes) -> None:
    client.delete(key)
    client.rpush(key, "a", "b")


def _cut(client: Any, key: bytes) -> None:
    client.set(key, client.get(key)[:30])


def _longer(client: Any, key: bytes) -> None:
    client.set(key, client.get(key) + b"x" * 1000)


def _swapped(client: Any, key: bytes) -> None:
    client.set(key, client.get(key)[::-1])


def _with_member(member: bytes, score: float = 0) -> Callable[[Any, bytes], object]:
    return lambda client, key: client.zadd(key, {member: score})


def _unpacked(change: Callable[[list[Any]], object]) -> Callable[[Any, bytes], object]:
    """A record with another field."""

    def make(client: Any, key: bytes) -> None:
        record = ormsgpack.unpackb(client.get(key))
        change(record)
        client.set(key, ormsgpack.packb(record))

    return make


def _field(number: int, value: Any) -> Callable[[Any, bytes], object]:
    return _unpacked(lambda record: record.__setitem__(number, value))


LISTS = (
    *(b"all", b"ids", b"a:", b"s:", b"sessions", b"agents", b"notes", b"o:", b"children"),
    *(b"touched", b"tags"),
)
STRINGS = {"records": b"r:", "notes": b"n:", "chunks": b"c:"}
DEEP = b"\x91" * 100_000

VALUES: dict[str, Bad] = {
    "a last place that is garbage": _every(b"last", _as(GARBAGE)),
    "totals that are no number": lambda c, k: c.hset(k.totals, "size", "many"),
    "totals beyond all bounds": lambda c, k: c.hset(k.totals, "size", str(2**63 - 1)),
    "a format of another time": lambda c, k: c.set(k.format, "999"),
    "a format that is garbage": lambda c, k: c.set(k.format, GARBAGE),
    "a format that is a list": lambda c, k: _as_list(c, k.format),
    "chunks listed at a time that is none": lambda c, k: c.zadd(k.chunks, {b"x": float("inf")}),
    "chunks listed under names that are none": lambda c, k: c.zadd(k.chunks, {GARBAGE: 5}),
    "an expiry of garbage": lambda c, k: c.zadd(k.expiry, {b"r" + GARBAGE: 5}),
    "an expiry of a list": lambda c, k: c.zadd(k.expiry, {b"r" + ormsgpack.packb([1, 2]): 5}),
    "an expiry of eight things": lambda c, k: c.zadd(
        k.expiry, {b"r" + ormsgpack.packb([[], 1, {}, None, 5, b"", "x", -1]): 5}
    ),
    "an expiry of a note that is garbage": lambda c, k: c.zadd(k.expiry, {b"n" + GARBAGE: 5}),
    "an expiry of nothing known": lambda c, k: c.zadd(k.expiry, {b"zzz": 5}),
    "sessions filed up to garbage": lambda c, k: c.set(k.filing, GARBAGE),
    "sessions filed up to a list": lambda c, k: _as_list(c, k.filing),
    "a session filed under garbage": lambda c, k: c.hset(k.filed, GARBAGE, GARBAGE),
    "sessions filed as a list": lambda c, k: _as_list(c, k.filed),
    "a record that lists nest in": _every(b"r:", _as(DEEP)),
    "a record that claims a billion elements": _every(b"r:", _as(b"\xdd\x3b\x9a\xca\x00\xc0")),
    "an agent that is a number": _every(b"r:", _field(1, 7)),
    "a session that is a list": _every(b"r:", _field(2, [1])),
    "a parent that is a number": _every(b"r:", _field(3, 7)),
    "a parent that is itself": lambda c, k: own_parents(c, k),
    "a framework that is a list": _every(b"r:", _field(4, [])),
    "a version that is a number": _every(b"r:", _field(5, 7)),
    "a step that is text": _every(b"r:", _field(6, "x")),
    "metadata that is a list": _every(b"r:", _field(8, [1])),
    "a time beyond all time": _every(b"r:", _field(9, 2**62)),
    "a time that is text": _every(b"r:", _field(9, "now")),
    "a time to live that is not a number": _every(b"r:", _field(10, float("nan"))),
    "a time to live that is text": _every(b"r:", _field(10, "x")),
    "a target that is a list": _every(b"r:", _field(11, [])),
    "a checksum that is text": _every(b"r:", _field(13, "x")),
    "a root that is a number": _every(b"r:", _field(14, 7)),
    "a root of no bytes": _every(b"r:", _field(14, b"")),
    "a size below nothing": _every(b"r:", _field(15, -5)),
    "a size that is text": _every(b"r:", _field(15, "x")),
    "fields to come": _every(b"r:", _unpacked(lambda record: record.append({"zone": 1}))),
    "fields to come that are there": _every(
        b"r:", _unpacked(lambda record: record.append({"agent_id": "other"}))
    ),
    "fields to come that are a number": _every(b"r:", _unpacked(lambda record: record.append(7))),
    "fields to come without names": _every(
        b"r:", lambda c, key: c.set(key, b"\xdc\x00\x11" + c.get(key)[3:] + b"\x81\x07\x07")
    ),
    "fields to come, twice": _every(
        b"r:", _unpacked(lambda record: record.extend([{"zone": 1}, {"zone": 2}]))
    ),
    "notes without a place": _every(b"n:", lambda c, key: c.set(key, c.get(key)[17:])),
    "notes at a place that is none": _every(
        b"n:", lambda c, key: c.set(key, b"z" * 17 + c.get(key)[17:])
    ),
    "chunks that claim a terabyte": _every(
        b"c:",
        lambda c, key: c.set(
            key, bytes(8) + b"\x01" + bytes.fromhex("28b52ffde0") + (2**40).to_bytes(8, "little")
        ),
    ),
    "a wake that is a list": lambda c, k: _as_list(c, k.wake),
    "leases that are lists": _every(b"n:/session", _as_list),
}
for name in LISTS:
    shown = name.decode().strip(":")
    VALUES[f"{shown}: text in place of a listing"] = _every(name, _as(b"text"))
    VALUES[f"{shown}: a member that is garbage"] = _every(name, _with_member(b"0" * 20 + GARBAGE))
    VALUES[f"{shown}: a member that is short"] = _every(name, _with_member(b"x"))
    VALUES[f"{shown}: a member that is empty"] = _every(name, _with_member(b""))
    VALUES[f"{shown}: a member that leads nowhere"] = _every(
        name, _with_member(b"0" * 40 + b"\0nowhere")
    )
for what, pattern in STRINGS.items():
    VALUES[f"{what} that are lists"] = _every(pattern, _as_list)
    VALUES[f"{what} that are empty"] = _every(pattern, _as(b""))
    VALUES[f"{what} that are garbage"] = _every(pattern, _as(GARBAGE))
    VALUES[f"{what} that are cut off"] = _every(pattern, _cut)
    VALUES[f"{what} that go on"] = _every(pattern, _longer)
    VALUES[f"{what} that are turned round"] = _every(pattern, _swapped)
    VALUES[f"{what} that are gone"] = _every(pattern, lambda client, key: client.delete(key))


def own_parents(client: Any, keys: Keys) -> None:
    """Every record is its own parent."""
    lead = keys.record("")

    def change(client: Any, key: bytes) -> None:
        record = ormsgpack.unpackb(client.get(key))
        record[3] = key[len(lead) :].decode()
        client.set(key, ormsgpack.packb(record))

    _every(b"r:", change)(client, keys)
