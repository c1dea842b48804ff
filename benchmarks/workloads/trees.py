"""Directories such as agents work in, made of nothing but a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

FILES_IN_FOLDER = 12
_KINDS = (("py", 0.4), ("js", 0.3), ("md", 0.1), ("json", 0.15), ("png", 0.05))


class Scribe:
    """Writes files that compress about as source code does."""

    def __init__(self, seed: str) -> None:
        self._chance = chance = random.Random(seed)
        self._written = 0
        words = [
            "".join(chance.choices("abcdefghijklmnoprstuvwy", k=k % 9 + 3)) for k in range(3000)
        ]
        signs = [
            "(",
            ")",
            " = ",
            ".",
            ", ",
            ": ",
            "[",
            "]",
            " + ",
            "self.",
            "return ",
            "if ",
            "    ",
        ]
        self._lines = [
            "".join(p for word in chance.choices(words, k=5) for p in (word, chance.choice(signs)))
            + "\n"
            for _ in range(40_000)
        ]

    def text(self, size: int) -> bytes:
        # Files that were written one after another are alike, as those of a package are.
        start = self._written // FILES_IN_FOLDER * 97 % len(self._lines)
        self._written += 1
        near = self._lines[start : start + 400]
        lines = self._chance.choices(near, k=size // 48 + 1)
        lines[::4] = self._chance.choices(self._lines, k=len(lines[::4]))
        return "".join(lines).encode()[:size]

    def content(self, kind: str, size: int) -> bytes:
        return self._chance.randbytes(size) if kind == "png" else self.text(size)

    def sizes(self, files: int, total: int) -> list[int]:
        """Many small files and a few large ones, as repositories have them."""
        raw = [self._chance.lognormvariate(0, 1.4) for _ in range(files)]
        scale = total / sum(raw)
        return [max(20, int(size * scale)) for size in raw]

    def kind(self) -> str:
        return self._chance.choices([k for k, _ in _KINDS], [w for _, w in _KINDS])[0]


def names(files: int, top: str, scribe: Scribe) -> Iterator[str]:
    """Paths in folders of a dozen files, some levels deep."""
    for number in range(files):
        folder = number // FILES_IN_FOLDER
        yield f"{top}/pkg{folder % 40}/mod{folder // 40}/part{folder % 7}/f{number}.{scribe.kind()}"


def make_tree(directory: Path, files: int, total: int, seed: str = "tree") -> list[Path]:
    """Write so many files of so many bytes; most of a large tree is a node_modules."""
    scribe = Scribe(seed)
    own = files if files < 10_000 else files // 5
    paths = [*names(own, "src", scribe), *names(files - own, "node_modules", scribe)]
    made: list[Path] = []
    for path, size in zip(paths, scribe.sizes(files, total), strict=True):
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(scribe.content(file.suffix[1:], size))
        made.append(file)
    return made


def make_large(file: Path, size: int, seed: str = "large") -> None:
    """One file of random bytes, such as a model or a database dump."""
    chance = random.Random(seed)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as out:
        while size > 0:
            size -= out.write(chance.randbytes(min(size, 2**22)))


def edit(file: Path, number: int) -> None:
    """Change a file as an agent does: a line more, somewhere."""
    with file.open("ab") as out:
        out.write(f"\n# edit {number}\n".encode())


def edit_in_place(file: Path, at: int, number: int) -> None:
    """Change a few bytes in the middle of a file."""
    with file.open("r+b") as out:
        out.seek(at)
        out.write(f"edited {number:09}".encode())
