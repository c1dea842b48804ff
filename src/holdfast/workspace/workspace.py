"""A directory whose every state can be kept, compared, put back and forked."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Literal, Self

from holdfast.errors import InvalidArgumentError, StoreClosedError, WorkspaceError
from holdfast.model import Checkpoint, checked_name
from holdfast.runtime import HasRuntime, Runtime
from holdfast.stores.base import Store
from holdfast.stores.capabilities import Volatile, files_of
from holdfast.stores.urls import open_store
from holdfast.system.unfinished import left_behind
from holdfast.workspace import deprecated, registry
from holdfast.workspace.capture import Capturer, Progress
from holdfast.workspace.clone import Cloner
from holdfast.workspace.diff import TreeDiff, compare
from holdfast.workspace.entries import DIRECTORY, SYMLINK
from holdfast.workspace.fork import fork
from holdfast.workspace.local_state import local_state_of
from holdfast.workspace.paths import AnyPath, as_path, chosen_paths, relative
from holdfast.workspace.pins import Pins
from holdfast.workspace.private_paths import private_paths
from holdfast.workspace.recover import Recoverer
from holdfast.workspace.restore import Restorer
from holdfast.workspace.results import Restored, Snapshot, TreeEntry
from holdfast.workspace.scan import CaptureOptions
from holdfast.workspace.tree_reader import TreeReader

StoreLike = HasRuntime | Runtime | Store | str
"""A client, a runtime, a store or a URL."""
TreeLike = Snapshot | Checkpoint | str
"""What tells which tree is meant: a string is the id of one, or of a checkpoint."""

CHECKPOINT_SECONDS = 24 * 3600.0
"""How long a snapshot is kept for the checkpoint it was taken for, until that is saved."""


class Workspace:
    """The agent's directory: snapshot it, look into snapshots, put it back, fork it.

    >>> from pathlib import Path
    >>> from holdfast.workspace import Workspace
    >>> Path("repo").mkdir()
    >>> Path("repo/main.py").write_text("print('hello')")
    14
    >>> with Workspace("repo", "sqlite:///agent.db") as workspace:
    ...     before = workspace.snapshot("it works")
    ...     Path("repo/main.py").unlink()
    ...     done = workspace.restore(before)
    >>> Path("repo/main.py").read_text()
    "print('hello')"
    """

    def __init__(
        self,
        path: AnyPath,
        store: StoreLike | None = None,
        *,
        name: str | None = None,
        include_ignored: bool = False,
        nested_git: Literal["files", "skip"] = "files",
        watch: bool = False,
    ) -> None:
        if nested_git not in ("files", "skip"):
            raise InvalidArgumentError(f'nested_git is "files" or "skip", not {nested_git!r}')
        self._root = _checked_root(path)
        self._options = {"include_ignored": include_ignored, "nested_git": nested_git}
        self._store, self._owns_store = _store_of(store)
        self._closed = False
        self._sessions: set[bytes] = set()
        """Those that are noted to work here."""
        self.recovered: Restored | None = None
        """What was done to complete a restore that an earlier process did not end, if one."""
        try:
            self.name = checked_name("name", name or registry.default_name(self._root))
            self._pins = Pins(self._store, self.name)
            self._reader = TreeReader(self._store)
            private = private_paths(self._store, self._root)
            options = CaptureOptions(
                include_ignored=include_ignored,
                skip_repositories=nested_git == "skip",
                private=private,
            )
            self._local = local_state_of(self._store, self._root)
            self._capturer = Capturer(
                self._root, self._store, self._local, self._pins, options, watch
            )
            self._restorer = Restorer(
                self._root, self._store, self._local, self._pins, self._capturer, options
            )
            left_behind(files_of(self._store))
            with self._local.mutex, self._local.alone():
                self._remember()
                self.recovered = Recoverer(
                    self._root, self._store, self._local, self._restorer
                ).recover()
        except BaseException:
            if self._owns_store:
                self._store.close()
            raise

    def _remember(self) -> None:
        """Note where this workspace is."""
        before = registry.read(self._local.directory)
        now = (before or registry.KnownWorkspace(self._root)).called(self.name)
        self._is_older = before is None and os.path.exists(self._local.index)
        if now != before:
            registry.write(self._local.directory, now)

    def works_for(self, agent_id: str, session_id: str) -> bool:
        """Note that a session works here, so that its files are found from anywhere.

        Returns whether that was known on this machine before.
        """
        own = registry.digest(agent_id, session_id)
        if own in self._sessions:
            return True
        self._sessions.add(own)
        with self._local.mutex, self._alone():
            before = registry.read(self._local.directory) or registry.KnownWorkspace(self._root)
            now = before.called(self.name).with_session(agent_id, session_id)
            if now != before:
                registry.write(self._local.directory, now)
        return own in before.sessions

    def sessions_known(self) -> int:
        """Return how many sessions are known to have worked here."""
        known = registry.read(self._local.directory)
        return 0 if known is None else len(known.sessions)

    @property
    def was_known(self) -> bool:
        """Whether it may have been worked in before this machine noted by whom.

        What a store on this disk has is of this machine, unless it was brought there.
        """
        return (
            bool(files_of(self._store))
            or self._store.capability(Volatile) is not None
            or self._is_older
        )

    @property
    def path(self) -> str:
        """The directory."""
        return os.fsdecode(self._root)

    def __repr__(self) -> str:
        return f"Workspace({self.path!r}, {self._store.name})"

    def snapshot(self, message: str | None = None, progress: Progress | None = None) -> Snapshot:
        """Keep all files as they are now; costs what changed since the last time."""
        if message is not None and not isinstance(message, str):
            raise InvalidArgumentError(f"message is a string, not {type(message).__name__}")
        with self._errors(self._root), self._local.mutex, self._alone():
            return self._capturer.take(message, progress=progress)

    def snapshot_for_checkpoint(
        self,
        progress: Progress | None = None,
        store: Store | None = None,
        before: Snapshot | None = None,
    ) -> Snapshot:
        """Take a snapshot that a checkpoint (in that store) is about to hold as its ``workspace``.

        It is kept for a day without one; ``saved_with`` says which checkpoint holds it. One that is
        taken ``before`` a restore has what that replaces too, ignored or not.
        """
        with self._errors(self._root), self._local.mutex, self._alone():
            ignored = frozenset[bytes]()
            if before is not None:
                ignored = self._restorer.ignored_in_the_way(before)
            snapshot = self._capturer.take(
                seconds=CHECKPOINT_SECONDS, progress=progress, wanted=ignored, kind="checkpoint"
            )
        if store is not None and store is not self._store and not store.fetch([snapshot.root.name]):
            raise InvalidArgumentError(
                f"the files are kept in {self._store.name} and the checkpoint in {store.name}: "
                "open the workspace on the client it is saved with, as Workspace(path, client)"
            )
        return snapshot

    def saved_with(self, snapshot: Snapshot, checkpoint_id: str) -> None:
        """Say that a checkpoint holds a snapshot now."""
        with self._errors(self._root), self._local.mutex, self._alone():
            self._capturer.kept_by(snapshot, checkpoint_id)

    def restore(
        self,
        tree: TreeLike,
        paths: Iterable[AnyPath] | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Restored:
        """Put the files back to a tree, or only these paths; ``undo_tree`` leads back again.

        What is there is captured first. Files that are ignored, now or by the tree's own rules, are
        left alone unless the tree holds them. ``dry_run`` changes nothing and tells what would be
        done.
        """
        chosen = None if paths is None else chosen_paths(self._root, paths)
        with self._errors(self._root), self._local.mutex, self._alone():
            target = self._pins.resolve(tree)
            for path in chosen or ():
                self._check_known(target, path)
            return self._restorer.restore(target, chosen, dry_run, progress)

    def _check_known(self, target: Snapshot, path: bytes) -> None:
        if self._reader.find(target.root.name, path) is None and not os.path.lexists(
            os.path.join(self._root, path)
        ):
            raise InvalidArgumentError(
                f"{os.fsdecode(path)!r} is neither in the tree nor in the workspace"
            )

    def fork(
        self, tree: TreeLike, new_path: AnyPath, progress: Progress | None = None
    ) -> Workspace:
        """Make a new directory of a tree, a workspace of its own in the same store."""
        self._check_open()
        new_root = os.path.abspath(as_path(new_path))
        new_root = os.path.join(
            os.path.realpath(os.path.dirname(new_root)), os.path.basename(new_root)
        )
        if (new_root + b"/").startswith(self._root.rstrip(b"/") + b"/"):
            raise InvalidArgumentError(
                "a fork lies outside of the workspace: choose another directory"
            )
        with self._errors(self._root), self._local.mutex, self._alone():
            cloner = Cloner(self._root, self._capturer.sources())
        with self._errors(new_root):
            source = self._pins.resolve(tree)
            fork(self._reader, source, new_root, progress, cloner, files_of(self._store))
        return Workspace(new_root, self._store, **self._options)  # type: ignore[arg-type]

    def diff(self, a: TreeLike, b: TreeLike | None = None, text: bool = False) -> TreeDiff:
        """Return what changed from one tree to another, or to the files as they are now."""
        with self._errors(self._root), self._local.mutex, self._alone():
            old = self._pins.resolve(a)
            new = self._capturer.look() if b is None else self._pins.resolve(b)
            return compare(self._reader, old.root.name, new.root.name, text)

    def status(self, text: bool = False) -> TreeDiff:
        """Return what changed since the last snapshot that was taken or restored here."""
        with self._errors(self._root), self._local.mutex, self._alone():
            new = self._capturer.look()
            return compare(self._reader, self._pins.last(), new.root.name, text)

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots of this workspace that are kept on their own, newest first."""
        self._check_open()
        return self._pins.snapshots(looks=False)[::-1]

    def ls(self, tree: TreeLike) -> list[TreeEntry]:
        """Return everything in a tree, by path."""
        self._check_open()
        root = self._pins.resolve(tree).root.name
        return [TreeEntry(path, entry) for path, entry in self._reader.walk(root)]

    def read(self, tree: TreeLike, path: AnyPath) -> bytes:
        """Return the bytes of a file in a tree; of a symlink its target."""
        self._check_open()
        where = relative(self._root, as_path(path))
        entry = self._reader.find(self._pins.resolve(tree).root.name, where)
        if entry is None or entry.kind == DIRECTORY:
            raise FileNotFoundError(
                f"{os.fsdecode(where)!r} is not a file in that tree; ls(tree) lists all"
            )
        if entry.kind == SYMLINK:
            return bytes(entry.location)
        return b"".join(self._reader.read(entry))

    def _alone(self) -> AbstractContextManager[Any]:
        """Return the lock that each method itself enters, after the mutex (see ``file_lock``)."""
        self._check_open()
        return self._local.alone()

    @contextmanager
    def _errors(self, path: bytes) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.filename is None:  # not of a file: perhaps what ``progress`` said
                raise
            where = error.filename if isinstance(error.filename, (str, bytes)) else path
            why = f"{error.strerror or error}: {os.fsdecode(where)!r}"
            raise WorkspaceError(f"{why} (the workspace is {self.path!r})") from error

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosedError(f"the workspace {self.path}")

    def close(self) -> None:
        """Let go of everything; a store that was opened for it is closed."""
        if self._closed:
            return
        self._closed = True
        try:
            self._capturer.close()
            self._local.close()
        finally:
            if self._owns_store:
                self._store.close()

    def discard(self) -> None:
        """Close it, and remove what is kept beside the store of a directory that goes too."""
        self.close()
        self._local.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    asnapshot = deprecated.awaited(snapshot)
    arestore = deprecated.awaited(restore)
    afork = deprecated.awaited(fork)
    adiff = deprecated.awaited(diff)
    astatus = deprecated.awaited(status)
    als = deprecated.awaited(ls)
    asnapshots = deprecated.awaited(snapshots)
    aread = deprecated.awaited(read)

    async def __aenter__(self) -> Self:
        deprecated.warn(
            "async with Workspace(...)", "use AsyncWorkspace, which has the same methods"
        )
        return self

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.to_thread(self.close)


def checkout(
    tree: TreeLike,
    path: AnyPath,
    store: StoreLike | None = None,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> Workspace:
    """Open a workspace at a path with the files of a tree: in a new directory, or put back.

    >>> from pathlib import Path
    >>> from holdfast import SyncClient
    >>> from holdfast.workspace import Workspace, checkout
    >>> Path("site").mkdir()
    >>> with SyncClient.memory() as client:
    ...     with Workspace("site", client) as workspace:
    ...         before = workspace.snapshot()
    ...     checkout(before, "elsewhere", client).close()
    >>> Path("elsewhere").is_dir()
    True
    """
    new_root = os.path.realpath(as_path(path))
    opened, owned = _store_of(store)
    try:
        if not os.path.lexists(new_root) or (os.path.isdir(new_root) and not os.listdir(new_root)):
            target = Pins(opened, "checkout").resolve(tree)
            fork(TreeReader(opened), target, new_root, progress)
            workspace = Workspace(new_root, opened, **options)
        else:
            workspace = Workspace(new_root, opened, **options)
            workspace.restore(tree, progress=progress)
    except BaseException:
        if owned:
            opened.close()
        raise
    workspace._owns_store = owned
    return workspace


def _checked_root(path: object) -> bytes:
    root: bytes = os.path.realpath(as_path(path))
    if not os.path.isdir(root):
        raise WorkspaceError(f"{os.fsdecode(root)!r} is no directory: make it first")
    return root


def _store_of(given: StoreLike | None) -> tuple[Store, bool]:
    """Return the store that is meant, and whether it was opened for this and is to be closed."""
    if isinstance(given, Store):
        return given, False
    if isinstance(given, HasRuntime):
        return given.runtime.store, False
    if isinstance(given, Runtime):
        return given.store, False
    if given is None or isinstance(given, str):
        return open_store(given), True
    raise InvalidArgumentError(f"store is a client, a store or a URL, not {type(given).__name__}")
