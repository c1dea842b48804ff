"""Keys chosen to collide: a set or dict of them would take quadratic time to make.

Strings and bytes hash by a secret of the process; numbers, and all that is made of numbers, do not.
So before such elements are put into a set or dict, the steps that CPython would take are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

STEPS_AT_MOST = 48
"""Jumps from one place of the table to another, for each element on average.

Random numbers take one or two, multiples of high powers of two up to twenty.
"""
FEW = 512
"""So many elements are not looked at: if all of them collide, it is soon over all the same."""

_STEPS_OF_FEW = FEW * FEW // 2

_SECRET_HASHES = frozenset({str, bytes})
_LINEAR_PROBES = 9


def check_set(elements: Sequence[Any], steps: int = STEPS_AT_MOST) -> None:
    """Refuse elements of which a set would take far longer to make than of others."""
    if len(elements) > FEW:
        _check(elements, steps, _set_tables(len(elements)), _LINEAR_PROBES)


def check_keys(keys: Sequence[Any], steps: int = STEPS_AT_MOST) -> None:
    """Refuse keys of which a dict would take far longer to make than of others."""
    if len(keys) > FEW:
        _check(keys, steps, _dict_tables(len(keys)), 0)


def _check(elements: Sequence[Any], steps: int, tables: list[_Table], linear: int) -> None:
    if _SECRET_HASHES.issuperset(map(type, elements)):
        return
    hashes = list(map(hash, elements))
    # Earlier tables are so much smaller that what is done in them counts little.
    for mask, held in tables[-2:]:
        first = hashes[:held]
        has_own_places = len(set(map(mask.__and__, first))) == held
        if not has_own_places and not _are_entered(first, mask, linear, steps):
            raise ValueError(f"{len(elements)} elements that collide, as if chosen to")


_Table = tuple[int, int]
"""The mask of a table, and how many elements it comes to hold."""


def _set_tables(count: int) -> list[_Table]:
    """Return the tables that CPython makes on the way to a set of so many elements."""
    tables, mask = [], 7
    while (full := -(-mask * 3 // 5)) < count:
        tables.append((mask, full))
        mask = (1 << (full * (2 if full > 50_000 else 4)).bit_length()) - 1
    return [*tables, (mask, count)]


def _dict_tables(count: int) -> list[_Table]:
    tables, mask = [], 7
    while (full := (mask + 1) * 2 // 3) < count:
        tables.append((mask, full))
        mask = (1 << (full * 3 - 1).bit_length()) - 1
    return [*tables, (mask, count)]


def _are_entered(hashes: list[int], mask: int, linear: int, steps: int) -> bool:
    """Enter hashes into a table as CPython does, unless it takes too many steps."""
    taken = bytearray(mask + 1)
    left = _STEPS_OF_FEW
    for value in hashes:
        left += steps
        at = value & mask
        perturb = value & 0xFFFF_FFFF_FFFF_FFFF
        while taken[at]:
            if linear and at + linear <= mask:
                free = taken.find(0, at, at + linear + 1)
                if free >= 0:
                    at = free
                    break
            perturb >>= 5
            at = (at * 5 + 1 + perturb) & mask
            left -= 1
            if left < 0:
                return False
        taken[at] = 1
    return True
