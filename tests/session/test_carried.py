"""What a bundle cannot carry: decisions, questions and leases, which are this store's own."""

from pathlib import Path

import pytest

from holdfast import Framework, SyncClient
from holdfast.errors import HoldfastError
from holdfast.model import make_payload, new_info
from holdfast.session import approval, lease
from holdfast.verbs import notes, save

SCOPES = ["/approval/abcdef", "/approvals", lease.scope_of("coder", "fix-42"), "/workspaces/repo"]


@pytest.mark.parametrize("scope", SCOPES)
def test_a_bundle_cannot_carry_notes_that_belong_to_no_checkpoint(
    tmp_path: Path, scope: str
) -> None:
    with SyncClient.memory() as author:
        info = new_info(
            agent_id="coder",
            framework=Framework.CUSTOM,
            session_id="fix-42",
            parent_id=None,
            step_index=0,
            step_name=None,
            metadata={},
        ).with_(checkpoint_id=scope)
        written = notes.NoteBatch()
        decided = {"allowed": True, "reason": None, "args": ["evil"], "kwargs": None, "by": None}
        written.add(author.runtime.engine, scope, "decision", decided)
        author.runtime.run(
            save.write(author.runtime.engine, info, make_payload({}, {}), [], written)
        )
        author.export(tmp_path / "hostile.bundle")
    with SyncClient.memory() as client:
        with pytest.raises(HoldfastError, match="begins with '/'"):
            client.import_(tmp_path / "hostile.bundle")
        assert client.runtime.run(approval._decided(client.runtime.engine, "abcdef")) is None
        assert client.store.notes([scope]) == []
