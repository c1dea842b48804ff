"""The tools over MCP on stores of malformed things: each call has its answer, and no fault."""

import json
import shutil
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import SyncClient
from holdfast.cli.mcp.calls import Calls
from holdfast.cli.mcp.json_rpc import result
from holdfast.cli.mcp.protocol import Call
from holdfast.cli.output.escaping import printable
from tests.cli.malformed import FAMILIES, Malformed, write

MOST = 15
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("log", {}),
    ("diff", {"old": "@"}),
    ("diff", {"old": "@~1", "new": "@", "text": True}),
    ("rollback", {"checkpoint": "@"}),
    ("rewind", {"checkpoint": "@"}),
    ("fork", {"checkpoint": "@", "name": "another"}),
    ("checkpoint", {"name": "all the same"}),
    ("rollback", {"checkpoint": "all the same"}),
    ("log", {"limit": 1}),
)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_every_tool_answers_on_every_malformed_session(
    family: Callable[[Malformed], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, store, folder = tmp_path / "made.db", tmp_path / "copy.db", tmp_path / "workspace"
    folder.mkdir()
    (folder / "file").write_text("mine\n")
    monkeypatch.chdir(folder)
    write(family, made)
    with SyncClient.sqlite(made) as client:
        sessions = client.sessions()

    for session in sessions[:: max(1, len(sessions) // MOST)]:
        shutil.copy(made, store)
        named = f"{session.agent_id}/{session.session_id}"
        given = Namespace(workspace=folder, agent="mcp", session=named, store=f"sqlite:///{store}")
        calls = Calls(given)
        for tool, arguments in CALLS:
            answer = calls(Call(1, tool, arguments, {}, "claude-code"))
            sent = json.loads(result(1, answer))["result"]
            text = sent["content"][0]["text"]
            assert "fault of holdfast" not in text, (named, tool, text)
            assert printable(text) == text
            assert sent["isError"] or sent["structuredContent"]
            assert (folder / "file").read_text() == "mine\n"
