"""Hostile SQLite files: each makes a good store bad in one way."""

import random
import sqlite3
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
Bad = Callable[[sqlite3.Connection], object]


@contextmanager
def editing(path: Path) -> Iterator[sqlite3.Connection]:
    """The file as anybody with an editor has it."""
    db = sqlite3.connect(path, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("PRAGMA writable_schema = ON")
        yield db
    finally:
        db.close()


def _rename_and_view(table: str, columns: str) -> Bad:
    def make(db: sqlite3.Connection) -> None:
        for (name,) in db.execute(
            "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL "
            "AND tbl_name = ?",
            (table,),
        ).fetchall():
            db.execute(f"DROP INDEX {name}")
        db.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
        db.execute(f"CREATE VIEW {table} AS {ENDLESS} SELECT {columns} FROM n")

    return make


def _sql(*statements: str) -> Bad:
    def make(db: sqlite3.Connection) -> None:
        for statement in statements:
            db.execute(statement)

    return make


CHECKPOINT = "i AS seq, i AS id, 1 AS session, NULL AS parent, NULL AS expires, NULL AS target, "
CHECKPOINT += "x'00' AS root, 1 AS size, x'00' AS body, x'00' AS sum"

SCHEMAS: dict[str, Bad] = {
    "a view that never ends for checkpoints": _rename_and_view("checkpoints", CHECKPOINT),
    "a view that never ends for sessions": _rename_and_view(
        "sessions", "i AS key, 'coder' AS agent, 'main' AS session"
    ),
    "a view that never ends for chunks": _rename_and_view(
        "chunks", "i AS seq, x'00' AS name, 1 AS written, x'00' AS data"
    ),
    "a view that never ends for notes": _rename_and_view(
        "notes", "i AS seq, 'a' AS scope, 'b' AS key, NULL AS expires, x'' AS body, x'' AS sum"
    ),
    "a trigger on notes": _sql(
        "CREATE TRIGGER t AFTER INSERT ON notes BEGIN DELETE FROM checkpoints; END"
    ),
    "a trigger that never ends": _sql(
        "CREATE TRIGGER t AFTER INSERT ON notes BEGIN INSERT INTO notes "
        "SELECT seq + 1, seq, key, NULL, x'', x'' FROM notes, chunks, checkpoints, notes n; END"
    ),
    "a view beside": _sql("CREATE VIEW v AS SELECT 1"),
    "an index over a function": _sql("CREATE INDEX i ON checkpoints (abs(size))"),
    "an index with a condition that is dear": _sql(
        "CREATE INDEX i ON notes (key) WHERE key GLOB '*a*a*a*a*a*a*a*a*a*a*b'"
    ),
    "a generated column": _sql(
        "ALTER TABLE checkpoints ADD COLUMN bomb AS (hex(zeroblob(100000000)))"
    ),
    "a column with a default": _sql("ALTER TABLE notes ADD COLUMN more DEFAULT 1"),
    "a virtual table": _sql("CREATE VIRTUAL TABLE v USING fts5(a)"),
    "a check that is dear": _sql(
        "UPDATE sqlite_master SET sql = replace(sql, 'size    INTEGER NOT NULL', "
        "'size INTEGER NOT NULL CHECK (length(hex(zeroblob(99999999))) > 1)')"
    ),
    "a table that is missing": _sql("DROP TABLE chunks"),
    "an index that is missing": _sql("DROP INDEX checkpoints_id"),
    "two tables in one place": _sql(
        "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE "
        "name = 'notes') WHERE name = 'chunks'"
    ),
    "an index that says it is of another table": _sql(
        "CREATE TABLE theirs (a)",
        "CREATE INDEX bad ON checkpoints (size)",
        "UPDATE sqlite_master SET tbl_name = 'theirs' WHERE name = 'bad'",
    ),
    "a version from nowhere": _sql("PRAGMA user_version = -5"),
    "a version to come": _sql("PRAGMA user_version = 999999"),
    "a text of a table of many megabytes": _sql(
        "CREATE TABLE theirs (a)",
        "UPDATE sqlite_master SET sql = sql || '/*' || hex(zeroblob(20000000)) || '*/' "
        "WHERE name = 'theirs'",
    ),
    "thousands of tables": lambda db: [db.execute(f"CREATE TABLE t{n} (a)") for n in range(1500)],
}
"""Tables that are not ours: refused before a row is read."""

RECORD = """
    INSERT INTO checkpoints (seq, made, id, session, parent, expires, target, root, size, body, sum)
    SELECT seq + 7, {made}, {id}, session, {parent}, {expires}, {target}, {root}, {size}, {body},
        {sum}
    FROM checkpoints LIMIT 1
"""


def _record(**values: str) -> Bad:
    columns = ("made", "id", "parent", "expires", "target", "root", "size", "body", "sum")
    plain = {name: name for name in columns} | {"id": "'bad'"}
    return _sql(RECORD.format(**plain | values))


ROWS: dict[str, Bad] = {
    "an id that is a number": _record(id="12345"),
    "an id that is a fraction": _record(id="1.5"),
    "an id of three bytes": _record(id="x'010203'"),
    "an id of a megabyte": _record(id="hex(zeroblob(500000))"),
    "an id that is no text": _record(id="CAST(x'fffe41' AS TEXT)"),
    "a time that is text": _record(made="'then'"),
    "a time beyond all time": _record(made="9223372036854775807"),
    "a time before all time": _record(made="-9223372036854775808"),
    "a parent that is a number": _record(parent="7"),
    "a parent of a megabyte": _record(parent="hex(zeroblob(500000))"),
    "an expiry that is text": _record(expires="'soon'"),
    "an expiry beyond all time": _record(expires="9223372036854775807"),
    "a target that is bytes": _record(target="x'0102'"),
    "a root that is text": _record(root="'text'"),
    "a root of no bytes": _record(root="x''"),
    "a size that is text": _record(size="'many'"),
    "a size beyond all bounds": _sql("UPDATE checkpoints SET size = 9223372036854775807"),
    "a size below nothing": _record(size="-1"),
    "a body that is text": _record(body="'text'"),
    "a body of zeros": _record(body="zeroblob(50000000)"),
    "a body cut short": _record(body="substr(body, 1, 5)"),
    "a body with fields to come": _record(
        body="CAST(x'98' || substr(body, 2) || x'81A47A6F6E6501' AS BLOB)"
    ),
    "a body with fields to come that are a number": _record(
        body="CAST(x'98' || substr(body, 2) || x'07' AS BLOB)"
    ),
    "a body of deep lists": _record(body="CAST(replace(hex(zeroblob(50000)), '0', x'91') AS BLOB)"),
    "a sum that is text": _record(sum="'text'"),
    "a session that is not there": _sql("UPDATE checkpoints SET session = 999"),
    "a session without a name": _sql("UPDATE sessions SET agent = ''"),
    "an agent of a megabyte": _sql("UPDATE sessions SET agent = hex(zeroblob(500000))"),
    "an agent that is bytes": _sql("UPDATE sessions SET agent = x'00ff'"),
    "the last place of all": _sql(
        "UPDATE checkpoints SET seq = 9223372036854775807 "
        "WHERE seq = (SELECT max(seq) FROM checkpoints)",
        "UPDATE notes SET seq = 9223372036854775807 WHERE seq = (SELECT max(seq) FROM notes)",
    ),
    "the first place of all": _sql(
        "UPDATE checkpoints SET seq = -9223372036854775808 "
        "WHERE seq = (SELECT max(seq) FROM checkpoints)",
        "UPDATE notes SET seq = -9223372036854775808 WHERE seq = (SELECT max(seq) FROM notes)",
    ),
    "chunks that are text": _sql("UPDATE chunks SET data = 'text'"),
    "chunks that are empty": _sql("UPDATE chunks SET data = x''"),
    "chunks that are zeros": _sql("UPDATE chunks SET data = zeroblob(1000000)"),
    "chunks that claim to be large": _sql(
        "UPDATE chunks SET data = x'0128b52ffda4ffffffffffffff7f' || substr(data, 2)"
    ),
    "chunks of one another": _sql(
        "UPDATE chunks SET data = (SELECT data FROM chunks WHERE seq = 1)"
    ),
    "chunks whose names are text": _sql("UPDATE chunks SET name = hex(name)"),
    "notes that are text": _sql("UPDATE notes SET body = 'text', sum = 'text'"),
    "notes whose keys are bytes": _sql("UPDATE notes SET key = CAST(seq AS BLOB)"),
    "notes of a scope that is a number": _sql("UPDATE notes SET scope = seq"),
    "notes that expire when nothing does": _sql("UPDATE notes SET expires = 9223372036854775807"),
    "notes that expire at a word": _sql("UPDATE notes SET expires = 'soon'"),
    "statistics that are wrong": _sql(
        "ANALYZE", "UPDATE sqlite_stat1 SET stat = '9999999999999999999 -1 x'"
    ),
}
"""Rows that no save writes, in tables that are ours."""


def flipped(good: bytes, seed: int) -> bytes:
    """The bytes of a file with some changed: a few bytes, a page, or its end cut off."""
    chance = random.Random(seed)
    data = bytearray(good)
    kind = seed % 6
    if kind == 0:  # the head of the file
        data[chance.randrange(16, 100)] = chance.randrange(256)
    elif kind == 1:  # heads of pages: kinds, counts, free blocks
        for _ in range(3):
            data[chance.randrange(len(data) // 4096) * 4096 + chance.randrange(12)] = (
                chance.randrange(256)
            )
    elif kind == 2:  # pointers to cells
        for _ in range(8):
            page = chance.randrange(len(data) // 4096) * 4096
            data[page + 8 + chance.randrange(60)] = chance.randrange(256)
    elif kind == 3:  # anything
        for _ in range(20):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    elif kind == 4:  # a page in place of another
        a, b = (chance.randrange(1, len(data) // 4096) * 4096 for _ in range(2))
        data[a : a + 4096] = data[b : b + 4096]
    else:
        del data[chance.randrange(len(data)) :]
    return bytes(data)


def rollback_journal(database: bytes, names: Path) -> bytes:
    """A journal that has SQLite put back the first page and then delete the file it names."""
    page, nonce, magic = database[:4096], 1234, bytes.fromhex("d9d505f920a163d7")
    head = magic + struct.pack(">IIIII", 1, nonce, len(database) // 4096, 512, 4096)
    checksum = nonce + sum(page[at] for at in range(4096 - 200, 0, -200))
    record = struct.pack(">I", 1) + page + struct.pack(">I", checksum & 0xFFFFFFFF)
    name = bytes(names)
    end = struct.pack(">I", 0x40000000 // 4096 + 1) + name
    end += struct.pack(">II", len(name), sum(name)) + magic
    return head.ljust(512, b"\0") + record + end


def sharing_tree(path: Path) -> None:
    """A table whose inner pages all lead to the same page below, over and over: 2**n rows of few.

    Written by hand into free pages of the file.
    """
    with editing(path) as db:
        (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'chunks'").fetchone()
    data = bytearray(path.read_bytes())
    leaf = bytearray(data[(root - 1) * 4096 : root * 4096])
    while leaf[0] == 5:  # down to a leaf
        (child,) = struct.unpack(">I", leaf[8:12])
        leaf = bytearray(data[(child - 1) * 4096 : child * 4096])
    number = len(data) // 4096 + 1
    data += leaf
    for _ in range(16):
        data += _inner_page(number)
        number += 1
    data[(root - 1) * 4096 : root * 4096] = _inner_page(number)
    data += _inner_page(number - 1)
    data[28:32] = struct.pack(">I", len(data) // 4096)
    path.write_bytes(data)


def _inner_page(child: int) -> bytes:
    cells = 200
    page = bytearray(4096)
    start = 4096 - 5 * cells
    page[:12] = struct.pack(">BHHHBI", 5, 0, cells, start, 0, child)
    for n in range(cells):
        at = start + 5 * n
        page[12 + 2 * n : 14 + 2 * n] = struct.pack(">H", at)
        page[at : at + 5] = struct.pack(">IB", child, n % 128)
    return bytes(page)
