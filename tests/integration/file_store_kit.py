"""Helpers of the file store's tests, for use in child processes too."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import holdfast
from holdfast.core.chunk_decoder import decode
from holdfast.core.chunk_encoder import encode
from holdfast.core.chunk_format import compress
from holdfast.model import new_info
from holdfast.stores.base import Commit
from holdfast.stores.file.store import FileStore


def make_commit(
    state: Any = None,
    agent_id: str = "coder",
    session_id: str = "s",
    checkpoint_id: str | None = None,
    allow_pickle: bool = False,
    **fields: Any,
) -> Commit:
    encoded = encode({"execution_state": state, "agent_context": {}}, allow_pickle=allow_pickle)
    info = new_info(agent_id=agent_id, session_id=session_id, **fields)
    info = info.with_(
        checkpoint_id=checkpoint_id or info.checkpoint_id,
        content_id=encoded.root.hex(),
        size=encoded.size,
    )
    return Commit(info, {name: compress(raw) for name, raw in encoded.chunks.items()})


def expired(commit: Commit) -> Commit:
    past = datetime.now(UTC) - timedelta(days=1)
    return replace(commit, info=commit.info.with_(created_at=past, ttl_seconds=60))


def save(store: FileStore, state: Any = None, **fields: Any) -> str:
    commit = make_commit(state, allow_pickle=store.allow_pickle, **fields)
    store.commit(commit)
    return commit.info.checkpoint_id


def state_of(store: FileStore, checkpoint_id: str, **options: Any) -> Any:
    record = store.load(checkpoint_id)
    assert record is not None
    return decode(bytes.fromhex(record.info.content_id), record.chunks, **options)[
        "execution_state"
    ]


HELPERS = (".lock", ".last")
"""Files that hold no checkpoint: locks, and hints at what was written last."""


def files_below(directory: Path) -> list[Path]:
    return sorted(
        path for path in directory.rglob("*") if path.is_file() and path.name not in HELPERS
    )


def document_of(directory: Path, checkpoint_id: str) -> Path:
    (path,) = directory.rglob(f"{checkpoint_id}.*")
    return path


REPOSITORY = Path(__file__).parents[2]
PATH = os.pathsep.join([str(REPOSITORY), str(Path(holdfast.__file__).parents[1])])

PREFACE = """
import os, signal, sys, threading
from holdfast.errors import *
from holdfast.system import crash_points
from holdfast.stores.file.store import FileStore
from tests.integration.file_store_kit import *

store = FileStore(sys.argv[1])

def wait_for_the_others():
    print("ready", flush=True)
    sys.stdin.readline()
"""


def start(script: str, *arguments: object, within: Sequence[str] = ()) -> subprocess.Popen[str]:
    """Run a script in a process of its own, started by the command ``within`` if there is one."""
    return subprocess.Popen(
        [*within, sys.executable, "-c", PREFACE + script, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": PATH},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
