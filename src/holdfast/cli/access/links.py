"""Directories that get the files of a checkpoint, and belong to its store from then on."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from holdfast.cli.access.opening import location_of
from holdfast.cli.output.terminal import Terminal
from holdfast.stores import linked
from holdfast.stores.shared.secrets import secrets_in
from holdfast.stores.urls import shareable


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
