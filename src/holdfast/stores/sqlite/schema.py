"""All the SQL of the SQLite store, and the versions its files have had."""

from __future__ import annotations

APPLICATION_ID = 0x486F6C64  # "Hold", at byte 68 of every file

MIGRATIONS = (
    # 1
    """
    CREATE TABLE sessions (
        key     INTEGER PRIMARY KEY,
        agent   TEXT NOT NULL,
        session TEXT NOT NULL,
        UNIQUE (agent, session)
    );
    CREATE TABLE checkpoints (
        seq     INTEGER PRIMARY KEY, -- when: microseconds since 1970, and 10 bits for equal times
        id      NOT NULL,            -- 16 bytes where it is a UUID, else text
        session INTEGER NOT NULL,
        parent,
        expires INTEGER,
        target  TEXT,
        root    BLOB NOT NULL,
        size    INTEGER NOT NULL,
        body    BLOB NOT NULL,       -- the rest of the record, packed
        sum     BLOB NOT NULL        -- SHA-256 over all of the record
    );
    CREATE UNIQUE INDEX checkpoints_id ON checkpoints (id);
    CREATE INDEX checkpoints_session ON checkpoints (session);
    CREATE INDEX checkpoints_expires ON checkpoints (expires) WHERE expires IS NOT NULL;
    CREATE INDEX checkpoints_target ON checkpoints (target) WHERE target IS NOT NULL;
    CREATE TABLE chunks (
        seq     INTEGER PRIMARY KEY,
        name    BLOB NOT NULL UNIQUE,
        written INTEGER NOT NULL,    -- microseconds since 1970
        data    BLOB NOT NULL
    );
    """,
    # 2
    """
    CREATE TABLE notes (
        seq     INTEGER PRIMARY KEY, -- when: microseconds since 1970, and 10 bits for equal times
        scope   NOT NULL,            -- 16 bytes where it is a UUID, else text
        key     TEXT NOT NULL,
        expires INTEGER,
        body    BLOB NOT NULL,
        sum     BLOB NOT NULL,
        UNIQUE (scope, key)
    );
    CREATE INDEX notes_expires ON notes (expires) WHERE expires IS NOT NULL;
    """,
    # 3
    """
    -- When a record was made, where its place does not tell: one that is written last comes last.
    ALTER TABLE checkpoints ADD COLUMN made INTEGER;
    CREATE INDEX checkpoints_made ON checkpoints (made) WHERE made IS NOT NULL;
    """,
    # 4
    """
    -- The span of time of its newest record, or a later one: see shared/touched.py.
    ALTER TABLE sessions ADD COLUMN touched INTEGER NOT NULL DEFAULT -9223372036854775808;
    UPDATE sessions SET touched = (
        SELECT c.seq >> 30 FROM checkpoints c WHERE c.session = key ORDER BY c.seq DESC LIMIT 1
    ) WHERE EXISTS (SELECT 1 FROM checkpoints c WHERE c.session = key);
    CREATE INDEX sessions_touched ON sessions (touched);
    CREATE INDEX sessions_agent ON sessions (agent, touched);
    CREATE INDEX sessions_session ON sessions (session);

    CREATE TABLE tags (
        tag     INTEGER NOT NULL,    -- a number for a name and a value: see shared/tags.py
        session INTEGER NOT NULL,
        PRIMARY KEY (tag, session)
    ) WITHOUT ROWID;
    -- The records from this place on are filed by their tags, and all once the table is gone.
    CREATE TABLE filing (place INTEGER NOT NULL);
    INSERT INTO filing SELECT coalesce(max(seq), 0) + 1 FROM checkpoints;
    """,
    # 5
    """
    DROP TABLE filing;
    CREATE INDEX notes_scope ON notes (scope);
    """,
    # 6
    """
    CREATE INDEX checkpoints_parent ON checkpoints (parent) WHERE parent IS NOT NULL;
    """,
)
"""What leads from each version of the file to the next, each in a transaction of its own.

Never edited once released.
"""

VERSION = len(MIGRATIONS)
FILING = 4
"""The version in which records are being filed by their tags, step by step."""
FILED_FROM = "SELECT place FROM filing"
FILED = "UPDATE filing SET place = ?"
UNFILED = """
    SELECT seq, session, body FROM checkpoints WHERE seq < ? ORDER BY seq DESC LIMIT ?
"""
COUNT_UNFILED = "SELECT count(*) FROM checkpoints WHERE seq < ?"
INSERT_TAG = "INSERT INTO tags (tag, session) VALUES (?, ?) ON CONFLICT DO NOTHING"


def statements(before: int, after: int) -> list[str]:
    """Return what leads from one version of the file to a later one."""
    steps = MIGRATIONS[before:after]
    return [text for step in steps for text in step.split(";") if text.strip()]


INSERT_SESSION = "INSERT INTO sessions (agent, session) VALUES (?, ?) ON CONFLICT DO NOTHING"
EXISTS = "SELECT 1 FROM checkpoints WHERE id = ?"
SELECT_SESSION = "SELECT key FROM sessions WHERE agent = ? AND session = ?"
INSERT_CHECKPOINT = """
    INSERT INTO checkpoints (seq, made, id, session, parent, expires, target, root, size, body, sum)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
TOUCH = "UPDATE sessions SET touched = ? WHERE key = ? AND touched < ?"
TOUCHED_BEFORE = """
    UPDATE sessions SET touched = coalesce(
        (SELECT c.seq >> 30 FROM checkpoints c WHERE c.session = key ORDER BY c.seq DESC LIMIT 1),
        -9223372036854775808
    ) WHERE key = ?
"""
"""For a session that records were removed from."""
LAST_OF_SESSION = "SELECT seq, id FROM checkpoints WHERE session = ? ORDER BY seq DESC LIMIT 1"
PLACE = "SELECT seq FROM checkpoints WHERE id = ?"
FREE_PLACE = """
    SELECT c.seq + 1 FROM checkpoints c WHERE c.seq >= ?
        AND NOT EXISTS (SELECT 1 FROM checkpoints n WHERE n.seq = c.seq + 1)
    ORDER BY c.seq LIMIT 1
"""
INSERT_CHUNK = """
    INSERT INTO chunks (name, written, data) VALUES (?, ?, ?)
    ON CONFLICT (name) DO UPDATE SET written = excluded.written, data = excluded.data
        WHERE written < excluded.written
"""
"""The data too, which costs nothing where it is equal and mends it where it was damaged."""

EXISTS_NOTE = "SELECT 1 FROM notes WHERE scope = ? AND key = ?"
LAST_NOTE = "SELECT coalesce(max(seq), 0) FROM notes"
INSERT_NOTE = "INSERT INTO notes (seq, scope, key, expires, body, sum) VALUES (?, ?, ?, ?, ?, ?)"
SELECT_NOTES = """
    SELECT seq, scope, key, expires, body, sum FROM notes
    WHERE seq > ? AND (expires IS NULL OR expires > ?)
"""

BY_SEQ = "ORDER BY seq LIMIT ?"
LAST_NOTES = f"{SELECT_NOTES} AND scope = ? ORDER BY seq DESC LIMIT ?"
TARGETS = """
    WITH RECURSIVE targets (name) AS (
        SELECT min(target) FROM checkpoints WHERE target IS NOT NULL
        UNION ALL
        SELECT (SELECT min(target) FROM checkpoints WHERE target > name) FROM targets
        WHERE name IS NOT NULL
    )
    SELECT name FROM targets WHERE name IS NOT NULL
"""
"""From one to the next: of each only its first entry in the index is read."""

RECORD_COLUMNS = """
    c.seq, c.made, c.id, s.agent, s.session, c.parent, c.expires, c.target, c.root, c.size, c.body,
    c.sum
"""
SELECT_RECORDS = f"""
    SELECT {RECORD_COLUMNS} FROM checkpoints c JOIN sessions s ON s.key = c.session
"""  # noqa: S608
SELECT_OF_SESSIONS = SELECT_RECORDS.replace(
    "FROM checkpoints c", "FROM checkpoints c INDEXED BY checkpoints_session"
)
ALIVE = "(c.expires IS NULL OR c.expires > ?)"
NEWEST_FIRST = "ORDER BY c.seq DESC"
OLDEST_FIRST = "ORDER BY c.seq"
MADE_SINCE = "c.seq >= ? AND (c.made IS NULL OR c.made >= ?)"
"""A place is never before its time."""
MADE_UNTIL = "c.seq < ?"
PLACED_LATER = "c.seq IN (SELECT seq FROM checkpoints WHERE +seq >= ? AND made < ?)"
"""Made before a time and written after: those that MADE_UNTIL leaves out, and very few."""
OLDER_THAN = "c.seq < (SELECT seq FROM checkpoints WHERE id = ?)"

BY_SESSION = "c.session IN (SELECT s.key FROM sessions s WHERE {})"
OF_SESSION = "c.session = ?"
SELECT_SESSIONS = "SELECT s.key, s.touched FROM sessions s WHERE {} ORDER BY {}s.touched DESC"
SESSION_BEGINS = "s.session >= ? AND s.session < ?"
AGENT_BEGINS = "s.agent >= ? AND s.agent < ?"
SESSION_OF_AGENT_BEGINS = f"s.agent = ? AND {SESSION_BEGINS}"
HAS_TAG = "s.key IN (SELECT t.session FROM tags t WHERE t.tag IN ({}))"
"""For a tag of few sessions, which are found by it."""
HAS_COMMON_TAG = "EXISTS (SELECT 1 FROM tags t WHERE t.session = s.key AND t.tag IN ({}))"
"""For a tag of many, which are looked through in their order until there are enough."""
FILED_AT = """
    SELECT c.id, c.seq, c.session, s.touched
    FROM checkpoints c JOIN sessions s ON s.key = c.session WHERE c.id IN ({})
"""
FILED_UNDER = "SELECT tag FROM tags WHERE tag IN ({}) AND session = ?"
COUNT_TAGGED = "SELECT count(*) FROM (SELECT 1 FROM tags WHERE tag IN ({}) LIMIT ?)"

SELECT_HEAD = f"""
    SELECT {RECORD_COLUMNS}, (SELECT count(*) FROM checkpoints n WHERE n.session = c.session)
    FROM checkpoints c JOIN sessions s ON s.key = c.session
    WHERE c.session = ? {NEWEST_FIRST} LIMIT 1
"""  # noqa: S608
SELECT_LIVE_HEAD = f"""
    SELECT {RECORD_COLUMNS}, (
        SELECT count(*) FROM checkpoints n
        WHERE n.session = c.session AND (n.expires IS NULL OR n.expires > :now)
    )
    FROM checkpoints c JOIN sessions s ON s.key = c.session
    WHERE c.session = :session AND (c.expires IS NULL OR c.expires > :now) {NEWEST_FIRST} LIMIT 1
"""  # noqa: S608
"""The same where records have expired; else nothing but the index is read to count them."""
HAS_EXPIRED = "SELECT 1 FROM checkpoints WHERE expires <= ? LIMIT 1"
TOUCHED_UNTIL = """
    (s.touched <= ? OR s.key IN (SELECT session FROM checkpoints WHERE expires <= ?))
"""
"""A session whose newest records have expired shows one of an earlier span."""

MATCH_UUID = "SELECT id FROM checkpoints WHERE id BETWEEN ? AND ? AND id > ? ORDER BY id LIMIT ?"
MATCH_TEXT = "SELECT id FROM checkpoints WHERE id >= ? AND id < ? AND id > ? ORDER BY id LIMIT ?"
DELETE = "DELETE FROM checkpoints WHERE id = ?"
SESSION_OF = "SELECT session FROM checkpoints WHERE id = ?"
DELETE_NOTE = "DELETE FROM notes WHERE scope = ? AND key = ?"
DELETE_NOTES = "DELETE FROM notes WHERE seq IN (SELECT seq FROM notes WHERE scope = ? LIMIT ?)"
EXPIRED = "SELECT id FROM checkpoints WHERE expires <= ? LIMIT ?"
SWEEP_NOTES = "DELETE FROM notes WHERE seq IN (SELECT seq FROM notes WHERE expires <= ? LIMIT ?)"

ROOTS = "SELECT root FROM checkpoints"
ROOTS_ALIVE = "SELECT root FROM checkpoints c WHERE (c.expires IS NULL OR c.expires > ?)"
CHUNKS_AFTER = """
    SELECT seq, name, length(data), written < ? FROM chunks WHERE seq > ? ORDER BY seq LIMIT ?
"""
DROP_CHUNK = "DELETE FROM chunks WHERE seq = ? AND written < ?"

STATS = f"""
    SELECT c.checkpoints, c.sessions, k.chunks, c.logical, k.stored
    FROM (
        SELECT count(*) AS checkpoints, count(DISTINCT session) AS sessions,
            coalesce(sum(size), 0) AS logical
        FROM checkpoints c WHERE {ALIVE}
    ) AS c, (
        SELECT count(length(data)) AS chunks, coalesce(sum(length(data)), 0) AS stored FROM chunks
    ) AS k
"""  # noqa: S608
"""Chunks are counted row by row: a plain count(*) of SQLite's cannot be stopped half-way."""


def select_chunks(count: int) -> str:
    """Return the statement that fetches that many chunks by name."""
    return f"SELECT name, data FROM chunks WHERE name IN ({','.join('?' * count)})"  # noqa: S608


def notes_among(count: int) -> str:
    """Return the condition for notes of so many scopes."""
    return f"AND scope IN ({','.join('?' * count)})"
