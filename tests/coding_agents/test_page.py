"""What docs/coding-agents.md shows of Claude Code is what the real program and Holdfast do."""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.coding_agents.kit import ROOT, Edit, Reply, Shell, Tool
from tests.coding_agents.programs import real_program
from tests.project.run_document import parse

PAGE = ROOT / "docs" / "coding-agents.md"


def shown() -> Iterator[tuple[list[str], str]]:
    """The commands that the page shows in its stories, with what they print."""
    for block in parse(PAGE.read_text("utf-8")):
        if block.info == "text":
            command, _, printed = block.text.partition("\n")
            assert command.startswith("$ holdfast ")
            yield shlex.split(command)[2:], printed


def alike(text: str) -> str:
    """Text in which what differs from run to run is the same."""
    text = re.sub(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<session>", text)
    text = re.sub(r"\b[0-9a-f]{12}\b", "<id>", text)
    return re.sub(r" *\d+[smh] ago", " <age>", text).rstrip()


def test_the_story_of_the_page_is_true(tmp_path: Path) -> None:
    script: dict[str, list[Reply]] = {}
    claude = real_program("claude-code")(tmp_path, script)
    page, notes = claude.project / "page.html", claude.project / "drafts" / "notes.txt"
    notes.parent.mkdir()
    notes.write_text("by hand\n")
    page.write_text("<body bgcolor=red>\n")
    script["Make the page blue"] = [
        Reply("", [Tool("Read", {"file_path": str(page)})]),
        Reply("", [Edit("page.html", "red", "blue")]),
        Reply("", [Shell("rm -r drafts")]),
        Reply("The page is blue, and I have tidied up."),
    ]
    claude.holdfast("hook", "install", "claude-code")
    assert claude.ask("Make the page blue").code == 0
    assert not notes.exists()

    printed = ""
    for words, expected in shown():
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", *words],
            cwd=claude.project,
            env={**claude.environment, "COLUMNS": "100"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        printed = done.stdout + done.stderr
        is_alike = doctest.OutputChecker().check_output(
            alike(expected), alike(printed), doctest.ELLIPSIS
        )
        assert is_alike, printed

    assert notes.read_text() == "by hand\n"
    assert page.read_text() == "<body bgcolor=blue>\n"
    resume = shlex.split(printed.splitlines()[-1].removeprefix("go on with: "))
    goes_on = claude.ask("And now?", resume)
    assert goes_on.code == 0
    assert "rm -r drafts" not in str(goes_on.requests[0].said)
    claude.close()
