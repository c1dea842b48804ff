"""Where content is cut: at places that the content itself chooses, so that an edit moves few cuts.

Three things are cut, each by a rule of its own, and no rule may change: equal content has to give
equal chunks, whichever version cut it. Elements of lists, dicts and texts are met one by one, and
each decides for itself (``ends_page``). Entries of an index are named by hashes already, which
decide without hashing again (``ends_group``). Of a large file only a window is in memory, so that
the best place within it is taken (``first_piece``), which bounds the pieces at both ends.
"""

from __future__ import annotations

from xxhash import xxh3_64_intdigest

PAGE = 16384
"""Bytes of a page on average."""
MAX_PAGE = 4 * PAGE
TAIL_PAGE = 1024
"""Bytes of the pages behind the last boundary, which grow as content is appended."""

FANOUT = 16
"""Entries of an index on average."""
MAX_FANOUT = 3 * FANOUT

SHORTEST_PIECE = 128 * 1024
LONGEST_PIECE = 640 * 1024

_PAGE_BOUNDARY = 2**64 // PAGE
_ELEMENT = 256
LONGEST_ELEMENT = 4096
_DELIMITERS = (b"\n", b",", b"\x00", b" ")
_ENOUGH = 16
_SHORTEST_LINE = 8
"""Lines that are shorter on average are no lines, and too many to look at: zeros, for instance."""


def ends_page(key: bytes, size: int) -> bool:
    """Return whether an element of that size ends its page, by the bytes that it hangs on.

    The longer an element, the likelier, so that pages are about as long whatever they hold.
    """
    return xxh3_64_intdigest(key) < size * _PAGE_BOUNDARY


def ends_group(name: bytes, count: int) -> bool:
    """Return whether an index ends behind the chunk of that name, its entry of that number."""
    return count > 1 and (name[0] % FANOUT == 0 or count == MAX_FANOUT)


def element_end(data: bytes, at: int) -> int:
    """Return where an element of long text or bytes ends, behind a line if one ends in reach.

    0 for the last one, which more content could lengthen.
    """
    end = data.find(b"\n", at + _ELEMENT, at + LONGEST_ELEMENT) + 1
    if end or at + LONGEST_ELEMENT > len(data):
        return end
    return at + LONGEST_ELEMENT


def first_piece(data: bytes, is_end: bool) -> int:
    """Return how long the first piece of a file is; 0 if more of it has to be seen.

    Among the lines that end in reach, the one of the least hash is the last of the piece. Whatever
    was inserted before, the same line is the least again, and all following pieces are the same.
    """
    if len(data) <= SHORTEST_PIECE:
        return len(data) if is_end else 0
    if len(data) < LONGEST_PIECE and not is_end:
        return 0
    reach = data[SHORTEST_PIECE:LONGEST_PIECE]
    for delimiter in _DELIMITERS:
        if _ENOUGH <= reach.count(delimiter) <= len(reach) // _SHORTEST_LINE:
            # The first and the last line may be cut off by the reach itself.
            lines = reach.split(delimiter)
            hashes = list(map(xxh3_64_intdigest, lines[1:-1]))
            place = hashes.index(min(hashes)) + 2
            return SHORTEST_PIECE + sum(map(len, lines[:place])) + place
    return min(len(data), LONGEST_PIECE)
