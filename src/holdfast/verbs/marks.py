"""What garbage collection has found to be needed: on disk, as it may be more than memory holds."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from holdfast.stores.base import Note
from holdfast.system.scratch import Scratch
from holdfast.verbs.notes import needs_of

Need = tuple[bytes, bool]
"""The name of a chunk, and whether it may refer to more."""

_TABLES = """
    CREATE TABLE live (name BLOB PRIMARY KEY, refers INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE waiting (name BLOB NOT NULL);
    -- A chunk is opened once, as soon as anyone says that it refers to more.
    CREATE TRIGGER found AFTER INSERT ON live WHEN new.refers
        BEGIN INSERT INTO waiting VALUES (new.name); END;
    CREATE TRIGGER refers AFTER UPDATE ON live WHEN new.refers
        BEGIN INSERT INTO waiting VALUES (new.name); END;

    CREATE TABLE scopes (scope BLOB PRIMARY KEY, last INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE noted (
        scope BLOB, name BLOB, refers INTEGER NOT NULL, PRIMARY KEY (scope, name, refers)
    ) WITHOUT ROWID;
"""
_MARK = """
    INSERT INTO live VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET refers = 1 WHERE refers < excluded.refers
"""
_MARK_NOTED = """
    INSERT INTO live SELECT name, max(refers) FROM noted WHERE true GROUP BY name
    ON CONFLICT (name) DO UPDATE SET refers = 1 WHERE refers < excluded.refers
"""
_SCOPE = """
    INSERT INTO scopes VALUES (?, ?)
    ON CONFLICT (scope) DO UPDATE SET last = excluded.last WHERE last < excluded.last
"""
_OLD_SCOPES = """
    SELECT scope FROM scopes
    WHERE last < ? AND scope > ? AND substr(scope, 1, 1) <> x'2f' -- a slash begins a name
    ORDER BY scope LIMIT ?
"""


class Marks:
    """Names of chunks that are needed, and those of them that still have to be opened.

    A set of names, as ``Store.collect`` takes it, of which memory holds next to nothing.
    """

    def __init__(self) -> None:
        self._scratch = Scratch(_TABLES)
        self.opened = 0

    def __contains__(self, name: object) -> bool:
        return bool(self._scratch.ask("SELECT 1 FROM live WHERE name = ?", name))

    def add(self, needs: Iterable[Need]) -> None:
        """Mark chunks as needed."""
        self._scratch.write(_MARK, needs)

    def add_roots(self, names: Iterable[bytes]) -> None:
        """Mark the chunks that states begin with."""
        self.add((name, True) for name in names)

    def take_waiting(self, limit: int) -> list[bytes]:
        """Return some of the chunks that have to be opened, and count them as such."""
        rows = self._scratch.ask(
            "SELECT rowid, name FROM waiting ORDER BY rowid DESC LIMIT ?", limit
        )
        if rows:
            self._scratch.ask("DELETE FROM waiting WHERE rowid >= ?", rows[-1][0])
        self.opened += len(rows)
        return [name for _, name in rows]

    def note(self, notes: Collection[Note]) -> None:
        """Remember what notes need; it is marked by ``add_noted``."""
        needs = [(_key(note.scope), *need) for note in notes for need in needs_of(note)]
        self._scratch.write(_SCOPE, ((_key(note.scope), note.seq) for note in notes))
        self._scratch.write("INSERT OR IGNORE INTO noted VALUES (?, ?, ?)", needs)

    def scopes(self, bound: int, after: str, limit: int) -> list[str]:
        """Return the next checkpoints with notes, all of them written before a place."""
        rows = self._scratch.ask(_OLD_SCOPES, bound, _key(after), limit)
        return [scope.decode("utf-8", "surrogatepass") for (scope,) in rows]

    def forget(self, scopes: Iterable[str]) -> None:
        """Forget what the notes of some scopes need."""
        self._scratch.write("DELETE FROM noted WHERE scope = ?", ((_key(s),) for s in scopes))

    def add_noted(self) -> None:
        """Mark what the notes need that were not forgotten."""
        self._scratch.ask(_MARK_NOTED)

    def close(self) -> None:
        """Let go of the file they are in."""
        self._scratch.close()


def _key(scope: str) -> bytes:
    return scope.encode("utf-8", "surrogatepass")
