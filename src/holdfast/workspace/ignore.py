"""Which files are left out: the rules of .gitignore and .holdfastignore, as git reads them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from xxhash import xxh3_128_digest

FILES = (b".gitignore", b".holdfastignore")
"""Of one directory, the latter has the last word."""
LONGEST = 2**20
"""So many bytes of such a file are read."""


@dataclass(frozen=True, slots=True)
class _Rule:
    regex: bytes
    keeps: bool
    """A rule that begins with !, so that what it fits is not left out."""
    directories_only: bool


class IgnoreRules:
    """The rules that hold in a directory: those of its own files, and those from above it."""

    def __init__(self, outer: IgnoreRules | None, texts: Iterable[bytes], directory: bytes) -> None:
        self._outer = outer
        self._texts = list(texts)
        self._below = len(directory) + 1 if directory else 0
        above = outer.fingerprint if outer is not None else b""
        self.fingerprint: bytes = xxh3_128_digest(
            above + b"".join(map(xxh3_128_digest, self._texts))
        )
        """Equal for equal rules."""

    @cached_property
    def _groups(self) -> list[tuple[bool, re.Pattern[bytes] | None, re.Pattern[bytes] | None]]:
        """Last rule first, neighbours that say the same in one expression; for files and dirs."""
        runs: list[list[_Rule]] = []
        for rule in reversed([rule for text in self._texts for rule in parse(text)]):
            if runs and runs[-1][0].keeps == rule.keeps:
                runs[-1].append(rule)
            else:
                runs.append([rule])
        return [
            (
                run[0].keeps,
                _either([rule.regex for rule in run if not rule.directories_only]),
                _either([rule.regex for rule in run]),
            )
            for run in runs
        ]

    def leave_out(self, path: bytes, is_directory: bool) -> bool:
        """Return whether a path of the workspace is ignored; the directories above it are not."""
        rules: IgnoreRules | None = self
        while rules is not None:
            name = path[rules._below :]
            for keeps, of_files, of_directories in rules._groups:
                pattern = of_directories if is_directory else of_files
                if pattern is not None and pattern.fullmatch(name):
                    return not keeps
            rules = rules._outer
        return False


class NoRules(IgnoreRules):
    """Leaves nothing out."""

    def __init__(self) -> None:
        super().__init__(None, (), b"")

    def leave_out(self, path: bytes, is_directory: bool) -> bool:
        return False


class IgnoreEverything(IgnoreRules):
    """Holds in a directory that is itself left out."""

    def __init__(self) -> None:
        super().__init__(None, (b"*",), b"")

    def leave_out(self, path: bytes, is_directory: bool) -> bool:
        return True


def _either(regexes: list[bytes]) -> re.Pattern[bytes] | None:
    return (
        re.compile(b"|".join(b"(?:%b)" % regex for regex in regexes), re.DOTALL)
        if regexes
        else None
    )


def parse(text: bytes) -> list[_Rule]:
    """Return the rules of a file; lines that can never fit anything are dropped, as git does."""
    lines = text.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    rules = (_rule(line.removesuffix(b"\r")) for line in lines)
    return [rule for rule in rules if rule is not None]


def _rule(line: bytes) -> _Rule | None:
    if line.startswith(b"#"):
        return None
    line = _without_trailing_spaces(line)
    keeps = line.startswith(b"!")
    if keeps:
        line = line[1:]
    directories_only = line.endswith(b"/")
    if directories_only:
        line = line[:-1]
    anchored = b"/" in line
    line = line.removeprefix(b"/")
    regex = _translate(line, anchored)
    if not line or regex is None:
        return None
    return _Rule(regex if anchored else b"(?:.*/)?" + regex, keeps, directories_only)


def _without_trailing_spaces(line: bytes) -> bytes:
    bare = line.rstrip(b" ")
    slashes = len(bare) - len(bare.rstrip(b"\\"))
    return bare + b" " if slashes % 2 and len(bare) < len(line) else bare


def _translate(glob: bytes, anchored: bool) -> bytes | None:
    """Return a regular expression for a glob; None if it fits nothing."""
    out: list[bytes] = []
    at, end = 0, len(glob)
    while at < end:
        char = glob[at : at + 1]
        if char == b"*":
            stars = at
            while glob[at : at + 1] == b"*":
                at += 1
            opens = stars == 0 or glob[stars - 1 : stars] == b"/"
            if anchored and at - stars >= 2 and opens and glob[at : at + 1] in (b"/", b""):
                if at == end:
                    out.append(b".+")
                else:
                    out.append(b"(?:.*/)?")
                    at += 1
            else:
                out.append(b"[^/]*")
            continue
        if char == b"[":
            bracket, at = _bracket(glob, at + 1)
            if bracket is None:
                return None
            out.append(bracket)
            continue
        if char == b"\\":
            at += 1
            char = glob[at : at + 1]
            if not char:
                return None
            out.append(re.escape(char))
        else:
            out.append(b"[^/]" if char == b"?" else re.escape(char))
        at += 1
    return b"".join(out)


_CLASSES = {
    b"alnum": rb"0-9A-Za-z",
    b"alpha": rb"A-Za-z",
    b"blank": rb" \t",
    b"cntrl": rb"\x00-\x1f\x7f",
    b"digit": rb"0-9",
    b"graph": rb"\x21-\x7e",
    b"lower": rb"a-z",
    b"print": rb"\x20-\x7e",
    b"punct": rb"!-/:-@\[-`{-~",
    b"space": rb"\s",
    b"upper": rb"A-Z",
    b"xdigit": rb"0-9A-Fa-f",
}


def _bracket(glob: bytes, at: int) -> tuple[bytes | None, int]:
    """Return the class that begins after a [, and where it ends."""
    negated = glob[at : at + 1] in (b"!", b"^")
    at += negated
    parts: list[bytes] = []
    first = True
    while first or glob[at : at + 1] != b"]":
        first = False
        if glob[at : at + 2] == b"[:":
            close = glob.find(b":]", at)
            name = _CLASSES.get(glob[at + 2 : close]) if close >= 0 else None
            if name is None:
                return None, at
            parts.append(name)
            at = close + 2
            continue
        low, at = _member(glob, at)
        if low is None:
            return None, at
        if glob[at : at + 1] == b"-" and glob[at + 1 : at + 2] not in (b"]", b""):
            high, at = _member(glob, at + 1)
            if high is None:
                return None, at
            if low <= high:
                parts.append(re.escape(low) + b"-" + re.escape(high))
        else:
            parts.append(re.escape(low))
    inner = b"".join(parts)
    if not inner:
        return (b"[^/]" if negated else b"(?!)"), at + 1
    return b"(?!/)[%b%b]" % (b"^" if negated else b"", inner), at + 1


def _member(glob: bytes, at: int) -> tuple[bytes | None, int]:
    if glob[at : at + 1] == b"\\":
        at += 1
    char = glob[at : at + 1]
    return (char or None), at + 1
