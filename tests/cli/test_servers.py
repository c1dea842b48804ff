"""The same commands on stores that are servers."""

from collections.abc import Iterator

import pytest

from holdfast import SyncClient
from tests.cli.kit import Holdfast
from tests.redis_servers import RedisServer
from tests.servers import shared_postgres


@pytest.fixture(scope="module")
def redis() -> Iterator[str]:
    server = RedisServer()
    yield server.url
    server.stop()


@pytest.fixture
def postgres() -> Iterator[str]:
    server = shared_postgres()
    schema = server.new_schema()
    yield f"{server.dsn}?schema={schema}"
    server.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


@pytest.fixture(params=["redis", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


def test_commands_work_on_a_server(url: str, holdfast: Holdfast) -> None:
    with SyncClient.open(url) as client, client.session("coder", session_id="fix") as run:
        for task in run.tasks.plan("one", "two").remaining():
            with task:
                run.state[task.name] = True
    (holdfast.directory / "page").write_text("kept")

    def ok(*arguments: str) -> str:
        return holdfast.ok(*arguments, "--store", url)

    assert "2/2" in ok("log", "--graph")
    assert '"two": true' in ok("show", "--state")
    ok("rollback", "one: completed", "--yes")
    assert "1/2" in ok("tasks")
    ok("undo", "--yes")
    ok("fork", "@-", "--as", "other")
    ok("snapshot", "--session", "files", "-m", "kept")
    ok("restore", "kept", "--to", "copy")
    assert (holdfast.directory / "copy" / "page").read_text() == "kept"
    assert "all whole" in ok("verify")
    assert " at format " in ok("migrate")
    assert "failed " not in ok("doctor")
    assert ok("watch", "--timeout", "0.1")


def test_doctor_names_the_grants_that_a_role_lacks(holdfast: Holdfast) -> None:
    server = shared_postgres()
    schema, role = server.new_schema(), f"role_{server.new_schema()}"
    server.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'pw'")
    url = f"{server.dsn}?schema={schema}"
    with SyncClient.open(url) as client:
        client.save("a", execution_state={})
    try:
        as_role = _as_role(url, role)
        unused = holdfast("doctor", "--store", as_role)
        server.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        unread = holdfast("doctor", "--store", as_role)
        server.execute(
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}"
        )
        allowed = holdfast("doctor", "--store", as_role)
        elsewhere = holdfast("doctor", "--store", as_role.replace(schema, f"{schema}_new"))
    finally:
        server.execute(f"DROP SCHEMA {schema} CASCADE")
        server.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")

    assert f'GRANT USAGE ON SCHEMA "{schema}" TO "{role}"' in unused.out
    assert "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES" in unread.out
    assert "failed   grants" not in allowed.out
    assert "GRANT CREATE ON DATABASE" in elsewhere.out
    assert [unused.code == 0, unread.code == 0] == [False, False]


def _as_role(url: str, role: str) -> str:
    from urllib.parse import urlencode, urlsplit

    parts = urlsplit(url)
    query = f"{parts.query}&{urlencode({'user': role, 'password': 'pw'})}"
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query=query).geturl()


def test_doctor_tells_of_a_redis_that_evicts_or_forgets(holdfast: Holdfast) -> None:
    server = RedisServer("--maxmemory-policy", "allkeys-lru", "--appendonly", "no", "--save", "")
    try:
        told = holdfast("doctor", "--store", server.url).out
    finally:
        server.stop()

    assert "maxmemory-policy is allkeys-lru" in told
    assert "CONFIG SET maxmemory-policy noeviction" in told
    assert "a restart loses every checkpoint" in told
