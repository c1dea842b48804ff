"""What is known of a value's bytes before it is packed: how many, and how deep it may nest.

A large state is packed part by part, and never as a whole just to learn that it is large. So what
the whole would be refused for has to be found in the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from holdfast.core.chunk_format import WHOLE, array_header, map_header
from holdfast.core.codec import Packer

MODERATE = 2**20
"""Bytes that may be there a few times over."""
_LOOKS, _OF_LIST, _OF_DICT = 6, 3, 16
_LIKELY = 16
"""Bytes of a part that is not looked at."""
BLOCK = 64 * 1024
"""Characters of a long text that are told apart."""
_NESTING = frozenset({list, dict})
"""What nests within the same message; objects begin one of their own."""
_SIZED = frozenset({*_NESTING, str, bytes})


def is_surely_longer(value: Any, limit: int) -> bool:
    """Return whether a value packs to more bytes than that, and likely to very many.

    A short look has to tell; where it does not, packing the value does, and costs little.

    >>> from holdfast.core.packed_size import is_surely_longer
    >>> is_surely_longer({"messages": ["hello"] * 900_000}, 3072)
    True
    """
    if type(value) not in _NESTING:
        return type(value) in _SIZED and len(value) > limit
    likely = _near_the_top(value)
    if likely <= limit:
        return False
    return max(likely, _along_the_largest(value)) > MODERATE and _is_longer(value, limit)


def _near_the_top(value: Any) -> float:
    """Return how many bytes a few looks count, from the top down."""
    likely: float = len(value) * _LIKELY
    waiting = [(value, 1.0)]
    for part, times in waiting:
        # At once, for others may be changing it.
        some = part[:_OF_LIST] if type(part) is list else tuple(islice(part.values(), _OF_DICT))
        if some:
            times *= max(len(part) / len(some), 1)  # those not looked at are likely alike
        for inner in some:
            if type(inner) in _SIZED:
                is_nesting = type(inner) in _NESTING
                likely += times * len(inner) * (_LIKELY if is_nesting else 1)
                if is_nesting and len(waiting) < _LOOKS:
                    waiting.append((inner, times))
    return likely


def _along_the_largest(value: Any) -> float:
    """Return how many bytes there are if all that looks like the largest part is like it.

    So the bytes of a tree are seen, most of which are far down.
    """
    times, likely = 1.0, 0.0
    for _ in range(_LOOKS):
        some = _beginning(value, _OF_LIST if type(value) is list else _OF_DICT)
        sized = [inner for inner in some if type(inner) in _SIZED and inner]
        if not sized:
            break
        largest = max(sized, key=len)
        alike = [each for each in sized if type(each) is type(largest)]
        times *= sum(map(len, alike)) / len(largest) * len(value) / len(some)
        if type(largest) not in _NESTING:
            return max(likely, times * len(largest))
        likely = times * len(largest) * _LIKELY
        value = largest
    return likely


def _is_longer(value: Any, limit: int) -> bool:
    """Return whether counting at least a byte for each part gives more bytes than that."""
    least, waiting = len(value), [value]
    while waiting and least <= limit:
        for inner in _beginning(waiting.pop(), limit):
            if type(inner) in _SIZED:
                least += len(inner)
                if type(inner) in _NESTING:
                    waiting.append(inner)
    return least > limit


def _beginning(part: Any, count: int) -> Any:
    """Return the first parts of a list or dict; at once, for others may be changing it."""
    return part[:count] if type(part) is list else tuple(islice(part.values(), count))


def is_plain_dict(value: dict[Any, Any]) -> bool:
    """Return whether all keys are strings that msgpack takes as they are."""
    if set(map(type, value)) > {str} or (value and type(next(iter(value))) is not str):
        return False
    try:
        "".join(value).encode()
    except UnicodeEncodeError:
        return False
    return True


def packed_in_parts(value: Any, pack: Callable[[Any], bytes]) -> Iterator[bytes]:
    """Yield what ``pack`` gives of a value in parts, so that little of it is there at a time.

    >>> from holdfast.core.codec import pack
    >>> from holdfast.core.packed_size import packed_in_parts
    >>> value = {"files": ["hello" * 900_000, b"hello" * 900_000]}
    >>> b"".join(packed_in_parts(value, pack)) == pack(value)
    True
    """
    cls = type(value)
    if cls is bytes and MODERATE < len(value) < 2**32:
        yield b"\xc6" + len(value).to_bytes(4, "big")
        yield value
    elif cls is str and len(value) > MODERATE:
        yield from _packed_text(value, pack)
    elif cls is list and is_surely_longer(value, WHOLE):
        yield array_header(len(value))
        for part in value:
            yield from packed_in_parts(part, pack)
    elif cls is dict and is_surely_longer(value, WHOLE) and is_plain_dict(value):
        yield map_header(len(value))
        for key, part in value.items():
            yield pack(key)
            yield from packed_in_parts(part, pack)
    else:
        yield pack(value)


def _packed_text(text: str, pack: Callable[[Any], bytes]) -> Iterator[bytes]:
    try:
        size = len(text) if text.isascii() else sum(map(len, utf8_blocks(text)))
    except UnicodeEncodeError:
        size = 2**32
    if size < 2**32:
        yield b"\xdb" + size.to_bytes(4, "big")
        yield from utf8_blocks(text)
    else:
        yield pack(text)


def utf8_blocks(text: str) -> Iterator[bytes]:
    """Yield a text as UTF-8 in parts of so many characters."""
    for at in range(0, len(text), BLOCK):
        yield text[at : at + BLOCK].encode()


class Shells:
    """Packs parts within lists, so that they may nest as deep as they may in the whole."""

    def __init__(self, packer: Packer) -> None:
        self._pack = packer.pack
        self._shells: list[tuple[Any, list[Any]]] = []

    def pack(self, value: Any, around: int) -> bytes:
        """Return the bytes of a value that has that many lists and dicts around it."""
        if not around or type(value) not in _NESTING:
            return self._pack(value)
        while len(self._shells) < around:
            inner: list[Any] = [None]
            outer: Any = inner
            for _ in self._shells:
                outer = [outer]
            self._shells.append((outer, inner))
        outer, inner = self._shells[around - 1]
        inner[0] = value
        return self._pack(outer)[around:]
