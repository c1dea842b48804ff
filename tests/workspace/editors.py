"""Editors at work in a directory, each in a process of its own: `python -m … KIND FILE`.

Each writes one version after another until it is told to stop, and tells of a version once the
call that wrote it has returned. A version is a line: its number and as many times a letter.
"""

import os
import signal
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

stopped = False


def version(number: int) -> bytes:
    """What a file holds after its writer's so-many-th save."""
    return b"%d %s\n" % (number, bytes([97 + number % 26]) * (number % 300))


def in_place(file: Path) -> Iterator[int]:
    """Keeps the file open and writes over it from its start, shorter or longer than before."""
    fd = None
    for number in count(1):
        if fd is None or number % 20 == 0:
            if fd is not None:
                os.close(fd)
            fd = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        data = version(number)
        os.ftruncate(fd, len(data))
        os.pwrite(fd, data, 0)
        yield number


def appending(file: Path) -> Iterator[int]:
    """Adds a line at a time, through a descriptor that is opened again now and then."""
    fd = None
    for number in count(1):
        if fd is None or number % 20 == 0:
            if fd is not None:
                os.close(fd)
            fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(fd, version(number))
        yield number


def replacing(file: Path) -> Iterator[int]:
    """Writes a new file beside and renames it, as vim and most editors do."""
    for number in count(1):
        beside = file.with_name(f".{file.name}.swp")
        beside.write_bytes(version(number))
        beside.rename(file)
        yield number


def main(kind: str, file: str) -> None:
    def stop(*_: object) -> None:
        global stopped
        stopped = True

    signal.signal(signal.SIGTERM, stop)
    writers = {"in_place": in_place, "appending": appending, "replacing": replacing}
    for number in writers[kind](Path(file)):
        os.write(1, b"%d\n" % number)
        if stopped:
            break
        if sys.stdin.readline() == "":
            break


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
