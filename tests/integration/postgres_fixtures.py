"""The PostgreSQL server of a test session: one for each worker, started when it is first needed."""

from collections.abc import Iterator

import pytest

from tests.servers import PgBouncer, PostgresServer, shared_postgres


@pytest.fixture(scope="session")
def postgres() -> PostgresServer:
    return shared_postgres()


@pytest.fixture(scope="session")
def pgbouncer(postgres: PostgresServer) -> Iterator[PgBouncer]:
    with PgBouncer(postgres) as bouncer:
        yield bouncer


@pytest.fixture
def schema(postgres: PostgresServer) -> Iterator[str]:
    """A schema of the test's own, gone at its end."""
    schema = postgres.new_schema()
    yield schema
    postgres.recover()
    postgres.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


@pytest.fixture
def fragile(postgres: PostgresServer, schema: str) -> PostgresServer:
    """The server, for a test that stops, kills or pauses it; it runs again at the end."""
    return postgres
