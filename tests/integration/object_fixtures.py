"""The S3 server of a test session: one for each worker, started when it is first needed."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.object_server import S3Server


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    with S3Server() as server:
        yield server


@pytest.fixture
def bucket(s3: S3Server) -> str:
    """The URL of a place on the server that is this test's own."""
    return s3.url(f"tests/{secrets.token_hex(8)}")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A directory for objects."""
    return tmp_path / "objects"
