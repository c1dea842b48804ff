"""Runs opencode itself, for what only it can do: take a conversation in."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from holdfast.errors import TranscriptError
from holdfast.system.terminal_text import clean

VARIABLE = "HOLDFAST_OPENCODE"
_SECONDS = 120
_SHOWN = 400
_OR_FILES = "; --files puts the files back alone"
_ALONE = {
    "OPENCODE_PURE": "1",  # without plugins, ours among them
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
}


def take_in(file: Path, session_id: str, folder: Path) -> None:
    """Have opencode take in the session that a file holds, as one of a project."""
    command = [_program(), "import", str(file)]
    try:
        done = subprocess.run(  # noqa: S603  (the user's own opencode)
            command,
            cwd=folder,
            # It takes its project from PWD.
            env={**os.environ, **_ALONE, "PWD": str(folder)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise TranscriptError(
            f"'opencode import' was still at it after {_SECONDS} s, and was ended: the "
            f"conversation was not written{_OR_FILES}"
        ) from error
    except OSError as error:
        raise TranscriptError(f"opencode cannot be run: {error}{_OR_FILES}") from error
    if done.returncode != 0 or session_id.encode() not in done.stdout:
        said = (done.stderr + b"\n" + done.stdout).decode(errors="replace").strip()
        raise TranscriptError(
            f"'opencode import' did not take the conversation in (exit code {done.returncode}): "
            f"{clean(said[-_SHOWN:])}{_OR_FILES}"
        )


def _program() -> str:
    named = os.environ.get(VARIABLE)
    found = shutil.which(named or "opencode")
    if found is None:
        where = f"{VARIABLE} names {named!r}, which" if named else "opencode"
        raise TranscriptError(
            f"{where} is not there to be run, and only opencode itself can take a conversation in. "
            f"Put it on the PATH, or name it in {VARIABLE}{_OR_FILES}"
        )
    return found
