"""All the SQL of the PostgreSQL store, and the versions its tables have had.

Everything lives in a schema of its own, written ``holdfast`` here and replaced where another was
chosen. What writes is a function: one statement is one round trip and one transaction, whose steps
each see what was committed before them. No statement leaves anything behind in the connection, so
a pooler may give each transaction another one.
"""

from __future__ import annotations

import re
from functools import lru_cache

from holdfast.errors import InvalidArgumentError

DEFAULT_SCHEMA = "holdfast"
OLDEST_SERVER = 14

MIGRATIONS = (
    # 1
    """
    CREATE TABLE holdfast.sessions (
        key     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name    bytea NOT NULL UNIQUE,  -- a hash of both, as an index takes no long text
        agent   text COLLATE "C" NOT NULL,
        session text COLLATE "C" NOT NULL
    );
    CREATE INDEX sessions_agent ON holdfast.sessions (left(agent, 128));
    CREATE INDEX sessions_session ON holdfast.sessions (left(session, 128));

    CREATE TABLE holdfast.checkpoints (
        seq     bigint PRIMARY KEY,     -- when: microseconds since 1970, 10 bits for equal times
        session bigint NOT NULL,
        expires bigint,                 -- microseconds since 1970
        size    bigint NOT NULL,
        id      bytea NOT NULL UNIQUE,  -- 0 and 16 bytes where it is a UUID, else text
        parent  bytea,
        root    bytea NOT NULL,
        sum     bytea NOT NULL,         -- SHA-256 over all of the record
        target  text COLLATE "C",
        beneath bytea[],                -- some chunks that the root refers to, to be read with it
        body    bytea NOT NULL          -- the rest of the record, packed
    );
    CREATE INDEX checkpoints_session ON holdfast.checkpoints (session, seq);
    CREATE INDEX checkpoints_parent ON holdfast.checkpoints (parent) WHERE parent IS NOT NULL;
    CREATE INDEX checkpoints_expires ON holdfast.checkpoints (expires) WHERE expires IS NOT NULL;
    CREATE INDEX checkpoints_target ON holdfast.checkpoints (left(target, 128), seq)
        WHERE target IS NOT NULL;

    CREATE TABLE holdfast.chunks (
        written bigint NOT NULL,        -- microseconds since 1970, by the clock of the server
        name    bytea PRIMARY KEY,
        data    bytea NOT NULL
    ) WITH (toast_tuple_target = 8160);
    ALTER TABLE holdfast.chunks ALTER COLUMN data SET STORAGE EXTERNAL; -- compressed already

    CREATE TABLE holdfast.notes (
        seq     bigint PRIMARY KEY,     -- as that of checkpoints, by the clock of the server
        expires bigint,
        scope   bytea NOT NULL,         -- as an id of checkpoints
        key     bytea NOT NULL,
        sum     bytea NOT NULL,
        body    bytea NOT NULL,
        UNIQUE (scope, key)
    );
    CREATE INDEX notes_scope ON holdfast.notes (scope, seq);
    CREATE INDEX notes_expires ON holdfast.notes (expires) WHERE expires IS NOT NULL;

    CREATE FUNCTION holdfast.now() RETURNS bigint LANGUAGE sql AS
        $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

    CREATE FUNCTION holdfast.keep_chunks(_names bytea[], _data bytea[])
    RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        -- The names come sorted: whoever writes some of the same waits, and no two for each other.
        INSERT INTO holdfast.chunks AS c (written, name, data)
        SELECT holdfast.now(), u.name, u.data FROM unnest(_names, _data) AS u (name, data)
        ON CONFLICT (name) DO UPDATE SET
            written = greatest(c.written, excluded.written),
            -- Equal data are not written again, damaged data are mended.
            data = CASE WHEN c.data = excluded.data THEN c.data ELSE excluded.data END;
    END $$;

    CREATE FUNCTION holdfast.keep_notes(
        _scopes bytea[], _keys bytea[], _sums bytea[], _bodies bytea[], _expires bigint[]
    ) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
        _scope bytea;
        _seq bigint;
    BEGIN
        -- A reader who has seen a note of a named scope must not miss one that is committed later:
        -- its writers go one after the other, from here to the end of the transaction.
        FOR _scope IN
            SELECT DISTINCT u.scope FROM unnest(_scopes) AS u (scope)
            WHERE substr(u.scope, 1, 1) = '/' ORDER BY 1
        LOOP
            PERFORM pg_advisory_xact_lock(
                hashtextextended('holdfast.notes ' || encode(_scope, 'hex'), 0));
            PERFORM pg_notify('holdfast_notes', '');
        END LOOP;
        SELECT greatest(max(n.last) + 1, holdfast.now() * 1024) INTO _seq
        FROM (SELECT DISTINCT u.scope FROM unnest(_scopes) AS u (scope)) AS s
        CROSS JOIN LATERAL (SELECT max(seq) FROM holdfast.notes WHERE scope = s.scope) AS n (last);
        FOR i IN 1 .. cardinality(_scopes) LOOP
            LOOP
                INSERT INTO holdfast.notes (seq, expires, scope, key, sum, body)
                VALUES (_seq, _expires[i], _scopes[i], _keys[i], _sums[i], _bodies[i])
                ON CONFLICT (seq) DO NOTHING;
                _seq := _seq + 1;
                EXIT WHEN FOUND;
            END LOOP;
        END LOOP;
    END $$;

    -- NULL when all is kept, else why nothing is: 'conflict', 'base', 'parent', 'ties', or the
    -- number of the note whose key is taken. Chunks without data were sent before.
    --
    -- Saves go on side by side; what removes records waits for those begun, and they for it. So no
    -- parent or base vanishes under a save, and after a sweep all chunks written before it began
    -- belong to records that can be seen, or to none.
    CREATE FUNCTION holdfast.keep(
        _names bytea[], _data bytea[], _base bytea, _needed bytea,
        _seq bigint, _expires bigint, _size bigint, _id bytea, _parent bytea, _root bytea,
        _beneath bytea[], _sum bytea, _target text, _body bytea,
        _session_name bytea, _agent text, _session text,
        _scopes bytea[], _keys bytea[], _note_sums bytea[], _bodies bytea[], _note_expires bigint[]
    ) RETURNS text LANGUAGE plpgsql AS $$
    DECLARE
        _last bigint := _seq + 1024;
        _key bigint;
        _taken bigint;
    BEGIN
        PERFORM pg_advisory_xact_lock_shared(hashtextextended('holdfast.saves', 0));
        IF _id IS NOT NULL THEN
            IF EXISTS (SELECT FROM holdfast.checkpoints WHERE id = _id) THEN
                RETURN 'conflict';
            END IF;
            IF _base IS NOT NULL
                AND NOT EXISTS (SELECT FROM holdfast.checkpoints WHERE id = _base)
            THEN
                RETURN 'base';
            END IF;
            IF _needed IS NOT NULL AND _needed IS DISTINCT FROM _base
                AND NOT EXISTS (SELECT FROM holdfast.checkpoints WHERE id = _needed)
            THEN
                RETURN 'parent';
            END IF;
        END IF;
        IF _scopes IS NOT NULL THEN
            SELECT u.number INTO _taken
            FROM unnest(_scopes, _keys) WITH ORDINALITY AS u (scope, key, number)
            WHERE EXISTS (
                SELECT FROM holdfast.notes n WHERE n.scope = u.scope AND n.key = u.key
            )
            ORDER BY u.number LIMIT 1;
            IF FOUND THEN
                RETURN _taken;
            END IF;
        END IF;
        IF _id IS NOT NULL THEN
            SELECT key INTO _key FROM holdfast.sessions WHERE name = _session_name;
            IF NOT FOUND THEN
                INSERT INTO holdfast.sessions (name, agent, session)
                VALUES (_session_name, _agent, _session)
                ON CONFLICT (name) DO NOTHING RETURNING key INTO _key;
                IF NOT FOUND THEN
                    SELECT key INTO STRICT _key FROM holdfast.sessions WHERE name = _session_name;
                END IF;
            END IF;
            IF _beneath IS NULL AND _base IS NOT NULL THEN
                SELECT beneath INTO _beneath FROM holdfast.checkpoints
                WHERE id = _base AND root = _root;
            END IF;
            LOOP
                INSERT INTO holdfast.checkpoints
                    (seq, session, expires, size, id, parent, root, beneath, sum, target, body)
                VALUES (_seq, _key, _expires, _size, _id, _parent, _root, _beneath, _sum, _target,
                    _body)
                ON CONFLICT (seq) DO NOTHING;
                EXIT WHEN FOUND;
                _seq := _seq + 1;
                IF _seq = _last THEN
                    RETURN 'ties';
                END IF;
            END LOOP;
        END IF;
        IF _data IS NULL THEN
            UPDATE holdfast.chunks SET written = holdfast.now() WHERE name = ANY (_names);
        ELSIF cardinality(_names) > 0 THEN
            PERFORM holdfast.keep_chunks(_names, _data);
        END IF;
        IF _scopes IS NOT NULL THEN
            PERFORM holdfast.keep_notes(_scopes, _keys, _note_sums, _bodies, _note_expires);
        END IF;
        RETURN NULL;
    END $$;

    -- What is asked for most is a function too: its plan is kept, which a statement's is not.
    CREATE FUNCTION holdfast.load(_id bytea, _now bigint) RETURNS TABLE (
        seq bigint, id bytea, agent text, session text, parent bytea, expires bigint, target text,
        root bytea, size bigint, body bytea, sum bytea, names bytea[], data bytea[]
    ) LANGUAGE plpgsql STABLE ROWS 1 AS $$
    BEGIN
        RETURN QUERY
        SELECT c.seq, c.id, s.agent, s.session, c.parent, c.expires, c.target, c.root, c.size,
            c.body, c.sum, n.names, n.data
        FROM holdfast.checkpoints c JOIN holdfast.sessions s ON s.key = c.session
        CROSS JOIN LATERAL (
            SELECT array_agg(k.name), array_agg(k.data) FROM holdfast.chunks k
            WHERE k.name = ANY (c.beneath || c.root)
        ) AS n (names, data)
        WHERE c.id = _id AND (c.expires IS NULL OR c.expires > _now);
    END $$;

    CREATE FUNCTION holdfast.newest(
        _session_name bytea, _agent text, _session text, _now bigint, _limit bigint
    ) RETURNS TABLE (
        seq bigint, id bytea, agent text, session text, parent bytea, expires bigint, target text,
        root bytea, size bigint, body bytea, sum bytea
    ) LANGUAGE plpgsql STABLE AS $$
    DECLARE
        _key bigint := (SELECT s.key FROM holdfast.sessions s WHERE s.name = _session_name);
    BEGIN
        RETURN QUERY
        SELECT c.seq, c.id, _agent, _session, c.parent, c.expires, c.target, c.root, c.size,
            c.body, c.sum
        FROM holdfast.checkpoints c
        -- A range, and both in the order, so that no plan looks for an old session from the end.
        WHERE c.session >= _key AND c.session <= _key
            AND (c.expires IS NULL OR c.expires > _now)
        ORDER BY c.session DESC, c.seq DESC LIMIT _limit;
    END $$;

    CREATE FUNCTION holdfast.fetch(_names bytea[]) RETURNS TABLE (name bytea, data bytea)
    LANGUAGE plpgsql STABLE AS $$
    BEGIN
        RETURN QUERY SELECT k.name, k.data FROM holdfast.chunks k WHERE k.name = ANY (_names);
    END $$;

    CREATE FUNCTION holdfast.remove(_ids bytea[]) RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE
        _removed bigint;
        _sessions bigint[];
    BEGIN
        PERFORM pg_advisory_xact_lock(hashtextextended('holdfast.saves', 0));
        DELETE FROM holdfast.notes WHERE scope = ANY (_ids);
        WITH gone AS (
            DELETE FROM holdfast.checkpoints WHERE id = ANY (_ids) RETURNING session
        )
        SELECT count(*), array_agg(DISTINCT session) INTO _removed, _sessions FROM gone;
        DELETE FROM holdfast.sessions s WHERE s.key = ANY (_sessions)
            AND NOT EXISTS (SELECT FROM holdfast.checkpoints c WHERE c.session = s.key);
        RETURN _removed;
    END $$;

    -- Up to so many records and notes whose time has passed; whether there may be more.
    CREATE FUNCTION holdfast.sweep(_now bigint, _limit bigint, OUT removed bigint, OUT more boolean)
    LANGUAGE plpgsql AS $$
    DECLARE
        _notes bigint;
    BEGIN
        PERFORM pg_advisory_xact_lock(hashtextextended('holdfast.saves', 0));
        DELETE FROM holdfast.notes WHERE seq IN (
            SELECT seq FROM holdfast.notes WHERE expires <= _now ORDER BY expires LIMIT _limit
        );
        GET DIAGNOSTICS _notes = ROW_COUNT;
        removed := holdfast.remove(ARRAY(
            SELECT id FROM holdfast.checkpoints WHERE expires <= _now
            ORDER BY expires LIMIT _limit
        ));
        more := greatest(removed, _notes) >= _limit;
    END $$;
    """,
    # 2
    """
    -- When a record was made, where its place does not tell: one that is written last comes last.
    ALTER TABLE holdfast.checkpoints ADD COLUMN made bigint;
    CREATE INDEX checkpoints_made ON holdfast.checkpoints (made) WHERE made IS NOT NULL;

    -- The records of a session are written one after the other, so that each comes behind what is
    -- there. Who writes unless a note is there goes on beside others of that kind, and never beside
    -- one who writes such a note: either that sees what was written, or the writer sees the note.
    CREATE FUNCTION holdfast.enter(_scope bytea, _alone boolean, _session_name bytea)
    RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
        _fence bigint := hashtextextended('holdfast.notes ' || encode(_scope, 'hex'), 0);
    BEGIN
        IF _alone THEN
            PERFORM pg_advisory_xact_lock(_fence);
        ELSIF _scope IS NOT NULL THEN
            PERFORM pg_advisory_xact_lock_shared(_fence);
        END IF;
        IF _session_name IS NOT NULL THEN
            PERFORM pg_advisory_xact_lock(
                hashtextextended('holdfast.session ' || encode(_session_name, 'hex'), 0));
        END IF;
    END $$;

    DROP FUNCTION holdfast.keep(
        bytea[], bytea[], bytea, bytea, bigint, bigint, bigint, bytea, bytea, bytea, bytea[],
        bytea, text, bytea, bytea, text, text, bytea[], bytea[], bytea[], bytea[], bigint[]
    );
    DROP FUNCTION holdfast.load(bytea, bigint);
    DROP FUNCTION holdfast.newest(bytea, text, text, bigint, bigint);

    -- NULL when all is kept, else why nothing is: 'fenced', 'conflict', 'base', 'parent', 'head',
    -- or the number of the note whose key is taken. Chunks without data were sent before.
    CREATE FUNCTION holdfast.keep(
        _names bytea[], _data bytea[], _base bytea, _needed bytea,
        _seq bigint, _expires bigint, _size bigint, _id bytea, _parent bytea, _root bytea,
        _beneath bytea[], _sum bytea, _target text, _body bytea,
        _session_name bytea, _agent text, _session text,
        _scopes bytea[], _keys bytea[], _note_sums bytea[], _bodies bytea[], _note_expires bigint[],
        _unless_scope bytea, _unless_key bytea, _follows bytea, _behind bytea[]
    ) RETURNS text LANGUAGE plpgsql AS $$
    DECLARE
        _made bigint := _seq / 1024;
        _last bigint;
        _head bytea;
        _key bigint;
        _taken bigint;
    BEGIN
        PERFORM pg_advisory_xact_lock_shared(hashtextextended('holdfast.saves', 0));
        PERFORM holdfast.enter(_unless_scope, _unless_scope = ANY (_scopes), _session_name);
        IF _unless_scope IS NOT NULL AND EXISTS (
            SELECT FROM holdfast.notes WHERE scope = _unless_scope AND key = _unless_key
        ) THEN
            RETURN 'fenced';
        END IF;
        IF _id IS NOT NULL THEN
            IF EXISTS (SELECT FROM holdfast.checkpoints WHERE id = _id) THEN
                RETURN 'conflict';
            END IF;
            IF _base IS NOT NULL
                AND NOT EXISTS (SELECT FROM holdfast.checkpoints WHERE id = _base)
            THEN
                RETURN 'base';
            END IF;
            IF _needed IS NOT NULL AND _needed IS DISTINCT FROM _base
                AND NOT EXISTS (SELECT FROM holdfast.checkpoints WHERE id = _needed)
            THEN
                RETURN 'parent';
            END IF;
        END IF;
        IF _scopes IS NOT NULL THEN
            SELECT u.number INTO _taken
            FROM unnest(_scopes, _keys) WITH ORDINALITY AS u (scope, key, number)
            WHERE EXISTS (
                SELECT FROM holdfast.notes n WHERE n.scope = u.scope AND n.key = u.key
            )
            ORDER BY u.number LIMIT 1;
            IF FOUND THEN
                RETURN _taken;
            END IF;
        END IF;
        IF _id IS NOT NULL THEN
            SELECT key INTO _key FROM holdfast.sessions WHERE name = _session_name;
            IF NOT FOUND THEN
                INSERT INTO holdfast.sessions (name, agent, session)
                VALUES (_session_name, _agent, _session)
                ON CONFLICT (name) DO NOTHING RETURNING key INTO _key;
                IF NOT FOUND THEN
                    SELECT key INTO STRICT _key FROM holdfast.sessions WHERE name = _session_name;
                END IF;
            END IF;
            SELECT c.seq, c.id INTO _last, _head FROM holdfast.checkpoints c
            WHERE c.session >= _key AND c.session <= _key
            ORDER BY c.session DESC, c.seq DESC LIMIT 1;
            IF _follows IS NOT NULL AND _follows <> coalesce(_head, '') THEN
                RETURN 'head';
            END IF;
            IF _behind IS NOT NULL THEN
                SELECT max(seq) INTO _last FROM holdfast.checkpoints WHERE id = ANY (_behind);
            END IF;
            IF _last >= _seq THEN
                _seq := _last + 1;
            END IF;
            IF _beneath IS NULL AND _base IS NOT NULL THEN
                SELECT beneath INTO _beneath FROM holdfast.checkpoints
                WHERE id = _base AND root = _root;
            END IF;
            LOOP
                INSERT INTO holdfast.checkpoints
                    (seq, made, session, expires, size, id, parent, root, beneath, sum, target,
                    body)
                VALUES (_seq, nullif(_made, _seq >> 10), _key, _expires, _size, _id, _parent, _root,
                    _beneath, _sum, _target, _body)
                ON CONFLICT (seq) DO NOTHING;
                EXIT WHEN FOUND;
                SELECT coalesce(min(c.seq), _seq) + 1 INTO _seq FROM (
                    SELECT c.seq FROM holdfast.checkpoints c WHERE c.seq >= _seq
                        AND NOT EXISTS (
                            SELECT FROM holdfast.checkpoints n WHERE n.seq = c.seq + 1
                        )
                    ORDER BY c.seq LIMIT 1
                ) AS c;
            END LOOP;
        END IF;
        IF _data IS NULL THEN
            UPDATE holdfast.chunks SET written = holdfast.now() WHERE name = ANY (_names);
        ELSIF cardinality(_names) > 0 THEN
            PERFORM holdfast.keep_chunks(_names, _data);
        END IF;
        IF _scopes IS NOT NULL THEN
            PERFORM holdfast.keep_notes(_scopes, _keys, _note_sums, _bodies, _note_expires);
        END IF;
        RETURN NULL;
    END $$;

    CREATE FUNCTION holdfast.load(_id bytea, _now bigint) RETURNS TABLE (
        seq bigint, made bigint, id bytea, agent text, session text, parent bytea, expires bigint,
        target text, root bytea, size bigint, body bytea, sum bytea, names bytea[], data bytea[]
    ) LANGUAGE plpgsql STABLE ROWS 1 AS $$
    BEGIN
        RETURN QUERY
        SELECT c.seq, c.made, c.id, s.agent, s.session, c.parent, c.expires, c.target, c.root,
            c.size, c.body, c.sum, n.names, n.data
        FROM holdfast.checkpoints c JOIN holdfast.sessions s ON s.key = c.session
        CROSS JOIN LATERAL (
            SELECT array_agg(k.name), array_agg(k.data) FROM holdfast.chunks k
            WHERE k.name = ANY (c.beneath || c.root)
        ) AS n (names, data)
        WHERE c.id = _id AND (c.expires IS NULL OR c.expires > _now);
    END $$;

    CREATE FUNCTION holdfast.newest(
        _session_name bytea, _agent text, _session text, _now bigint, _limit bigint
    ) RETURNS TABLE (
        seq bigint, made bigint, id bytea, agent text, session text, parent bytea, expires bigint,
        target text, root bytea, size bigint, body bytea, sum bytea
    ) LANGUAGE plpgsql STABLE AS $$
    DECLARE
        _key bigint := (SELECT s.key FROM holdfast.sessions s WHERE s.name = _session_name);
    BEGIN
        RETURN QUERY
        SELECT c.seq, c.made, c.id, _agent, _session, c.parent, c.expires, c.target, c.root, c.size,
            c.body, c.sum
        FROM holdfast.checkpoints c
        -- A range, and both in the order, so that no plan looks for an old session from the end.
        WHERE c.session >= _key AND c.session <= _key
            AND (c.expires IS NULL OR c.expires > _now)
        ORDER BY c.session DESC, c.seq DESC LIMIT _limit;
    END $$;
    """,
    # 3
    """
    -- By which span of time its newest record was made, or a later one: see shared/touched.py. And
    -- the numbers of the tags of its records: see shared/tags.py. As long as those of its older
    -- records are not among them it is not filed.
    ALTER TABLE holdfast.sessions ADD COLUMN touched bigint, ADD COLUMN tags bigint[] NOT NULL
        DEFAULT '{}', ADD COLUMN filed boolean NOT NULL DEFAULT false;
    ALTER TABLE holdfast.sessions ALTER COLUMN filed SET DEFAULT true;
    UPDATE holdfast.sessions s SET touched = coalesce((
        SELECT c.seq >> 30 FROM holdfast.checkpoints c WHERE c.session = s.key
        ORDER BY c.session DESC, c.seq DESC LIMIT 1
    ), 0);
    ALTER TABLE holdfast.sessions ALTER COLUMN touched SET NOT NULL;
    CREATE INDEX sessions_touched ON holdfast.sessions (touched);
    CREATE INDEX sessions_agent_touched ON holdfast.sessions (left(agent, 128), touched);
    CREATE INDEX sessions_tags ON holdfast.sessions USING gin (tags);
    CREATE INDEX sessions_unfiled ON holdfast.sessions (key) WHERE NOT filed;
    DROP INDEX holdfast.sessions_agent;
    INSERT INTO holdfast.meta VALUES ('filing', 3);

    -- A name with more values than eight is filed as such: the half for the value is zero.
    CREATE FUNCTION holdfast.tags_with(_filed bigint[], _more bigint[]) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE AS $$
        WITH every AS (SELECT DISTINCT u.t FROM unnest(_filed || _more) AS u (t)),
        names AS (
            SELECT e.t >> 32 AS name, count(*) > 8 OR bool_or(e.t & 4294967295 = 0) AS is_any
            FROM every e GROUP BY 1
        )
        SELECT ARRAY(
            SELECT DISTINCT CASE WHEN n.is_any THEN n.name << 32 ELSE e.t END
            FROM every e JOIN names n ON n.name = e.t >> 32
        )
    $$;

    DROP FUNCTION holdfast.keep(
        bytea[], bytea[], bytea, bytea, bigint, bigint, bigint, bytea, bytea, bytea, bytea[],
        bytea, text, bytea, bytea, text, text, bytea[], bytea[], bytea[], bytea[], bigint[],
        bytea, bytea, bytea, bytea[]
    );
    DROP FUNCTION holdfast.remove(bytea[]);

    -- What it returns is as before.
    CREATE FUNCTION holdfast.keep(
        _names bytea[], _data bytea[], _base bytea, _needed bytea,
        _seq bigint, _expires bigint, _size bigint, _id bytea, _parent bytea, _root bytea,
        _beneath bytea[], _sum bytea, _target text, _body bytea,
        _session_name bytea, _agent text, _session text,
        _scopes bytea[], _keys bytea[], _note_sums bytea[], _bodies bytea[], _note_expires bigint[],
        _unless_scope bytea, _unless_key bytea, _follows bytea, _behind bytea[],
        _tags bigint[]
    ) RETURNS text LANGUAGE plpgsql AS $$
    DECLARE
        _made bigint := _seq / 1024;
        _last bigint;
        _head bytea;
        _key bigint;
        _touched bigint;
        _filed bigint[] := '{}';
        _taken bigint;
    BEGIN
        PERFORM pg_advisory_xact_lock_shared(hashtextextended('holdfast.saves', 0));
        PERFORM holdfast.enter(_unless_scope, _unless_scope = ANY (_scopes), _session_name);
        IF _unless_scope IS NOT NULL AND EXISTS (
            SELECT FROM holdfast.notes WHERE scope = _unless_scope AND key = _unless_key
        ) THEN
            RETURN 'fenced';
        END IF;
        IF _id IS NOT NULL THEN
            IF EXISTS (SELECT FROM holdfast.checkpoints WHERE id = _id) THEN
                RETURN 'conflict';
            END IF;
            IF _base IS NOT NULL
                AND NOT EXISTS (SELECT FROM holdfast.checkpoints WHERE id = _base)
            THEN
                RETURN 'base';
            END IF;
            IF _needed IS NOT NULL AND _needed IS DISTINCT FROM _base
                AND NOT EXISTS (SELECT FROM holdfast.checkpoints WHERE id = _needed)
            THEN
                RETURN 'parent';
            END IF;
        END IF;
        IF _scopes IS NOT NULL THEN
            SELECT u.number INTO _taken
            FROM unnest(_scopes, _keys) WITH ORDINALITY AS u (scope, key, number)
            WHERE EXISTS (
                SELECT FROM holdfast.notes n WHERE n.scope = u.scope AND n.key = u.key
            )
            ORDER BY u.number LIMIT 1;
            IF FOUND THEN
                RETURN _taken;
            END IF;
        END IF;
        IF _id IS NOT NULL THEN
            SELECT key, touched, tags INTO _key, _touched, _filed
            FROM holdfast.sessions WHERE name = _session_name;
            IF NOT FOUND THEN
                INSERT INTO holdfast.sessions (name, agent, session, touched)
                VALUES (_session_name, _agent, _session, _seq >> 30)
                ON CONFLICT (name) DO NOTHING RETURNING key INTO _key;
                IF NOT FOUND THEN
                    SELECT key INTO STRICT _key FROM holdfast.sessions WHERE name = _session_name;
                END IF;
                _filed := '{}';
            END IF;
            SELECT c.seq, c.id INTO _last, _head FROM holdfast.checkpoints c
            WHERE c.session >= _key AND c.session <= _key
            ORDER BY c.session DESC, c.seq DESC LIMIT 1;
            IF _follows IS NOT NULL AND _follows <> coalesce(_head, '') THEN
                RETURN 'head';
            END IF;
            IF _behind IS NOT NULL THEN
                SELECT max(seq) INTO _last FROM holdfast.checkpoints WHERE id = ANY (_behind);
            END IF;
            IF _last >= _seq THEN
                _seq := _last + 1;
            END IF;
            IF _beneath IS NULL AND _base IS NOT NULL THEN
                SELECT beneath INTO _beneath FROM holdfast.checkpoints
                WHERE id = _base AND root = _root;
            END IF;
            LOOP
                INSERT INTO holdfast.checkpoints
                    (seq, made, session, expires, size, id, parent, root, beneath, sum, target,
                    body)
                VALUES (_seq, nullif(_made, _seq >> 10), _key, _expires, _size, _id, _parent, _root,
                    _beneath, _sum, _target, _body)
                ON CONFLICT (seq) DO NOTHING;
                EXIT WHEN FOUND;
                SELECT coalesce(min(c.seq), _seq) + 1 INTO _seq FROM (
                    SELECT c.seq FROM holdfast.checkpoints c WHERE c.seq >= _seq
                        AND NOT EXISTS (
                            SELECT FROM holdfast.checkpoints n WHERE n.seq = c.seq + 1
                        )
                    ORDER BY c.seq LIMIT 1
                ) AS c;
            END LOOP;
            -- Most saves are of a session that was touched just now, and has their tags.
            IF _touched IS NULL OR _touched < _seq >> 30 OR NOT _tags <@ _filed THEN
                _tags := ARRAY(
                    SELECT t FROM unnest(_tags) AS u (t)
                    WHERE t <> ALL (_filed) AND t >> 32 << 32 <> ALL (_filed)
                );
                IF _touched IS NULL OR _touched < _seq >> 30 OR cardinality(_tags) > 0 THEN
                    UPDATE holdfast.sessions SET touched = greatest(touched, _seq >> 30),
                        tags = holdfast.tags_with(tags, _tags)
                    WHERE key = _key;
                END IF;
            END IF;
        END IF;
        IF _data IS NULL THEN
            UPDATE holdfast.chunks SET written = holdfast.now() WHERE name = ANY (_names);
        ELSIF cardinality(_names) > 0 THEN
            PERFORM holdfast.keep_chunks(_names, _data);
        END IF;
        IF _scopes IS NOT NULL THEN
            PERFORM holdfast.keep_notes(_scopes, _keys, _note_sums, _bodies, _note_expires);
        END IF;
        RETURN NULL;
    END $$;

    CREATE FUNCTION holdfast.remove(_ids bytea[]) RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE
        _removed bigint;
        _sessions bigint[];
    BEGIN
        PERFORM pg_advisory_xact_lock(hashtextextended('holdfast.saves', 0));
        DELETE FROM holdfast.notes WHERE scope = ANY (_ids);
        WITH gone AS (
            DELETE FROM holdfast.checkpoints WHERE id = ANY (_ids) RETURNING session
        )
        SELECT count(*), array_agg(DISTINCT session) INTO _removed, _sessions FROM gone;
        DELETE FROM holdfast.sessions s WHERE s.key = ANY (_sessions)
            AND NOT EXISTS (SELECT FROM holdfast.checkpoints c WHERE c.session = s.key);
        UPDATE holdfast.sessions s SET touched = (
            SELECT c.seq >> 30 FROM holdfast.checkpoints c WHERE c.session = s.key
            ORDER BY c.session DESC, c.seq DESC LIMIT 1
        ) WHERE s.key = ANY (_sessions);
        RETURN _removed;
    END $$;
    """,
    # 4
    """
    -- When the last sweep was: no collection under way removes a chunk that was written since.
    ALTER TABLE holdfast.meta ADD COLUMN swept bigint;
    UPDATE holdfast.meta SET swept = holdfast.now() WHERE program = 'holdfast';

    -- Many sessions begin with an equal state. Its chunks are there, and whoever saves it says that
    -- they are wanted still; but nobody waits for others who are just saying so. These may fail: a
    -- chunk that was written since the last sweep stays all the same. For a sweep waits for all
    -- saves that have begun, so who collects after it finds what they saved, and takes only what
    -- was written before it.
    CREATE FUNCTION holdfast.share_chunks(_names bytea[], _data bytea[], _swept bigint)
    RETURNS void LANGUAGE plpgsql
    -- Each is found by its name, whatever is known of the table, and planned once.
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
    SET plan_cache_mode = force_generic_plan AS $$
    DECLARE
        _shared bytea[];
    BEGIN
        WITH free AS (
            SELECT k.name FROM unnest(_names, _data) AS u (name, data)
            JOIN holdfast.chunks k ON k.name = u.name AND k.data = u.data
            ORDER BY k.name FOR NO KEY UPDATE OF k SKIP LOCKED
        ), shared AS (
            UPDATE holdfast.chunks c SET written = greatest(c.written, holdfast.now())
            FROM free WHERE c.name = free.name RETURNING c.name
        )
        SELECT coalesce(array_agg(s.name), '{}') INTO _shared FROM shared AS s;
        IF cardinality(_shared) < cardinality(_names) THEN
            SELECT array_agg(u.name ORDER BY u.name), array_agg(u.data ORDER BY u.name)
            INTO _names, _data FROM unnest(_names, _data) AS u (name, data)
            WHERE u.name <> ALL (_shared) AND NOT EXISTS (
                SELECT FROM holdfast.chunks k
                WHERE k.name = u.name AND k.data = u.data AND k.written >= _swept
            );
            IF _names IS NOT NULL THEN
                PERFORM holdfast.keep_chunks(_names, _data);
            END IF;
        END IF;
    END $$;

    CREATE FUNCTION holdfast.hold_chunks(_names bytea[], _data bytea[])
    RETURNS void LANGUAGE plpgsql
    SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
    DECLARE
        _new bytea[];
        _swept bigint;
    BEGIN
        WITH new AS (
            INSERT INTO holdfast.chunks (written, name, data)
            SELECT holdfast.now(), u.name, u.data FROM unnest(_names, _data) AS u (name, data)
            -- It would wait for who updates one. A scalar is always found by the index.
            WHERE (SELECT true FROM holdfast.chunks k WHERE k.name = u.name) IS NULL
            ON CONFLICT (name) DO NOTHING RETURNING name
        )
        SELECT array_agg(n.name) INTO _new FROM new AS n;
        IF cardinality(_new) = cardinality(_names) THEN
            RETURN;
        ELSIF _new IS NOT NULL THEN
            SELECT array_agg(u.name ORDER BY u.name), array_agg(u.data ORDER BY u.name)
            INTO _names, _data FROM unnest(_names, _data) AS u (name, data)
            WHERE u.name <> ALL (_new);
        END IF;
        SELECT swept INTO _swept FROM holdfast.meta WHERE program = 'holdfast';
        PERFORM holdfast.share_chunks(_names, _data, _swept);
    END $$;

    CREATE OR REPLACE FUNCTION holdfast.keep_notes(
        _scopes bytea[], _keys bytea[], _sums bytea[], _bodies bytea[], _expires bigint[]
    ) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
        _scope bytea;
        _seq bigint;
    BEGIN
        -- A reader who has seen a note of a named scope must not miss one that is committed later:
        -- its writers go one after the other, from here to the end of the transaction.
        FOR _scope IN
            SELECT DISTINCT u.scope FROM unnest(_scopes) AS u (scope)
            WHERE substr(u.scope, 1, 1) = '/' ORDER BY 1
        LOOP
            PERFORM pg_advisory_xact_lock(
                hashtextextended('holdfast.notes ' || encode(_scope, 'hex'), 0));
        END LOOP;
        SELECT greatest(max(n.last) + 1, holdfast.now() * 1024) INTO _seq
        FROM (SELECT DISTINCT u.scope FROM unnest(_scopes) AS u (scope)) AS s
        CROSS JOIN LATERAL (SELECT max(seq) FROM holdfast.notes WHERE scope = s.scope) AS n (last);
        FOR i IN 1 .. cardinality(_scopes) LOOP
            LOOP
                INSERT INTO holdfast.notes (seq, expires, scope, key, sum, body)
                VALUES (_seq, _expires[i], _scopes[i], _keys[i], _sums[i], _bodies[i])
                ON CONFLICT (seq) DO NOTHING;
                _seq := _seq + 1;
                EXIT WHEN FOUND;
            END LOOP;
        END LOOP;
    END $$;

    CREATE OR REPLACE FUNCTION holdfast.keep(
        _names bytea[], _data bytea[], _base bytea, _needed bytea,
        _seq bigint, _expires bigint, _size bigint, _id bytea, _parent bytea, _root bytea,
        _beneath bytea[], _sum bytea, _target text, _body bytea,
        _session_name bytea, _agent text, _session text,
        _scopes bytea[], _keys bytea[], _note_sums bytea[], _bodies bytea[], _note_expires bigint[],
        _unless_scope bytea, _unless_key bytea, _follows bytea, _behind bytea[],
        _tags bigint[]
    ) RETURNS text LANGUAGE plpgsql AS $$
    DECLARE
        _made bigint := _seq / 1024;
        _last bigint;
        _head bytea;
        _key bigint;
        _touched bigint;
        _filed bigint[] := '{}';
        _taken bigint;
    BEGIN
        PERFORM pg_advisory_xact_lock_shared(hashtextextended('holdfast.saves', 0));
        PERFORM holdfast.enter(_unless_scope, _unless_scope = ANY (_scopes), _session_name);
        IF _unless_scope IS NOT NULL AND EXISTS (
            SELECT FROM holdfast.notes WHERE scope = _unless_scope AND key = _unless_key
        ) THEN
            RETURN 'fenced';
        END IF;
        IF _id IS NOT NULL THEN
            IF EXISTS (SELECT FROM holdfast.checkpoints WHERE id = _id) THEN
                RETURN 'conflict';
            END IF;
            IF _base IS NOT NULL
                AND NOT EXISTS (SELECT FROM holdfast.checkpoints WHERE id = _base)
            THEN
                RETURN 'base';
            END IF;
            IF _needed IS NOT NULL AND _needed IS DISTINCT FROM _base
                AND NOT EXISTS (SELECT FROM holdfast.checkpoints WHERE id = _needed)
            THEN
                RETURN 'parent';
            END IF;
        END IF;
        IF _scopes IS NOT NULL THEN
            SELECT u.number INTO _taken
            FROM unnest(_scopes, _keys) WITH ORDINALITY AS u (scope, key, number)
            WHERE EXISTS (
                SELECT FROM holdfast.notes n WHERE n.scope = u.scope AND n.key = u.key
            )
            ORDER BY u.number LIMIT 1;
            IF FOUND THEN
                RETURN _taken;
            END IF;
        END IF;
        IF _id IS NOT NULL THEN
            SELECT key, touched, tags INTO _key, _touched, _filed
            FROM holdfast.sessions WHERE name = _session_name;
            IF NOT FOUND THEN
                INSERT INTO holdfast.sessions (name, agent, session, touched)
                VALUES (_session_name, _agent, _session, _seq >> 30)
                ON CONFLICT (name) DO NOTHING RETURNING key INTO _key;
                IF NOT FOUND THEN
                    SELECT key INTO STRICT _key FROM holdfast.sessions WHERE name = _session_name;
                END IF;
                _filed := '{}';
            END IF;
            SELECT c.seq, c.id INTO _last, _head FROM holdfast.checkpoints c
            WHERE c.session >= _key AND c.session <= _key
            ORDER BY c.session DESC, c.seq DESC LIMIT 1;
            IF _follows IS NOT NULL AND _follows <> coalesce(_head, '') THEN
                RETURN 'head';
            END IF;
            IF _behind IS NOT NULL THEN
                SELECT max(seq) INTO _last FROM holdfast.checkpoints WHERE id = ANY (_behind);
            END IF;
            IF _last >= _seq THEN
                _seq := _last + 1;
            END IF;
            IF _beneath IS NULL AND _base IS NOT NULL THEN
                SELECT beneath INTO _beneath FROM holdfast.checkpoints
                WHERE id = _base AND root = _root;
            END IF;
            LOOP
                INSERT INTO holdfast.checkpoints
                    (seq, made, session, expires, size, id, parent, root, beneath, sum, target,
                    body)
                VALUES (_seq, nullif(_made, _seq >> 10), _key, _expires, _size, _id, _parent, _root,
                    _beneath, _sum, _target, _body)
                ON CONFLICT (seq) DO NOTHING;
                EXIT WHEN FOUND;
                SELECT coalesce(min(c.seq), _seq) + 1 INTO _seq FROM (
                    SELECT c.seq FROM holdfast.checkpoints c WHERE c.seq >= _seq
                        AND NOT EXISTS (
                            SELECT FROM holdfast.checkpoints n WHERE n.seq = c.seq + 1
                        )
                    ORDER BY c.seq LIMIT 1
                ) AS c;
            END LOOP;
            -- Most saves are of a session that was touched just now, and has their tags.
            IF _touched IS NULL OR _touched < _seq >> 30 OR NOT _tags <@ _filed THEN
                _tags := ARRAY(
                    SELECT t FROM unnest(_tags) AS u (t)
                    WHERE t <> ALL (_filed) AND t >> 32 << 32 <> ALL (_filed)
                );
                IF _touched IS NULL OR _touched < _seq >> 30 OR cardinality(_tags) > 0 THEN
                    UPDATE holdfast.sessions SET touched = greatest(touched, _seq >> 30),
                        tags = holdfast.tags_with(tags, _tags)
                    WHERE key = _key;
                END IF;
            END IF;
        END IF;
        IF _data IS NULL THEN
            UPDATE holdfast.chunks SET written = holdfast.now() WHERE name = ANY (_names);
        ELSIF cardinality(_names) > 0 THEN
            PERFORM holdfast.hold_chunks(_names, _data);
        END IF;
        IF _scopes IS NOT NULL THEN
            PERFORM holdfast.keep_notes(_scopes, _keys, _note_sums, _bodies, _note_expires);
        END IF;
        RETURN NULL;
    END $$;

    -- Notes that mean nothing any more beside those that were just written.
    CREATE FUNCTION holdfast.drop_notes(_scopes bytea[], _keys bytea[])
    RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        FOR i IN 1 .. cardinality(_scopes) LOOP
            DELETE FROM holdfast.notes WHERE scope = _scopes[i] AND key = _keys[i];
        END LOOP;
    END $$;

    -- Wake those who wait for notes of named scopes, each by the hash of its name; or all.
    CREATE FUNCTION holdfast.tell(_scopes bytea[]) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        IF cardinality(_scopes) > 16 THEN
            PERFORM pg_notify('holdfast_notes', '');
        ELSE
            PERFORM pg_notify('holdfast_notes', encode(sha256(s.scope), 'hex'))
            FROM (SELECT DISTINCT u.scope FROM unnest(_scopes) AS u (scope)) AS s
            WHERE substr(s.scope, 1, 1) = '/';
        END IF;
    END $$;

    -- What keep does, for notes that others may wait for. Two locks have to be held to the end of
    -- the transaction: that of the scope, and one that PostgreSQL takes for all who notify. So it
    -- ends before the disk is waited for, which is done behind it: nothing is acknowledged before.
    CREATE PROCEDURE holdfast.publish(
        bytea[], bytea[], bytea, bytea, bigint, bigint, bigint, bytea, bytea, bytea, bytea[],
        bytea, text, bytea, bytea, text, text, bytea[], bytea[], bytea[], bytea[], bigint[],
        bytea, bytea, bytea, bytea[], bigint[], bytea[], bytea[], INOUT refusal text
    ) LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM set_config('synchronous_commit', 'off', true);
        refusal := holdfast.keep(
            $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
            $20, $21, $22, $23, $24, $25, $26, $27
        );
        IF refusal IS NULL THEN
            PERFORM holdfast.drop_notes($28, $29);
            PERFORM holdfast.tell($18);
        END IF;
        COMMIT;
        -- A transaction that writes nothing waits for no disk.
        PERFORM pg_logical_emit_message(true, 'holdfast', '');
    END $$;

    -- Up to so many records and notes whose time has passed; whether there may be more.
    CREATE OR REPLACE FUNCTION holdfast.sweep(
        _now bigint, _limit bigint, OUT removed bigint, OUT more boolean
    ) LANGUAGE plpgsql AS $$
    DECLARE
        _notes bigint;
        _at bigint;
    BEGIN
        PERFORM pg_advisory_xact_lock(hashtextextended('holdfast.saves', 0));
        -- Who has a clock that is a little ahead may collect by it.
        _at := holdfast.now();
        UPDATE holdfast.meta SET swept = least(greatest(_at, _now, swept), _at + 60000000)
        WHERE program = 'holdfast';
        DELETE FROM holdfast.notes WHERE seq IN (
            SELECT seq FROM holdfast.notes WHERE expires <= _now ORDER BY expires LIMIT _limit
        );
        GET DIAGNOSTICS _notes = ROW_COUNT;
        removed := holdfast.remove(ARRAY(
            SELECT id FROM holdfast.checkpoints WHERE expires <= _now
            ORDER BY expires LIMIT _limit
        ));
        more := greatest(removed, _notes) >= _limit;
    END $$;
    """,
)
"""What leads from each version of the schema to the next; never edited once released."""

VERSION = len(MIGRATIONS)

SERVER = """
    SELECT current_setting('server_version_num')::int / 10000,
        current_setting('server_encoding'),
        current_setting('default_transaction_isolation'),
        to_regclass('holdfast.meta') IS NOT NULL
"""
READ_VERSION = """
    SELECT version, EXISTS (SELECT FROM holdfast.meta WHERE program = 'filing')
    FROM holdfast.meta WHERE program = 'holdfast'
"""
UNFILED = """
    SELECT c.session, c.seq, c.body FROM holdfast.checkpoints c
    WHERE (c.session, c.seq) > ($1, $2) ORDER BY c.session, c.seq LIMIT $3
"""
FIRST_UNFILED = "SELECT min(key) FROM holdfast.sessions WHERE NOT filed"
FILE = """
    UPDATE holdfast.sessions s SET tags = holdfast.tags_with(s.tags, m.tags), filed = true
    FROM (
        SELECT u.key, array_remove(array_agg(u.tag), NULL) AS tags
        FROM unnest($1::bigint[], $2::bigint[]) AS u (key, tag) GROUP BY u.key
    ) AS m
    WHERE s.key = m.key
"""
ALL_FILED = """
    UPDATE holdfast.sessions SET filed = true WHERE NOT filed;
    DELETE FROM holdfast.meta WHERE program = 'filing'
"""
BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
COMMIT = "COMMIT"
ROLLBACK = "ROLLBACK"
LOCK_MIGRATIONS = "SELECT pg_advisory_xact_lock(hashtextextended('holdfast.migrations', 0))"
HAS_SCHEMA = "SELECT to_regnamespace($1) IS NOT NULL"
HAS_META = "SELECT to_regclass('holdfast.meta') IS NOT NULL"
CREATE_META = """
    CREATE TABLE holdfast.meta (program text PRIMARY KEY, version int NOT NULL);
    INSERT INTO holdfast.meta VALUES ('holdfast', 0);
"""
WRITE_VERSION = "UPDATE holdfast.meta SET version = $1 WHERE program = 'holdfast'"

_KEPT = ", ".join(f"${n}" for n in range(1, 28))
KEEP = f"SELECT holdfast.keep({_KEPT})"
KEEP_INSTEAD = f"""
    WITH kept AS MATERIALIZED (SELECT holdfast.keep({_KEPT}) AS refusal)
    SELECT refusal, CASE WHEN refusal IS NULL THEN holdfast.drop_notes($28, $29) END FROM kept
"""  # noqa: S608
PUBLISH = f"CALL holdfast.publish({_KEPT}, $28, $29, NULL)"
TELL = "SELECT set_config('synchronous_commit', 'off', true), holdfast.tell($1)"
DROP_NOTES = "SELECT holdfast.drop_notes($1, $2)"
FLUSH = "SELECT pg_logical_emit_message(true, 'holdfast', '')::text"
"""Wait until all that was seen so far is on disk, be it of others."""
ENTER = "SELECT holdfast.enter($1, $2, $3)"
KEEP_CHUNKS = "SELECT holdfast.keep_chunks($1, $2)"
END_IDLE = "SET LOCAL idle_in_transaction_session_timeout = 60000"
"""For transactions of several statements: whoever vanishes in between blocks nobody for long."""

KEPT_RECORD = "SELECT sum FROM holdfast.checkpoints WHERE id = $1"
KEPT_NOTE = "SELECT sum FROM holdfast.notes WHERE scope = $1 AND key = $2"

RECORD_COLUMNS = """
    c.seq, c.made, c.id, s.agent, s.session, c.parent, c.expires, c.target, c.root, c.size, c.body,
    c.sum
"""
SELECT_RECORDS = f"""
    SELECT {RECORD_COLUMNS}
    FROM holdfast.checkpoints c JOIN holdfast.sessions s ON s.key = c.session
"""  # noqa: S608
SELECT_RECORDS_OF_SESSION = f"""
    SELECT {RECORD_COLUMNS}
    FROM holdfast.checkpoints c, (VALUES ($2::text, $3::text)) AS s (agent, session)
"""  # noqa: S608
OF_SESSION = """
    c.session BETWEEN (SELECT key FROM holdfast.sessions WHERE name = $1)
        AND (SELECT key FROM holdfast.sessions WHERE name = $1)
"""
"""A range, so that no plan looks for the records of an old session from the newest of all on."""
LOAD = "SELECT * FROM holdfast.load($1, $2)"
LOAD_NEWEST = """
    SELECT whole.* FROM holdfast.newest($1, $2, $3, $4, 1) AS n, holdfast.load(n.id, $4) AS whole
"""
NEWEST = "SELECT * FROM holdfast.newest($1, $2, $3, $4, $5)"
NEWEST_FIRST = "c.seq DESC"
OLDEST_FIRST = "c.seq"
MADE_SINCE = "(c.made IS NULL OR c.made >= {})"
PLACED_LATER = """
    c.seq = ANY (ARRAY(SELECT m.seq FROM holdfast.checkpoints m WHERE m.made < {} AND m.seq >= {}))
"""
"""Made before a time and written after it: very few."""

FETCH = "SELECT name, data FROM holdfast.fetch($1)"

SELECT_NOTES = """
    SELECT seq, scope, key, expires, body, sum FROM holdfast.notes
    WHERE seq > $1 AND (expires IS NULL OR expires > $2)
        AND ($4::bytea[] IS NULL OR scope = ANY ($4))
    ORDER BY seq LIMIT $3
"""

LAST_NOTES = """
    SELECT n.seq, n.scope, n.key, n.expires, n.body, n.sum FROM unnest($1::bytea[]) AS s (scope)
    CROSS JOIN LATERAL (
        SELECT * FROM holdfast.notes n
        WHERE n.scope = s.scope AND (n.expires IS NULL OR n.expires > $2)
        ORDER BY n.seq DESC LIMIT $3
    ) AS n
    ORDER BY n.seq
"""

TARGETS = """
    WITH RECURSIVE targets (head) AS (
        (SELECT left(target, 128) FROM holdfast.checkpoints WHERE target IS NOT NULL
            ORDER BY left(target, 128) LIMIT 1)
        UNION ALL
        SELECT (SELECT left(target, 128) FROM holdfast.checkpoints
            WHERE target IS NOT NULL AND left(target, 128) > head
            ORDER BY left(target, 128) LIMIT 1)
        FROM targets WHERE head IS NOT NULL
    )
    SELECT head FROM targets WHERE length(head) < 128
    UNION
    SELECT c.target FROM targets t JOIN holdfast.checkpoints c
        ON left(c.target, 128) = t.head AND c.target IS NOT NULL
    WHERE length(t.head) = 128
"""
"""From one to the next: of each only its first entry in the index is read."""

DECLARE_ROOTS = """
    DECLARE roots NO SCROLL CURSOR FOR SELECT root FROM holdfast.checkpoints
    WHERE $1::bigint IS NULL OR expires IS NULL OR expires > $1
"""
FETCH_ROOTS = "FETCH 10000 FROM roots"

HAS_TAG = "(NOT s.filed OR s.tags && {})"
TOUCHED_UNTIL = """
    (s.touched <= (SELECT seq >> 30 FROM holdfast.checkpoints WHERE id = {0})
        OR s.key IN (SELECT session FROM holdfast.checkpoints WHERE expires <= {1}))
"""
"""A session whose newest records have expired shows one of an earlier span."""
COUNT_SESSIONS = """
    SELECT count(*) FROM (
        SELECT FROM holdfast.sessions s WHERE {sessions} LIMIT {limit}
    ) AS s
"""
TOUCHED_LAST = """
    SELECT s.touched FROM holdfast.sessions s WHERE {sessions}
    ORDER BY s.touched DESC OFFSET {number} LIMIT 1
"""
SELECT_MERGED = f"""
    SELECT {RECORD_COLUMNS} FROM (
        SELECT s.agent, s.session, c.seq FROM (
            SELECT s.key, s.agent, s.session FROM holdfast.sessions s WHERE {{sessions}}
            ORDER BY s.touched DESC LIMIT {{number}}
        ) AS s
        CROSS JOIN LATERAL (
            SELECT c.seq FROM holdfast.checkpoints c WHERE c.session = s.key AND {{records}}
            ORDER BY c.session DESC, c.seq DESC LIMIT {{limit}}
        ) AS c
        ORDER BY c.seq DESC LIMIT {{limit}}
    ) AS s
    CROSS JOIN LATERAL (
        SELECT * FROM holdfast.checkpoints c WHERE c.seq = s.seq OFFSET 0
    ) AS c
    ORDER BY c.seq DESC
"""  # noqa: S608
"""Each record is fetched by its place: OFFSET keeps any plan from reading all to join them."""
OF_SESSIONS = "c.session = ANY (ARRAY(SELECT s.key FROM holdfast.sessions s WHERE {}))"
SELECT_HEADS = f"""
    SELECT {RECORD_COLUMNS.replace("s.", "c.").replace("c.session", "c.session_name")}, (
        SELECT count(*) FROM holdfast.checkpoints n
        WHERE n.session = c.session AND (n.expires IS NULL OR n.expires > {{now}})
    )
    FROM (
        SELECT s.agent, s.session AS session_name, c.* FROM (
            SELECT s.key, s.agent, s.session FROM holdfast.sessions s WHERE {{sessions}}
            ORDER BY s.touched DESC LIMIT {{number}}
        ) AS s
        CROSS JOIN LATERAL (
            SELECT * FROM holdfast.checkpoints c
            WHERE c.session = s.key AND (c.expires IS NULL OR c.expires > {{now}})
            ORDER BY c.session DESC, c.seq DESC LIMIT 1
        ) AS c
        WHERE {{records}} ORDER BY c.seq DESC LIMIT {{limit}}
    ) AS c
    ORDER BY c.seq DESC
"""  # noqa: S608
OLDER_THAN = "c.seq < (SELECT seq FROM holdfast.checkpoints WHERE id = {})"

MATCH = """
    (SELECT id FROM holdfast.checkpoints WHERE id >= $1 AND id <= $2 AND id > $5
        ORDER BY id LIMIT $6)
    UNION ALL
    (SELECT id FROM holdfast.checkpoints WHERE id >= $3 AND id < $4 AND id > $5
        ORDER BY id LIMIT $6)
    ORDER BY 1 LIMIT $6
"""

_FLUSHED_LATER = "set_config('synchronous_commit', 'off', true)"
REMOVE = f"SELECT holdfast.remove($1), {_FLUSHED_LATER}"
SWEEP = f"SELECT removed, more, {_FLUSHED_LATER} FROM holdfast.sweep($1, $2)"  # noqa: S608
"""Saves wait for these, so the disk is waited for when all parts are done."""

NOW = "SELECT holdfast.now()"
OLD_CHUNKS = """
    SELECT name, octet_length(data), written < $1 FROM holdfast.chunks
    WHERE name > $2 ORDER BY name LIMIT $3
"""
DROP_CHUNKS = """
    DELETE FROM holdfast.chunks WHERE name IN (
        -- In the order in which saves write them, so that neither waits for the other for ever.
        SELECT name FROM holdfast.chunks WHERE name = ANY ($1) AND written < $2
        ORDER BY name FOR UPDATE
    )
    RETURNING octet_length(data)
"""

STATS = """
    SELECT c.checkpoints, c.sessions, k.chunks, c.logical, k.stored
    FROM (
        SELECT count(*) AS checkpoints, count(DISTINCT session) AS sessions,
            coalesce(sum(size), 0)::bigint AS logical
        FROM holdfast.checkpoints WHERE expires IS NULL OR expires > $1
    ) AS c, (
        SELECT count(*) AS chunks, coalesce(sum(octet_length(data)), 0)::bigint AS stored
        FROM holdfast.chunks
    ) AS k
"""


@lru_cache(1024)
def in_schema(statement: str, schema: str) -> str:
    """Return a statement about the tables of that schema."""
    return statement.replace("holdfast.", f"{quoted(schema)}.")


def create_schema(schema: str) -> str:
    """Return the statement that makes a schema."""
    return f"CREATE SCHEMA {quoted(schema)}"


def quoted(schema: str) -> str:
    """Return the name of a schema, also if it is a word of SQL."""
    return f'"{schema}"'


def checked_schema(schema: object) -> str:
    """Return the name of a schema; one that psql would not take as it is written is refused."""
    if not isinstance(schema, str) or not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema):
        raise InvalidArgumentError(
            f"schema is a name of small letters, digits and _, not {schema!r}"
        )
    return schema
