"""Where to move from and to."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from holdfast import SyncClient
from tests.integration.moving_kit import KEY
from tests.servers import PostgresServer


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Where the file of another saver is."""
    return tmp_path / "checkpoints.sqlite"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[SyncClient]:
    with SyncClient.sqlite(tmp_path / "holdfast.db", durability="normal") as client:
        yield client


@pytest.fixture(scope="module")
def old_server() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture
def dsn(old_server: PostgresServer) -> str:
    """A database of its own for each test."""
    name = old_server.new_schema()
    old_server.execute(f"CREATE DATABASE {name}", database="postgres")
    return old_server.url(database=name)


@pytest.fixture
def theirs(dsn: str) -> Iterator[PostgresSaver]:
    with PostgresSaver.from_conn_string(dsn) as saver:
        saver.setup()
        yield saver


@pytest.fixture
def encrypted() -> EncryptedSerializer:
    return EncryptedSerializer.from_pycryptodome_aes(key=KEY)
