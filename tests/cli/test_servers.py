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
