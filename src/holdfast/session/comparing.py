"""What changed between two checkpoints; of calls too, wherever in the log they are kept."""

from __future__ import annotations

from typing import Any

from holdfast.core.diff import Diff, diff_parts, is_below
from holdfast.model import CheckpointInfo
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.session.call_log import CallLog
from holdfast.session.volumes import Shelf, part
from holdfast.verbs import read

_CALLS = "effects"


def diff(engine: Engine, a: str, b: str) -> Plan[Diff]:
    """Return what changed from one checkpoint to another."""
    first, second = (yield from read.get_info(a)), (yield from read.get_info(b))
    found = yield from read.diff_of(engine, first, second)
    if not found.part(_CALLS):
        return found
    old, new = (yield from _log(engine, first)), (yield from _log(engine, second))
    if not (old.older or new.older):
        return found
    shelf = Shelf(engine, "raw")
    rest = yield from part(shelf, old.older.volumes, new.older.volumes)
    before = [*(yield from shelf.entries(rest.mine)), *old.recent]
    after = [*(yield from shelf.entries(rest.theirs)), *new.recent]
    shared = (old.older.volumes.count - len(rest.mine)) * shelf.length
    calls = diff_parts({_CALLS: before}, {_CALLS: after}, engine.allow_pickle)
    return _joined(found, calls, shared)


def _log(engine: Engine, info: CheckpointInfo) -> Plan[CallLog]:
    return CallLog((yield from read.restore_parts(engine, info, [_CALLS]))[_CALLS])


def _joined(found: Diff, calls: Diff, shared: int) -> Diff:
    """Return what was found, with what is to be said of calls instead of what it says of them."""
    whole = Diff()
    for name in ("changed", "removed", "added", "moved"):
        kept: dict[str, Any] = getattr(whole, name)
        kept |= {
            path: each for path, each in getattr(found, name).items() if not is_below(path, _CALLS)
        }
        for path, each in getattr(calls, name).items():
            kept[_placed(path, shared)] = _placed(each, shared) if name == "moved" else each
    return whole


def _placed(path: str, shared: int) -> str:
    """Return the path of a call in the whole log, which so many come before."""
    number, bracket, rest = path.removeprefix(f"{_CALLS}[").partition("]")
    return f"{_CALLS}[{int(number) + shared}{bracket}{rest}" if number.isdecimal() else path
