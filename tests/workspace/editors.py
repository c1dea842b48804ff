"""Editors at work in a directory, each a process of its own: `python -m … KIND FILE PROGRESS`.

Each writes one version after another without a pause, and after each tells its number, in eight
bytes of a file that others read. A version begins with its number in a line of its own.
"""

import mmap
import os
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

OPENED_AGAIN = 50


def version(number: int) -> bytes:
    """What is written in the so-many-th save."""
    return b"%d %s\n" % (number, bytes([97 + number % 26]) * (number % 300))


def in_place(file: Path) -> Iterator[int]:
    """Writes over the file, which is opened again now and then, and rests on the disk so long."""
    fd = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    for number in count(1):
        if number % OPENED_AGAIN == 0:
            os.close(fd)
            fd = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        data = version(number)
        os.pwrite(fd, data, 0)
        os.ftruncate(fd, len(data))
        yield number


def appending(file: Path) -> Iterator[int]:
    """Adds a line at a time, through a descriptor that is opened again now and then."""
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for number in count(1):
        if number % OPENED_AGAIN == 0:
            os.close(fd)
            fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(fd, version(number))
        yield number


def replacing(file: Path) -> Iterator[int]:
    """Writes a new file beside and renames it, as vim and most editors do."""
    for number in count(1):
        beside = file.with_name(".swap-of-an-editor")
        beside.write_bytes(version(number))
        beside.rename(file)
        yield number


def main(kind: str, file: str, progress: str) -> None:
    writers = {"in_place": in_place, "appending": appending, "replacing": replacing}
    with open(progress, "r+b") as opened, mmap.mmap(opened.fileno(), 8) as told:
        for number in writers[kind](Path(file)):
            told[:] = number.to_bytes(8, "little")


if __name__ == "__main__":
    main(*sys.argv[1:])
