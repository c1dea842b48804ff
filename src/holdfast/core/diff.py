"""What changed between two states, by path; ``core/differ.py`` finds it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from holdfast.core.safe_repr import shortened, shown

_LINES_SHOWN = 60
_ROWS_SHOWN = 100
_TABLES = ("added", "removed", "changed", "moved")


class ByPath(dict[str, Any]):
    """Values by path; a path of the state may be written without its leading ``$.``."""

    def _found(self, path: str) -> str:
        whole = f"${path}" if path.startswith("[") else f"$.{path}"
        return whole if not super().__contains__(path) and super().__contains__(whole) else path

    def __getitem__(self, path: str) -> Any:
        return super().__getitem__(self._found(path))

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and super().__contains__(self._found(path))


@dataclass(slots=True)
class Diff:
    """What was added, removed, changed (old, new) and moved (old path, new path), by path.

    A value of the state is at ``$.name[3]``, one of the context at ``context.name``. A key that is
    no name stands as Python writes it, ``$.seen[6]``, ``$['a b']``, ``$[(1, 2)]``; an element of a
    set as in ``$.tags{'new'}``; an attribute as a name. What was removed from a list is at its old
    place, all else at its new one.
    """

    added: ByPath = field(default_factory=ByPath)
    removed: ByPath = field(default_factory=ByPath)
    changed: ByPath = field(default_factory=ByPath)
    moved: ByPath = field(default_factory=ByPath)

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.moved)

    def __len__(self) -> int:
        return len(self.added) + len(self.removed) + len(self.changed) + len(self.moved)

    def __str__(self) -> str:
        if not self:
            return "no changes"
        lines = [
            *(
                f"~ {path}: {_short(old)} -> {_short(new)}"
                for path, (old, new) in self.changed.items()
            ),
            *(f"- {path}: {_short(value)}" for path, value in self.removed.items()),
            *(f"+ {path}: {_short(value)}" for path, value in self.added.items()),
            *(f"> {old}: moved to {new}" for old, new in self.moved.items()),
        ]
        if len(lines) > _LINES_SHOWN:
            lines[_LINES_SHOWN:] = [f"… and {len(lines) - _LINES_SHOWN} more"]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from holdfast.core.html_form import Literally, Row, table

        rows = chain(
            (Row(["~", path, *_both(pair)], "changed") for path, pair in self.changed.items()),
            (Row(["-", path, Literally(v), None], "removed") for path, v in self.removed.items()),
            (Row(["+", path, None, Literally(v)], "added") for path, v in self.added.items()),
            (Row([">", old, None, new], "moved") for old, new in self.moved.items()),
        )
        told = [f"{len(getattr(self, name)):,} {name}" for name in _TABLES if getattr(self, name)]
        heads = ["", "path", "before", "after"]
        return table("Changes", told or ["none"], heads, rows, _ROWS_SHOWN, len(self))

    def part(self, root: str) -> Diff:
        """Return what is below a root: ``$`` for the state, ``context``, ``tasks``, ``effects``."""
        kept = Diff()
        for name in _TABLES:
            mine = getattr(kept, name)
            for path, value in getattr(self, name).items():
                if is_below(path, root):
                    mine[path] = value
        return kept

    def as_dict(self) -> dict[str, Any]:
        """Return plain data: four dicts by path."""
        return {name: dict(getattr(self, name)) for name in _TABLES}


def is_below(path: str, root: str) -> bool:
    """Return whether a path is a root (``$``, ``context``) or leads to something in it.

    >>> from holdfast.core.diff import is_below
    >>> is_below("$.plan[0]", "$"), is_below("context.user", "$")
    (True, False)
    """
    return path == root or path.startswith((f"{root}.", f"{root}[", f"{root}{{"))


def _both(pair: Any) -> list[Any]:
    from holdfast.core.html_form import Literally

    is_pair = isinstance(pair, tuple) and len(pair) == 2
    return [*map(Literally, pair)] if is_pair else [None, Literally(pair)]


def _short(value: Any) -> str:
    return shortened(shown(value), 70)


def diff_values(old: Any, new: Any) -> Diff:
    """Return what changed between two values in memory.

    >>> from holdfast.core.diff import diff_values
    >>> print(diff_values({"step": 1, "log": ["a"]}, {"step": 2, "log": ["a", "b"]}))
    ~ $.step: 1 -> 2
    + $.log[1]: 'b'
    """
    return diff_parts({"execution_state": old}, {"execution_state": new})


def diff_parts(old: dict[str, Any], new: dict[str, Any], allow_pickle: bool = False) -> Diff:
    """Return what changed between parts of checkpoints in memory, by the names of these."""
    from holdfast.core.chunk_encoder import encode
    from holdfast.core.chunk_opener import Asking
    from holdfast.core.differ import diff_roots
    from holdfast.system.drive import drive

    a, b = encode(old, allow_pickle=allow_pickle), encode(new, allow_pickle=allow_pickle)
    chunks = {**a.chunks, **b.chunks}

    def ask(names: Collection[bytes]) -> Asking[dict[bytes, bytes]]:
        given: dict[bytes, bytes] = yield names
        return given

    return drive(diff_roots(a.root, b.root, ask, allow_pickle), lambda names: chunks)
