"""Hostile documents of a file store, and hostile objects: a good store made bad in one way."""

import os
import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

Bad = Callable[[Path], object]


def _records(change: Bad) -> Bad:
    return lambda root: [change(path) for path in sorted(root.glob("[!.]*/*/*.json"))]


def _notes(change: Bad) -> Bad:
    return lambda root: [change(path) for path in sorted((root / ".notes").rglob("[!.]*.json"))]


def _as(data: bytes) -> Bad:
    return lambda path: path.write_bytes(data)


def _edited(change: Callable[[bytes], bytes]) -> Bad:
    return lambda path: path.write_bytes(change(path.read_bytes()))


def _link(target: str) -> Bad:
    def make(path: Path) -> None:
        path.unlink()
        path.symlink_to(target)

    return make


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _hole(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(2**40)


def _flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(5):
        data[random.Random(len(data)).randrange(len(data))] ^= 4
    path.write_bytes(data)


DEEP = b"[" * 200_000
CHANGES: dict[str, Bad] = {
    "empty": _as(b""),
    "garbage": _as(b"\xff\xfe\x00\n\n"),
    "deep lists": _as(b'{"holdfast": 1, "info": ' + DEEP + b",\n"),
    "a number of a million digits": _as(b'{"holdfast": ' + b"9" * 1_000_000 + b"},\n"),
    "null": _as(b"null\n"),
    "of a format to come": _as(b'{"holdfast": 99, "info": {}, "bytes": 1, "sha256": ""},\n'),
    "cut off": _edited(lambda data: data[: len(data) // 2]),
    "longer": _edited(lambda data: data + b" " * 100),
    "of flipped bytes": _flipped,
    "without a first line": _edited(lambda data: data.replace(b"\n", b" ")),
    "a device without end": _link("/dev/zero"),
    "a link to itself": _link("loop"),
    "a pipe": _pipe,
    "a directory": _directory,
    "a hole of a terabyte": _hole,
}

DOCUMENTS: dict[str, Bad] = {f"records: {name}": _records(bad) for name, bad in CHANGES.items()}
DOCUMENTS |= {f"notes: {name}": _notes(bad) for name, bad in CHANGES.items()}


def _promise(data: bytes) -> Bad:
    return lambda root: (root / ".notes" / ".promise-0123456789abcdef").write_bytes(data)


DOCUMENTS |= {
    "a promise of garbage": _promise(b"\xff"),
    "a promise of deep lists": _promise(DEEP),
    "a promise of nothing": _promise(b"{}"),
    "a promise with paths": _promise(
        b'{"record": null, "places": [["../../../../../../tmp/victim", "../../x", 1]]}'
    ),
    "a promise of a record of another shape": _promise(b'{"record": [1], "places": []}'),
    "a promise of a record of numbers": _promise(b'{"record": [1, 2, 3, 4], "places": []}'),
    "a counter of garbage": lambda root: (root / ".notes" / ".lock").write_bytes(b"\xff" * 40),
    "a counter of many digits": lambda root: (root / ".notes" / ".lock").write_bytes(b"9" * 10_000),
    "a document in another place": lambda root: [
        path.rename(path.parent.parent / path.name) for path in root.glob("[!.]*/*/*.json")
    ],
    "a session that is a link upwards": lambda root: (root / "coder" / "up").symlink_to(".."),
    "an agent that is a link to all": lambda root: (root / "all").symlink_to("/"),
}
"""Documents that no save writes, and what lies beside them."""


def _files(root: Path) -> list[Path]:
    found = sorted(path for path in root.rglob("*-*") if path.is_file())
    assert found, f"no objects in {root}"
    return found


def _objects(change: Bad) -> Bad:
    return lambda root: [change(path) for path in _files(root)]


OBJECTS: dict[str, Bad] = {
    name: _objects(bad)
    for name, bad in {
        "empty": _as(b""),
        "garbage": _as(b"\x01\xff\xfe garbage"),
        "of unknown compression": _as(b"\x09abc"),
        "a stub again": _as(b"\x02" + bytes(24)),
        "a claim of a terabyte": _as(
            b"\x01" + bytes.fromhex("28b52ffde0") + (2**40).to_bytes(8, "little") + b"\x01\0\0"
        ),
        "cut off": _edited(lambda data: data[: len(data) // 2]),
        "longer": _edited(lambda data: data + b"x" * 1000),
        "of flipped bytes": _flipped,
        "gone": lambda path: path.unlink(),
        "a hole of a terabyte": _hole,
        "a directory": _directory,
    }.items()
}


def _swap(root: Path) -> None:
    files = _files(root)
    first = files[0].read_bytes()
    for before, after in pairwise(files):
        before.write_bytes(after.read_bytes())
    files[-1].write_bytes(first)


OBJECTS["swapped"] = _swap
OBJECTS["foreign ones beside"] = lambda root: [
    (root / name).write_bytes(b"x") for name in ("README", "not-ours", "00-11")
]
"""Objects that no upload made."""
