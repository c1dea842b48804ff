"""Hostile rows in PostgreSQL, by a role that may write to the tables: a good store made bad."""

RECORD = """
    INSERT INTO {schema}.checkpoints
        (seq, made, session, expires, size, id, parent, root, sum, target, beneath, body)
    SELECT seq + 7, {made}, session, {expires}, {size}, {id}, {parent}, {root}, {sum}, {target},
        {beneath}, {body}
    FROM {schema}.checkpoints LIMIT 1
"""


def _record(**values: str) -> str:
    columns = ("made", "expires", "size", "parent", "root", "sum", "target", "beneath", "body")
    plain = {name: name for name in columns} | {"id": "'bad'::bytea"} | values
    return RECORD.format(schema="{schema}", **plain)


ROWS: dict[str, str] = {
    "an id of no bytes": _record(id="''::bytea"),
    "an id that is no text": _record(id="'\\xfffe'::bytea"),
    "an id of half a UUID": _record(id="'\\x000102'::bytea"),
    "an id of a UUID and more": _record(id="'\\x00'::bytea || decode(repeat('ab', 50), 'hex')"),
    "an id of two thousand bytes": _record(id="decode(repeat('61', 2000), 'hex')"),
    "a parent that is no text": _record(parent="'\\xff'::bytea"),
    "a parent that is itself": "UPDATE {schema}.checkpoints SET parent = id",
    "parents in a circle": "UPDATE {schema}.checkpoints SET parent = "
    "(SELECT id FROM {schema}.checkpoints ORDER BY id DESC LIMIT 1)",
    "a time beyond all time": _record(made="9223372036854775807"),
    "a time before all time": _record(made="-9223372036854775808"),
    "an expiry beyond all time": _record(expires="9223372036854775807"),
    "an expiry before all time": _record(expires="-9223372036854775808"),
    "a size below nothing": _record(size="-1"),
    "a size beyond all bounds": "UPDATE {schema}.checkpoints SET size = 9223372036854775807",
    "a root of no bytes": _record(root="''::bytea"),
    "a root of a megabyte": _record(root="decode(repeat('ab', 1000000), 'hex')"),
    "a checksum of no bytes": _record(sum="''::bytea"),
    "a target of a megabyte": _record(target="repeat('x', 1000000)"),
    "chunks beneath that are not there": _record(beneath="ARRAY['\\x00'::bytea, ''::bytea]"),
    "chunks beneath that are nothing": _record(beneath="ARRAY[NULL::bytea]"),
    "a body of no bytes": _record(body="''::bytea"),
    "a body cut short": _record(body="substr(body, 1, 5)"),
    "a body with fields to come": _record(
        body="'\\x98'::bytea || substr(body, 2) || '\\x81a47a6f6e6501'::bytea"
    ),
    "a body with fields to come that are a number": _record(
        body="'\\x98'::bytea || substr(body, 2) || '\\x07'::bytea"
    ),
    "a body of deep lists": _record(body="decode(repeat('91', 100000), 'hex')"),
    "a body that claims a billion": _record(body="'\\xdd3b9aca00c0'::bytea"),
    "a body of a megabyte": _record(body="decode(repeat('c0', 1000000), 'hex')"),
    "a place before all time": "UPDATE {schema}.checkpoints SET seq = -9223372036854775808 "
    "WHERE seq = (SELECT max(seq) FROM {schema}.checkpoints)",
    "a place after all time": "UPDATE {schema}.checkpoints SET seq = 9223372036854775807 "
    "WHERE seq = (SELECT max(seq) FROM {schema}.checkpoints)",
    "a session that is not there": "UPDATE {schema}.checkpoints SET session = 99999",
    "an agent without a name": "UPDATE {schema}.sessions SET agent = ''",
    "an agent of a megabyte": "UPDATE {schema}.sessions SET agent = repeat('x', 1000000)",
    "chunks of no bytes": "UPDATE {schema}.chunks SET data = ''",
    "chunks of zeros": "UPDATE {schema}.chunks SET data = decode(repeat('00', 100000), 'hex')",
    "chunks that claim a terabyte": "UPDATE {schema}.chunks SET data = "
    "'\\x0128b52ffde00000000000010000010000'::bytea",
    "chunks of one another": "UPDATE {schema}.chunks SET data = "
    "(SELECT data FROM {schema}.chunks LIMIT 1)",
    "chunks written after all time": "UPDATE {schema}.chunks SET written = 9223372036854775807",
    "notes of no bytes": "UPDATE {schema}.notes SET body = '', sum = ''",
    "notes whose scope is no text": "UPDATE {schema}.notes SET scope = '\\xff'::bytea || scope",
    "notes whose key is no text": "UPDATE {schema}.notes SET key = '\\xff'::bytea || key",
    "notes that expire after all time": "UPDATE {schema}.notes SET expires = 9223372036854775807",
    "notes at the last place": "UPDATE {schema}.notes SET seq = 9223372036854775807 "
    "WHERE seq = (SELECT max(seq) FROM {schema}.notes)",
}
"""Rows that no save writes, in tables that are ours. A hostile server, or one who may replace the
tables and functions themselves, is another matter: then PostgreSQL is not yours."""
