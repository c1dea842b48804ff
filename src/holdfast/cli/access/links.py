"""Directories that get the files of a checkpoint, and belong to its store from then on."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.access.opening import location_of
from holdfast.cli.output.terminal import Terminal
from holdfast.stores import linked
from holdfast.stores.shared.secrets import secrets_in
from holdfast.stores.urls import shareable
from holdfast.system.terminal_text import clean

if TYPE_CHECKING:
    from holdfast.model import CheckpointInfo


def link(
    options: Namespace, directory: Path, agent_id: str | None = None, begins_at: str | None = None
) -> bool:
    """Link a directory to the store that is meant; False if its URL is not to be written down."""
    url = shareable(location_of(options).url)
    if url is None or secrets_in(url):
        return False
    linked.keep(linked.Link(str(directory), url, agent_id, begins_at))
    return True


def say_linked(is_linked: bool, terminal: Terminal) -> None:
    """Say what is to be done where a directory could not be linked."""
    if not is_linked:
        terminal.line(
            "what is done there is not in this store: its URL holds a password, which is not "
            "written down; set HOLDFAST_URL there"
        )


def say_hook(info: CheckpointInfo, directory: Path, terminal: Terminal) -> None:
    """Say what is to be done so that a coding agent is recorded in a new directory too."""
    from holdfast.coding_agents import programs
    from holdfast.coding_agents.recorded import program_of
    from holdfast.errors import CodingAgentError

    program = program_of(info)
    settings = None if program is None else programs.settings(program.name)
    if program is None or settings is None:
        return
    try:
        files = [settings.file(scope, directory) for scope in settings.scopes]
        found = next((file for file in files if settings.installed(file)), None)
        advice = [] if found is None else settings.advice(found, directory)
    except CodingAgentError as error:
        advice, found = [str(error)], directory
    if found is None:  # where settings are ignored by git, they are not kept either
        advice = [
            f"its steps are recorded there once you run: holdfast hook install {program.name}"
        ]
    for line in advice:
        terminal.line(clean(line))
