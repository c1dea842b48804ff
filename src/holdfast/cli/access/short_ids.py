"""Ids as listings show them: the shortest beginning that names each, to the library as well.

It holds all of an id's time, so that what is saved later takes no name from what was shown before;
and, without dashes, a double click takes the whole of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

from holdfast.ids import TIME_DIGITS, dashed, is_whole

if TYPE_CHECKING:
    from holdfast.model import CheckpointInfo
    from holdfast.stores.base import Store

_PAGE = 1000
_DIGITS = 32
_FEW = 50
"""Where a page of ids holds fewer that are shown, each is looked for by its time."""


class ShortIds:
    """Shortens the ids of some checkpoints, all to one length, so that columns line up."""

    def __init__(self, store: Store, shown: Iterable[CheckpointInfo]) -> None:
        wanted = sorted({_digits(i.checkpoint_id) for i in shown if is_whole(i.checkpoint_id)})
        self._length = TIME_DIGITS
        while wanted:
            # What differs in its time, or in what all begin with, needs not be read.
            first, last = wanted[0][:TIME_DIGITS], wanted[-1][:TIME_DIGITS]
            shared, before = dashed(first[: _alike(first, last)]), dashed(first.ljust(_DIGITS, "0"))
            page = store.match(shared, _PAGE, before)
            known = [_digits(each) for each in page if is_whole(each)]
            self._length = max(self._length, _needed(known, wanted))
            if len(page) < _PAGE:
                return
            seen = known[-1][:TIME_DIGITS] if known else ""
            left = [each for each in wanted if each[:TIME_DIGITS] >= seen]
            if left == wanted:  # more than a page of one time
                self._length = _DIGITS
                return
            if len(wanted) - len(left) < _FEW:  # what lies between them is of others
                self._look_at_each(store, left[:_FEW])
                left = left[_FEW:]
            wanted = left

    def _look_at_each(self, store: Store, wanted: list[str]) -> None:
        """Tell ids from those of the same time alone."""
        for time in sorted({each[:TIME_DIGITS] for each in wanted}):
            page = store.match(dashed(time), _PAGE)
            known = [_digits(each) for each in page if is_whole(each)]
            needed = _needed(known, wanted) if len(page) < _PAGE else _DIGITS
            self._length = max(self._length, needed)

    def __call__(self, checkpoint_id: str) -> str:
        if not is_whole(checkpoint_id):
            return checkpoint_id  # its maker's own name for it
        return _digits(checkpoint_id)[: self._length]


def short_id(store: Store, info: CheckpointInfo) -> str:
    """Return the shortest beginning of an id that names it, where it is shown alone."""
    return ShortIds(store, [info])(info.checkpoint_id)


def _digits(checkpoint_id: str) -> str:
    return checkpoint_id.replace("-", "")


def _needed(known: list[str], wanted: list[str]) -> int:
    """Return how many digits tell what is wanted apart from its neighbours."""
    told = set(wanted)
    return max(
        (_alike(*pair) + 1 for pair in pairwise(known) if not told.isdisjoint(pair)),
        default=0,
    )


def _alike(one: str, other: str) -> int:
    """Return with how many digits two ids begin alike."""
    unlike = (at for at, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
    return next(unlike, len(one))
