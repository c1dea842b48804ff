"""Small edits in a JSON text that leave all the rest as it is, byte by byte."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

_SPACE = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s,\]}]+')


@dataclass
class Node:
    """A value in a text: where it is, and its members if it is an object or an array."""

    start: int
    end: int = 0
    members: list[Member] = field(default_factory=list)

    def get(self, key: str) -> Node | None:
        """The value of a member of an object."""
        return next((each.value for each in self.members if each.key == key), None)


@dataclass
class Member:
    """A member of an object or an array; of an object with its key."""

    start: int
    key: str | None
    value: Node


def parse(text: str) -> Node:
    """The values of a text that is known to be JSON."""
    return _value(text, _skip(text, 0))


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def _value(text: str, at: int) -> Node:
    node = Node(at)
    if text[at] not in "{[":
        match = _SCALAR.match(text, at)
        assert match is not None
        node.end = match.end()
        return node
    close = "}" if text[at] == "{" else "]"
    at = _skip(text, at + 1)
    while text[at] != close:
        start, key = at, None
        if close == "}":
            name = _value(text, at)
            key = json.loads(text[name.start : name.end])
            at = _skip(text, _skip(text, name.end) + 1)
        member = Member(start, key, _value(text, at))
        node.members.append(member)
        at = _skip(text, member.value.end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    node.end = at + 1
    return node


def append(text: str, node: Node, value: Any, key: str | None = None) -> str:
    """A text with one more member at the end of an object or an array.

    Behind others it stands on a line of its own if they do. In a container that was empty a blank
    stands before it, which tells ``remove_at`` that the container was there.
    """
    if not node.members:
        at = node.start + 1
        return f"{text[:at]} {_written(text, value, key, None)}{text[at:]}"
    last = node.members[-1]
    line = _line_before(text, last.start)
    end = last.value.end
    return f"{text[:end]},{line or ' '}{_written(text, value, key, line)}{text[end:]}"


def _line_before(text: str, at: int) -> str | None:
    """The line end and the indentation before a place; None if more stands before it."""
    found = re.search(r"\r?\n[ \t]*$", text[:at])
    return found[0] if found else None


def _written(text: str, value: Any, key: str | None, line: str | None) -> str:
    name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    if line is None:
        return name + json.dumps(value, ensure_ascii=False)
    first = parse(text).members[0].start
    step = (_line_before(text, first) or "").lstrip("\r\n") or "  "
    return name + json.dumps(value, ensure_ascii=False, indent=step).replace("\n", line)


def remove_at(text: str, path: Sequence[str | int]) -> str:
    """A text without the member at a path, and without containers that were made for it."""
    nodes = [parse(text)]
    for key in path[:-1]:
        nodes.append(nodes[-1].members[_index(nodes[-1], key)].value)
    depth = len(path) - 1
    while depth and len(nodes[depth].members) == 1 and not _was_empty(text, nodes[depth]):
        depth -= 1
    return _removed(text, nodes[depth], _index(nodes[depth], path[depth]))


def _index(node: Node, key: str | int) -> int:
    if isinstance(key, int):
        return key
    return next(index for index, each in enumerate(node.members) if each.key == key)


def _removed(text: str, node: Node, index: int) -> str:
    member = node.members[index]
    if index:
        return text[: node.members[index - 1].value.end] + text[member.value.end :]
    if len(node.members) > 1:
        return text[: member.start] + text[node.members[1].start :]
    return text[: node.start + 1] + text[member.value.end :]


def _was_empty(text: str, node: Node) -> bool:
    return text[node.start + 1 : node.members[0].start] == " "
