"""How deep stored data may nest: its reader recurses in C, where too deep is the end.

Objects nest in extensions, each unpacked by itself; lists and dicts nest inside one. The first few
extensions may hold as much nesting as msgpack allows. Below them it is measured beforehand.
"""

from __future__ import annotations

from holdfast.errors import CheckpointIntegrityError

MAX_KINDS = 170
_FREE_KINDS = 4
_MAX_CONTAINERS = 3200


class Descent:
    """Counts the levels that a reader has gone down into."""

    __slots__ = ("_containers", "_measured")

    def __init__(self) -> None:
        self._containers = 0
        self._measured: list[int] = []

    def down(self, data: bytes) -> None:
        """Enter an extension with this content, or refuse to."""
        levels = containers(data) if len(self._measured) >= _FREE_KINDS else 0
        self._containers += levels
        self._measured.append(levels)
        if len(self._measured) > MAX_KINDS or self._containers > _MAX_CONTAINERS:
            raise CheckpointIntegrityError(None, "values nest too deep")

    def up(self) -> None:
        """Leave the extension that was entered last."""
        self._containers -= self._measured.pop()


# Bytes of a value that has one header byte and no content of its own length.
_FIXED = {0xCA: 5, 0xCB: 9, 0xCC: 2, 0xCD: 3, 0xCE: 5, 0xCF: 9, 0xD0: 2, 0xD1: 3, 0xD2: 5, 0xD3: 9}
_FIXED |= {0xD4: 3, 0xD5: 4, 0xD6: 6, 0xD7: 10, 0xD8: 18}
# Bytes that give the length, and bytes between them and the content.
_SIZED = {0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0), 0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1)}
_SIZED |= {0xD9: (1, 0), 0xDA: (2, 0), 0xDB: (4, 0)}
# Bytes that give the count, and values for each.
_COUNTED = {0xDC: (2, 1), 0xDD: (4, 1), 0xDE: (2, 2), 0xDF: (4, 2)}


def containers(data: bytes) -> int:
    """Return how many lists and dicts stand within each other, as far as the data can be read."""
    at, deepest = 0, 0
    open_: list[int] = []
    while at < len(data):
        head = data[at]
        inside = 0
        if 0x80 <= head <= 0x9F:
            inside = (head & 0x0F) * (2 if head < 0x90 else 1)
            at += 1
        elif 0xA0 <= head <= 0xBF:
            at += 1 + (head & 0x1F)
        elif head in _COUNTED:
            width, each = _COUNTED[head]
            inside = int.from_bytes(data[at + 1 : at + 1 + width], "big") * each
            at += 1 + width
        elif head in _SIZED:
            width, between = _SIZED[head]
            at += 1 + width + between + int.from_bytes(data[at + 1 : at + 1 + width], "big")
        else:
            at += _FIXED.get(head, 1)
        if inside:
            open_.append(inside)
            deepest = max(deepest, len(open_))
            continue
        while open_:
            open_[-1] -= 1
            if open_[-1]:
                break
            open_.pop()
        else:
            break
    return deepest
