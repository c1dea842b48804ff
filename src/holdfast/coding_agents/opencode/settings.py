"""The hook in opencode: a plugin, which is one file of ours.

Its first line has the digest of the rest, whatever the command, so that a file of another version
is known as ours, and one that was edited is not.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from holdfast.coding_agents.settings import Scope
from holdfast.errors import CodingAgentError
from holdfast.system.atomic_files import write_file

NAME = "holdfast.js"
_COMMAND = re.compile(r"^const COMMAND = (\[.*\])$", re.MULTILINE)
_FIRST = re.compile(r"// Holdfast's plugin for opencode, ([0-9a-f]{64})\n")


class OpencodeSettings:
    """How the hook gets into opencode."""

    scopes: tuple[Scope, ...] = ("project", "user")

    def file(self, scope: Scope, folder: Path) -> Path:
        """Return where the plugin goes."""
        return (folder / ".opencode" if scope == "project" else _config()) / "plugins" / NAME

    def install(self, file: Path, command: Sequence[str]) -> bool:
        """Put the plugin in; return whether that changed anything."""
        before = _read(file)
        if before is not None:
            _refuse_what_is_not_ours(file, before)
        after = plugin(command)
        if before == after:
            return False
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(os.path.realpath(file), after.encode(), is_users=True)
        return True

    def uninstall(self, file: Path) -> bool:
        """Take the plugin out; return whether that changed anything."""
        text = _read(file)
        if text is None:
            return False
        _refuse_what_is_not_ours(file, text)
        file.unlink()
        if not any(file.parent.iterdir()):
            file.parent.rmdir()
        return True

    def installed(self, file: Path) -> list[str] | None:
        """Return the command that the plugin runs; None if it is not there, or not ours."""
        text = _read(file)
        return None if text is None or not _is_ours(text) else _command(text)

    def advice(self, file: Path, folder: Path) -> list[str]:
        """Return what the user still has to do: begin anew, and what helps without a network."""
        said = ["opencode loads plugins when it starts: end those that run, and start them again"]
        fetched = Path("node_modules", "@opencode-ai", "plugin")
        if not all((each / fetched).is_dir() for each in (_config(), file.parent.parent)):
            said.append(
                "the first time, opencode fetches a package for plugins, which this one does not "
                "need; without a network it tries that for a minute or two at every start"
            )
        return said


def plugin(command: Sequence[str]) -> str:
    """Return the plugin that tells a command what opencode does."""
    text = files(__package__).joinpath("plugin.js").read_text("utf-8")
    line = f"const COMMAND = {json.dumps(list(command))}"
    text = _COMMAND.sub(lambda _: line, text, count=1)
    return f"// Holdfast's plugin for opencode, {_digest(text)}\n{text}"


def _config() -> Path:
    """Return the directory of the user's settings of opencode."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "opencode"


def _digest(text: str) -> str:
    return hashlib.sha256(_COMMAND.sub("", text, count=1).encode()).hexdigest()


def _is_ours(text: str) -> bool:
    first = _FIRST.match(text)
    return first is not None and first[1] == _digest(text[first.end() :]) and bool(_command(text))


def _command(text: str) -> list[str] | None:
    found = _COMMAND.search(text)
    try:
        words = json.loads(found[1]) if found else None
    except ValueError:
        return None
    is_command = isinstance(words, list) and all(isinstance(each, str) for each in words)
    return words if is_command else None


def _refuse_what_is_not_ours(file: Path, text: str) -> None:
    if not _is_ours(text):
        raise CodingAgentError(
            f"{file} is not the plugin as Holdfast writes it (it was edited, or is another's): "
            "nothing was changed. Move it away first"
        )


def _read(file: Path) -> str | None:
    if not file.exists():
        return None
    if not file.is_file():  # a fifo would be waited for
        raise CodingAgentError(f"{file} is no file: nothing was changed. Move it away first")
    try:
        return file.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise CodingAgentError(f"{file} cannot be read: {error}") from error


SETTINGS = OpencodeSettings()
