"""Records events in a project: the helper for many hooks, a hook without one for itself."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from holdfast.client import SyncClient
from holdfast.coding_agents import events, programs
from holdfast.coding_agents.hook_log import HookLog
from holdfast.coding_agents.hook_options import HookOptions
from holdfast.coding_agents.hook_project import data_of, root_of
from holdfast.coding_agents.recorder import Recorded, Recorder, session_of
from holdfast.coding_agents.store_place import StorePlace, file_at
from holdfast.coding_agents.told import Moment, Told
from holdfast.errors import CodingAgentError, MissingPackageError
from holdfast.stores import discovery
from holdfast.stores.discovery import StoreLocation
from holdfast.system import patience
from holdfast.workspace import Workspace

LOCK_SECONDS = 2.0
"""A hook stands in the agent's way, so it waits for no lock longer than this."""
_LONGEST = 100


def told_in(options: HookOptions, event: bytes) -> Told:
    """Return what an event says."""
    if options.program not in programs.NAMES:
        raise CodingAgentError(
            f"--from {options.program[:_LONGEST]!r} is none of {', '.join(programs.NAMES)}"
        )
    return events.read(data_of(event), programs.program(options.program), options.maps)


def location_from(folder: str, store: str | None) -> StoreLocation:
    """Return where the store of a project is; this process goes there, as URLs may be relative."""
    os.chdir(folder)
    if store:
        return StoreLocation(discovery.as_url(store), "--store")
    return discovery.find() or discovery.in_folder(Path(folder))


def is_there(location: StoreLocation) -> bool:
    """Return whether there is a store by now; a program that only starts makes none."""
    return location.path is None or location.path.exists()


class Project:
    """A project whose events are recorded: its store and its files."""

    def __init__(self, folder: str, location: StoreLocation, watch: bool) -> None:
        patience.limit(LOCK_SECONDS)
        self.location = location
        self.root = _root(location, folder)
        self.log = HookLog.of(folder)
        location.make_folder()
        with ExitStack() as opened:
            client = opened.enter_context(SyncClient.open(location.url))
            self._workspace = opened.enter_context(self._open(client, watch))
            self._recorder = Recorder(client, self._workspace)
            self._opened = opened.pop_all()
        self.log = HookLog.of(folder)  # by now its directory is there
        self._place = StorePlace(None if location.path is None else str(location.path))
        self._root_was = file_at(self.root)
        self._said: str | None = None

    def _open(self, client: SyncClient, watch: bool) -> Workspace:
        try:
            return Workspace(self.root, store=client, watch=watch)
        except MissingPackageError as error:
            self.log.problem("helper", f"{error}; until then all files are looked at")
            return Workspace(self.root, store=client)

    def is_at(self, folder: str, location: StoreLocation) -> bool:
        """Return whether an event of a directory, with that store, belongs here."""
        return (self.root, self.location.url) == (_root(location, folder), location.url)

    @property
    def is_as_it_was(self) -> bool:
        """Whether the directory and the store are those that were opened."""
        return self._is_root_as_it_was and self._place.is_as_it_was

    @property
    def _is_root_as_it_was(self) -> bool:
        return file_at(self.root) == self._root_was

    @property
    def loss(self) -> str | None:
        """What is to be said if the store alone was taken away; None if it was not."""
        is_lost = self._is_root_as_it_was and not self._place.is_as_it_was
        return self._place.loss if is_lost else None

    def record(self, told: Told, agent: str | None, event_id: str) -> Recorded:
        """Keep an event."""
        recorded = self._recorder.record(told, agent, event_id)
        watcher = self._workspace._capturer.watcher
        if watcher is not None and watcher.problem not in (None, self._said):
            self._said = watcher.problem
            self.log.problem("helper", f"{self.root} is not watched: {watcher.problem}")
        return recorded

    def warm_up(self) -> None:
        """Look at all files, so that the next event need only look at what changed."""
        self._recorder.warm_up()

    def close(self) -> None:
        """Let go of it."""
        self._opened.close()


def record_here(options: HookOptions, folder: str, event: bytes, event_id: str) -> str:
    """Record an event in this process; returns what was recorded, as JSON."""
    told = told_in(options, event)
    location = location_from(folder, options.store)
    if told.moment is Moment.START:
        HookLog.of(folder).arrived(told.program, told.event)
        return as_json(nothing_of(told))
    project = Project(folder, location, watch=False)
    try:
        project.log.arrived(told.program, told.event)
        return as_json(project.record(told, options.agent, event_id))
    finally:
        project.close()


def nothing_of(told: Told) -> Recorded:
    """Return what becomes of an event of which nothing is kept."""
    return Recorded(session_id=session_of(told), name=told.event)


def as_json(recorded: Recorded) -> str:
    """Return what became of an event, for who asked for JSON."""
    said: Mapping[str, Any] = {
        "action": "record",
        "checkpoint_id": recorded.checkpoint_id,
        "session_id": recorded.session_id,
        "step_name": recorded.name,
        "files": recorded.files,
        "tree_id": recorded.tree_id,
    }
    return json.dumps(said)


def _root(location: StoreLocation, folder: str) -> str:
    above = location.folder
    return root_of(None if above is None else os.path.realpath(above), folder)
