"""What a Holdfast does that has one field of the record more: `python -m …record_field_jobs JOB …`.

The field is added as a person would add it: one line in the table, `holdfast/model/fields.py`.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

ROW = '    priority: int = field(default=0, metadata=row(COUNT, since="1.1"))\n'
BEHIND_THE_ROWS = "\n    @property\n    def expires_at("


class _WithTheField(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path).decode()
        assert BEHIND_THE_ROWS in source
        return compile(source.replace(BEHIND_THE_ROWS, ROW + BEHIND_THE_ROWS), self.path, "exec")


class _Finder(MetaPathFinder):
    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname != "holdfast.model.fields":
            return None
        spec = PathFinder.find_spec(fullname, path)
        assert spec is not None
        assert spec.origin is not None
        spec.loader = _WithTheField(fullname, spec.origin)
        return spec


if __name__ == "__main__":
    sys.meta_path.insert(0, _Finder())

from holdfast import (  # noqa: E402  (after the table has its line)
    Checkpoint,
    CheckpointBuilder,
    CheckpointIntegrityError,
    SyncClient,
)
from holdfast.cli.output.checkpoints import checkpoint_json  # noqa: E402
from holdfast.cli.output.json_schemas import CHECKPOINT  # noqa: E402

AGENT, SESSION = "coder", "fix-42"


def built(priority: int, step: int, **changes: Any) -> Checkpoint:
    """A checkpoint that says the field."""
    builder = CheckpointBuilder(AGENT).session(SESSION).step(step).tag(kind=("a", step))
    made = builder._set(priority=priority).execution_state({"step": step}).build()
    if not changes:
        return made
    from holdfast.model import encode_payload

    encoded = encode_payload(made.payload())
    info = made.info(encoded.root.hex(), encoded.size).with_(**changes)
    return Checkpoint.from_parts(info, made.payload())


def priorities(client: SyncClient) -> list[int]:
    return [info.priority for info in client.timeline(AGENT, SESSION)]  # type: ignore[attr-defined]


def save(client: SyncClient) -> None:
    """Save with the field, without it, and with it behind what is later by the clock."""
    first = built(7, 0)
    client.put(first)
    plain = client.save(AGENT, execution_state={"step": 1}, session_id=SESSION, step_index=1)
    early = built(9, 2, created_at=first.created_at - timedelta(hours=1))
    client.put(early)

    assert (first.schema_version, early.schema_version) == ("1.1", "1.1")
    for saved in (first, early):
        restored: Any = client.restore(saved.checkpoint_id)
        assert restored == saved
        assert restored.verify_integrity()
        assert not replace(restored, priority=8).verify_integrity()
    silent: Any = client.restore(plain)
    assert (silent.priority, silent.schema_version) == (0, "1.0")
    raised = replace(silent, priority=5, checkpoint_id="raised")
    assert not replace(silent, priority=5).verify_integrity()
    try:
        client.put(raised)
        raise AssertionError("an altered checkpoint was kept")
    except CheckpointIntegrityError:
        pass
    check(client)


def check(client: SyncClient) -> None:
    """Whether what ``save`` saved is all there."""
    import jsonschema  # type: ignore[import-untyped]

    assert priorities(client) == [9, 0, 7]
    assert [info.schema_version for info in client.timeline(AGENT, SESSION)] == [
        "1.1",
        "1.0",
        "1.1",
    ]
    assert client.find(tags={"kind": ("a", 2)})[0].step_index == 2
    for info in client.timeline(AGENT, SESSION):
        shown = checkpoint_json(info)
        jsonschema.validate(shown, CHECKPOINT)
        assert shown["priority"] == info.priority  # type: ignore[attr-defined]
        assert "priority" in CHECKPOINT["required"]
    for checkpoint in client.timeline(AGENT, SESSION, with_state=True):
        assert checkpoint.verify_integrity()
        assert Checkpoint.from_dict(checkpoint.as_dict()) == checkpoint
    verified = client.verify()
    assert verified.ok, verified
    assert verified.checkpoints == 3


def written(url: str, bundle: str) -> None:
    """Save to a store, and export it."""
    with SyncClient.open(url) as client:
        save(client)
        client.export(bundle)


def read(url: str, bundle: str) -> None:
    """Read the store again, and what was exported by one who does not know the field."""
    if url != "memory://":
        with SyncClient.open(url) as client:
            check(client)
    with SyncClient.memory() as client:
        client.import_(bundle)
        check(client)


def golden(release: str, kind: str, path: str) -> None:
    """Read a store of a release, prove every record, and save to it with the field."""
    from tests.integration.test_golden import OPENERS
    from tests.integration.test_golden import check as check_golden

    opened = OPENERS[kind](Path(path)) if kind in OPENERS else SyncClient.memory()
    with opened as client:
        if kind == "bundle.holdfast":
            client.import_(path)
        infos: Any = client.find(limit=None)
        assert len(infos) >= 7, release
        assert {(info.priority, info.schema_version) for info in infos} == {(0, "1.0")}
        check_golden(client)
        verified = client.verify()
        assert (verified.ok, verified.checkpoints) == (True, len(infos)), verified
        client.put(built(3, 0))
        assert priorities(client) == [3]
        assert client.verify().ok


if __name__ == "__main__":
    job, *arguments = sys.argv[1:]
    JOBS: dict[str, Callable[..., None]] = {"written": written, "read": read, "golden": golden}
    JOBS[job](*arguments)
