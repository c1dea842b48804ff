"""A damaged store may give the same page again and again: who reads all of it comes to an end."""

from collections.abc import Collection

import pytest

from holdfast import CheckpointIntegrityError, SyncClient
from holdfast.stores import MemoryStore, Note, WrappedStore


class Circular(WrappedStore):
    """Begins anew where it should go on."""

    def notes(
        self, scopes: Collection[str] | None, after: int = 0, limit: int | None = None
    ) -> list[Note]:
        return self.inner.notes(scopes, 0, limit)

    def match(self, prefix: str, limit: int, after: str = "") -> list[str]:
        found = self.inner.match(prefix, limit)
        return found and (found * limit)[:limit]


@pytest.fixture
def client() -> SyncClient:
    client = SyncClient(Circular(MemoryStore()))
    client.save("coder", execution_state={"step": 1}, session_id="s")
    client.publish("topic", step=1)
    return client


def test_verify_ends_and_names_what_comes_again(client: SyncClient) -> None:
    reasons = {damage.reason for damage in client.verify().damaged}

    assert reasons == {"it is listed again behind itself", "its notes come again behind themselves"}


def test_gc_refuses_what_it_cannot_read_to_its_end(client: SyncClient) -> None:
    with pytest.raises(CheckpointIntegrityError, match="come again behind themselves"):
        client.gc()

    assert client.stats().checkpoints == 1
