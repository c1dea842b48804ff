"""Where a Redis store lives: its URL, and the clients that lead there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from holdfast.errors import InvalidArgumentError, MissingPackageError

ServerKind = Literal["server", "cluster", "sentinel"]

_FORMS = (
    "redis://user:password@host:6379/0, rediss:// for TLS, unix:///path/to/redis.sock, "
    "redis+cluster://host:6379,host:6379 or redis+sentinel://host:26379,host:26379/service/0"
)
SCHEMES = (
    *("redis", "rediss", "unix", "redis+cluster", "rediss+cluster"),
    *("redis+sentinel", "rediss+sentinel"),
)
"""What the URLs of this store begin with."""
OWN = ("prefix", "timeout", "allow_eviction")
"""Options that are the store's own."""
_KINDS: dict[str, ServerKind] = {"": "server", "cluster": "cluster", "sentinel": "sentinel"}
_PORTS = {"server": 6379, "cluster": 6379, "sentinel": 26379}


@dataclass(frozen=True, slots=True)
class Address:
    """A URL, taken apart."""

    kind: ServerKind
    shown: str
    """The URL without user, password and options, for messages."""
    plain: str = field(repr=False)
    """A URL that the Redis client reads, with everything but hosts and service."""
    hosts: tuple[tuple[str, int], ...]
    service: str
    own: dict[str, str]
    """Options of the store, not of its connections."""


def parse(url: str) -> Address:
    """Take a URL apart; what is wrong with one is said without showing its password."""
    if not isinstance(url, str):
        raise InvalidArgumentError(f"a Redis store is named by a URL such as {_FORMS}")
    try:
        return _parse(url)
    except ValueError:  # its message may hold the password
        pass
    raise InvalidArgumentError(
        f"that is no URL of a Redis store; write it as {_FORMS}, and in a user or password "
        "percent-encode what is neither letter nor digit"
    )


def _parse(url: str) -> Address:
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES:
        raise ValueError("no such scheme")
    base, _, form = parts.scheme.partition("+")
    if parts.fragment:
        raise ValueError("a fragment")
    kind = _KINDS[form]
    options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    own: dict[str, str] = {k: options.pop(k) for k in OWN if k in options}
    hosts: tuple[tuple[str, int], ...] = ()
    credentials, at, places = parts.netloc.rpartition("@")
    if base == "unix":
        shown, service, path = f"unix://{parts.path}", "", parts.path
    else:
        hosts = tuple(_host(place, _PORTS[kind]) for place in places.split(","))
        if kind == "server" and len(hosts) > 1:
            raise ValueError("more than one host")
        service, path = _service_and_database(kind, parts.path)
        listed = ",".join(f"{host}:{port}" for host, port in hosts)
        shown = f"{parts.scheme}://{listed}" + (f"/{service}" if service else "") + path
    query = f"?{urlencode(options)}" if options else ""
    place = _written(hosts[0]) if hosts else ""
    plain = f"{base}://{credentials}{at}{place}{path}{query}"
    return Address(kind, shown, plain, hosts, service, own)


def _host(place: str, port: int) -> tuple[str, int]:
    parts = urlsplit(f"//{place}")
    if not parts.hostname:
        raise ValueError("no host")
    return unquote(parts.hostname), parts.port or port


def _written(host: tuple[str, int]) -> str:
    name, port = host
    return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"


def _service_and_database(kind: ServerKind, path: str) -> tuple[str, str]:
    names = [unquote(name) for name in path.split("/") if name]
    if kind == "sentinel" and not names:
        raise ValueError("no service")
    service = names.pop(0) if kind == "sentinel" else ""
    database = names.pop(0) if names else ""
    if names or (database and not database.isdecimal()):
        raise ValueError("no such database")
    if kind == "cluster" and int(database or 0):
        raise ValueError("a cluster has no databases")
    return service, f"/{database}" if database else ""


def package() -> Any:
    """Return the Redis client, or how to get it."""
    try:
        import redis
    except ImportError:
        raise MissingPackageError("a Redis store", "redis", "redis") from None
    return redis


def sync_client(address: Address, timeout: float) -> Any:
    """Return a client for threads; connects when it is used."""
    import redis.cluster
    import redis.sentinel

    return _client(redis, redis, address, timeout)


def async_client(address: Address, timeout: float) -> Any:
    """Return a client for the tasks of one event loop; connects when it is used."""
    import redis.asyncio.cluster
    import redis.asyncio.sentinel

    return _client(redis, redis.asyncio, address, timeout)


def _client(redis: Any, face: Any, address: Address, timeout: float) -> Any:
    """Return a client of the sync or the async side of the package, whose names are the same."""
    retry = face.retry.Retry(redis.backoff.NoBackoff(), 0)
    options = _options(address, face.connection.parse_url, timeout, retry)
    if address.kind == "cluster":
        nodes = [face.cluster.ClusterNode(*host) for host in address.hosts]
        return face.cluster.RedisCluster(startup_nodes=nodes, **_for_cluster(options))
    if address.kind == "sentinel":
        sentinel = face.sentinel.Sentinel(address.hosts, **_for_sentinel(options))
        return sentinel.master_for(address.service)
    return face.Redis(connection_pool=face.ConnectionPool(**options))


def _options(address: Address, parse_url: Any, timeout: float, retry: Any) -> dict[str, Any]:
    try:
        options = parse_url(address.plain)
    except ValueError as error:
        raise InvalidArgumentError(
            f"{address.shown} has an option that cannot be: {error}"
        ) from None
    return {
        **options,
        "socket_timeout": timeout,
        "socket_connect_timeout": timeout,
        "retry": retry,  # none: what is tried again, and for how long, is decided in one place
        "retry_on_error": [],
        "protocol": 2,
        "decode_responses": False,
    }


def _for_cluster(options: dict[str, Any]) -> dict[str, Any]:
    unwanted = {"host", "port", "db", "connection_class", "retry_on_error"}
    kept = {name: value for name, value in options.items() if name not in unwanted}
    return {**kept, "ssl": True} if "connection_class" in options else kept


def _for_sentinel(options: dict[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in options.items() if k not in {"host", "port", "connection_class"}}
    if "connection_class" in options:
        kept["ssl"] = True
    own = ("socket_timeout", "socket_connect_timeout", "ssl")
    return {**kept, "sentinel_kwargs": {name: kept[name] for name in own if name in kept}}
