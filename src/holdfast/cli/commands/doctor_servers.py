"""What ``holdfast doctor`` asks servers: what the role may do, and whether what is kept stays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

if TYPE_CHECKING:
    from holdfast.stores.discovery import StoreLocation

Verdict = Literal["ok", "warning", "failed"]
Found = tuple[str, Verdict, str]
"""The name of a check, its verdict and what is said of it."""

_OWN = ("schema", "pool_size", "timeout")
_PATIENCE = 5.0
_WANTED = ("SELECT", "INSERT", "UPDATE", "DELETE")
_ROLE = "SELECT current_user, current_database()"
_MAY_CREATE = (
    "SELECT to_regnamespace(%s) IS NOT NULL, has_database_privilege(current_database(), 'CREATE')"
)
_MAY_USE = "SELECT has_schema_privilege(%s, 'USAGE')"
_TABLES = """
SELECT c.relname, has_table_privilege(c.oid, p.privilege), p.privilege
FROM pg_class c CROSS JOIN unnest(%s::text[]) AS p(privilege)
WHERE c.relnamespace = to_regnamespace(%s) AND c.relkind IN ('r', 'p')
"""


def ask(location: StoreLocation) -> Iterator[Found]:
    """Yield what the server of a store says of itself; nothing where the store is no server."""
    scheme = urlsplit(location.url).scheme
    if scheme.startswith("postgres"):
        yield from _postgres(location.url)
    elif scheme.startswith(("redis", "rediss", "unix")):
        yield from _redis(location.url)


def _postgres(url: str) -> Iterator[Found]:
    from holdfast.stores.postgres.connection import ServerAddress
    from holdfast.stores.postgres.schema import DEFAULT_SCHEMA, checked_schema

    options = dict(parse_qsl(urlsplit(url).query, keep_blank_values=True))
    schema = checked_schema(options.get("schema", DEFAULT_SCHEMA))
    rest = {k: v for k, v in options.items() if k not in _OWN and not k.startswith("blobs")}
    dsn = urlunsplit(urlsplit(url)._replace(query=urlencode(rest)))
    server = ServerAddress(dsn, schema, _PATIENCE)
    import psycopg  # here, as the package before says how to get it

    try:
        with psycopg.connect(**server.options) as db:
            problem = _missing_grants(db, schema)
    except psycopg.Error as error:
        raise server.translated(error) from None
    if problem is None:
        yield "grants", "ok", "the role may read and write what is needed"
    else:
        yield "grants", "failed", problem


def _missing_grants(db: Any, schema: str) -> str | None:
    """Return what the role may not do, and the command that lets it."""
    role, database = db.execute(_ROLE).fetchone()
    is_there, may_create = db.execute(_MAY_CREATE, [schema]).fetchone()
    if not is_there:
        if may_create:
            return None
        return (
            f"role {role} may not make the schema {schema}: "
            f'GRANT CREATE ON DATABASE "{database}" TO "{role}"'
        )
    if not db.execute(_MAY_USE, [schema]).fetchone()[0]:
        return (
            f"role {role} may not use the schema {schema}: "
            f'GRANT USAGE ON SCHEMA "{schema}" TO "{role}"'
        )
    rows = db.execute(_TABLES, [list(_WANTED), schema]).fetchall()
    tables = sorted({table for table, may, _ in rows if not may})
    if not tables:
        return None
    missing = [word for word in _WANTED if any(w == word and not may for _, may, w in rows)]
    return (
        f"role {role} may not {', '.join(missing)} in {', '.join(tables)}: "
        f'GRANT {", ".join(missing)} ON ALL TABLES IN SCHEMA "{schema}" TO "{role}"'
    )


def _redis(url: str) -> Iterator[Found]:
    from holdfast.stores.redis.urls import package, parse, sync_client

    redis = package()
    address = parse(url)
    if address.kind == "cluster":
        yield "eviction", "warning", "of a cluster this is not asked: look at each of its nodes"
        return
    server = sync_client(address, _PATIENCE)
    try:
        memory = server.info("memory")
        persistence = server.info("persistence")
        saves = _setting(server, "save", redis)
    except redis.RedisError:
        return  # opening the store says what is wrong
    finally:
        server.close()
    yield _eviction(str(memory.get("maxmemory_policy", "noeviction")))
    yield _persistence(bool(persistence.get("aof_enabled")), saves)


def _setting(server: Any, name: str, redis: Any) -> str | None:
    """Return a setting of the server; None where CONFIG is not allowed, as with many providers."""
    try:
        found = server.config_get(name)
    except redis.ResponseError:
        return None
    value = next(iter(found.values()), "")
    return value.decode() if isinstance(value, bytes) else str(value)


def _eviction(policy: str) -> Found:
    if policy == "noeviction":
        return "eviction", "ok", "noeviction: what is kept stays"
    return (
        "eviction",
        "failed",
        f"maxmemory-policy is {policy}: when memory is full, checkpoints that were acknowledged "
        "vanish. CONFIG SET maxmemory-policy noeviction (and in redis.conf)",
    )


def _persistence(has_log: bool, saves: str | None) -> Found:
    if has_log:
        return "persistence", "ok", "appendonly is on"
    if saves is None:
        return "persistence", "warning", "appendonly is off; whether it saves may not be asked"
    if saves:
        return (
            "persistence",
            "warning",
            f"appendonly is off: a crash loses what was kept since the last save ({saves}). "
            "CONFIG SET appendonly yes (and in redis.conf)",
        )
    return (
        "persistence",
        "warning",
        "appendonly and save are off: a restart loses every checkpoint. "
        "CONFIG SET appendonly yes (and in redis.conf)",
    )
