"""Others may write to the same tables: what they wrote is read to its end, and named."""

import pytest

from holdfast import SyncClient
from tests.hostile.kit import Said, crashes, fill, judged
from tests.hostile.postgres_rows import ROWS
from tests.servers import shared_postgres

pytestmark = pytest.mark.timeout(900)  # each case has limits of its own


@pytest.fixture(scope="module")
def said() -> dict[str, Said]:
    """What every verb says of each of the rows."""
    server = shared_postgres()
    cases = {}
    schemas = []
    for name, statement in ROWS.items():
        schema = server.new_schema()
        with SyncClient.postgres(server.dsn, schema=schema, pool_size=2) as client:
            fill(client, steps=1)
        server.execute(statement.format(schema=schema))
        schemas.append(schema)
        cases[name] = {"url": f"{server.dsn}?schema={schema}"}
    answers = judged(cases)
    for schema in schemas:
        server.execute(f"DROP SCHEMA {schema} CASCADE")
    return answers


@pytest.mark.parametrize("name", ROWS)
def test_a_hostile_row_gives_an_answer_or_an_error(name: str, said: dict[str, Said]) -> None:
    problems = crashes({name: said[name]})

    assert not problems, problems
