"""Where large files are cut: at places chosen by their content, so that an edit moves few cuts."""

from __future__ import annotations

from xxhash import xxh3_64_intdigest

SHORTEST = 128 * 1024
LONGEST = 640 * 1024
_DELIMITERS = (b"\n", b",", b"\x00", b" ")
_ENOUGH = 16
_SHORTEST_LINE = 8
"""Lines that are shorter on average are no lines, and too many to look at: zeros, for instance."""


def cut(data: bytes, is_end: bool) -> int:
    """How long the first piece of this is; 0 if more of it has to be seen.

    Among the lines that end in reach, the one of the least hash is the last of the piece. Whatever
    was inserted before, the same line is the least again, and all following pieces are the same.
    """
    if len(data) <= SHORTEST:
        return len(data) if is_end else 0
    if len(data) < LONGEST and not is_end:
        return 0
    reach = data[SHORTEST:LONGEST]
    for delimiter in _DELIMITERS:
        if _ENOUGH <= reach.count(delimiter) <= len(reach) // _SHORTEST_LINE:
            # The first and the last line may be cut off by the reach itself.
            lines = reach.split(delimiter)
            hashes = list(map(xxh3_64_intdigest, lines[1:-1]))
            place = hashes.index(min(hashes)) + 2
            return SHORTEST + sum(map(len, lines[:place])) + place
    return min(len(data), LONGEST)
