"""A directory whose every state can be kept, compared, put back and forked."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Literal, Self, TypeVar

from holdfast.errors import InvalidArgumentError, StoreClosedError, WorkspaceError
from holdfast.model import Checkpoint, checked_name
from holdfast.runtime import HasRuntime, Runtime
from holdfast.stores.base import Store
from holdfast.stores.capabilities import Volatile, files_of
from holdfast.stores.urls import open_store
from holdfast.system.unfinished import left_behind
from holdfast.workspace import registry
from holdfast.workspace.capture import Capturer, Progress
from holdfast.workspace.clone import Cloner
from holdfast.workspace.diff import TreeDiff, compare
from holdfast.workspace.entries import DIRECTORY, FILE, SYMLINK, Entry
from holdfast.workspace.forking import fork
from holdfast.workspace.local_state import home_of, private_paths
from holdfast.workspace.pins import Keeper
from holdfast.workspace.restore_plan import as_path, chosen_paths, relative
from holdfast.workspace.restoring import Restorer
from holdfast.workspace.results import Restored, Snapshot
from holdfast.workspace.scan import Options
from holdfast.workspace.tree_reader import Shelf

T = TypeVar("T")
TreeLike = Snapshot | Checkpoint | str
Path = str | bytes | os.PathLike[str]

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
        path: Path,
        store: HasRuntime | Runtime | Store | str | None = None,
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
        self._owns_store = not isinstance(store, (HasRuntime, Runtime, Store))
        self._store = _store_of(store)
        self._closed = False
        self._sessions: set[bytes] = set()
        """Those that are noted to work here."""
        self.recovered: Restored | None = None
        """What was done to complete a restore that an earlier process did not end, if one."""
        try:
            self.name = checked_name("name", name or _name_of(self._root))
            self._keeper = Keeper(self._store, self.name)
            self._shelf = Shelf(self._store)
            private = private_paths(self._store, self._root)
            options = Options(
                include_ignored=include_ignored,
                skip_repositories=nested_git == "skip",
                private=private,
            )
            self._home = home_of(self._store, self._root)
            self._capturer = Capturer(
                self._root, self._store, self._home, self._keeper, options, watch
            )
            self._restorer = Restorer(
                self._root, self._store, self._home, self._keeper, self._capturer, private
            )
            left_behind(files_of(self._store))
            with self._home.mutex, self._home.alone():
                self._remember()
                self.recovered = self._restorer.recover()
        except BaseException:
            if self._owns_store:
                self._store.close()
            raise

    def _remember(self) -> None:
        """Note where this workspace is."""
        before = registry.read(self._home.directory)
        now = (before or registry.Place(self._root)).called(self.name)
        self._is_older = before is None and os.path.exists(self._home.index)
        if now != before:
            registry.write(self._home.directory, now)

    def works_for(self, agent_id: str, session_id: str) -> bool:
        """Note that a session works here, so that its files are found from anywhere.

        Returns whether that was known on this machine before.
        """
        own = registry.digest(agent_id, session_id)
        if own in self._sessions:
            return True
        self._sessions.add(own)
        with self._home.mutex, self._alone():
            before = registry.read(self._home.directory) or registry.Place(self._root)
            now = before.called(self.name).with_session(agent_id, session_id)
            if now != before:
                registry.write(self._home.directory, now)
        return own in before.sessions

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
        with self._errors(self._root), self._home.mutex, self._alone():
            return self._capturer.take(message, progress=progress)

    def snapshot_for_checkpoint(
        self, progress: Progress | None = None, store: Store | None = None
    ) -> Snapshot:
        """A snapshot that a checkpoint (in that store) is about to hold, in its part ``workspace``.

        It is kept for a day without one; ``saved_with`` says which checkpoint holds it.
        """
        with self._errors(self._root), self._home.mutex, self._alone():
            snapshot = self._capturer.take(
                seconds=CHECKPOINT_SECONDS, progress=progress, kind="checkpoint"
            )
        if store is not None and store is not self._store and not store.fetch([snapshot.root.name]):
            raise InvalidArgumentError(
                f"the files are kept in {self._store.name} and the checkpoint in {store.name}: "
                "open the workspace on the client it is saved with, as Workspace(path, client)"
            )
        return snapshot

    def saved_with(self, snapshot: Snapshot, checkpoint_id: str) -> None:
        """Say that a checkpoint holds a snapshot now."""
        with self._errors(self._root), self._home.mutex, self._alone():
            self._capturer.kept_by(snapshot, checkpoint_id)

    def restore(
        self,
        tree: TreeLike,
        paths: Iterable[Path] | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Restored:
        """Put the files back to a tree, or only these paths; ``undo_tree`` leads back again.

        What is there is captured first. Ignored files are left alone. ``dry_run`` changes nothing
        and tells what would be done.
        """
        chosen = None if paths is None else chosen_paths(self._root, paths)
        with self._errors(self._root), self._home.mutex, self._alone():
            target = self._keeper.resolve(tree)
            for path in chosen or ():
                self._check_known(target, path)
            return self._restorer.restore(target, chosen, dry_run, progress)

    def _check_known(self, target: Snapshot, path: bytes) -> None:
        if self._shelf.find(target.root.name, path) is None and not os.path.lexists(
            os.path.join(self._root, path)
        ):
            raise InvalidArgumentError(
                f"{os.fsdecode(path)!r} is neither in the tree nor in the workspace"
            )

    def fork(self, tree: TreeLike, new_path: Path, progress: Progress | None = None) -> Workspace:
        """Make a new directory of a tree, a workspace of its own in the same store."""
        self._check_open()
        place = os.path.abspath(as_path(new_path))
        place = os.path.join(os.path.realpath(os.path.dirname(place)), os.path.basename(place))
        if (place + b"/").startswith(self._root.rstrip(b"/") + b"/"):
            raise InvalidArgumentError(
                "a fork lies outside of the workspace: choose another directory"
            )
        with self._errors(self._root), self._home.mutex, self._alone():
            cloner = Cloner(self._root, self._capturer.sources())
        with self._errors(place):
            source = self._keeper.resolve(tree)
            fork(self._shelf, source, place, progress, cloner, files_of(self._store))
        return Workspace(place, self._store, **self._options)  # type: ignore[arg-type]

    def diff(self, a: TreeLike, b: TreeLike | None = None, text: bool = False) -> TreeDiff:
        """What changed from one tree to another, or to the files as they are now."""
        with self._errors(self._root), self._home.mutex, self._alone():
            old = self._keeper.resolve(a)
            new = self._capturer.look() if b is None else self._keeper.resolve(b)
            return compare(self._shelf, old.root.name, new.root.name, text)

    def status(self, text: bool = False) -> TreeDiff:
        """What changed since the last snapshot that was taken or restored here."""
        with self._errors(self._root), self._home.mutex, self._alone():
            new = self._capturer.look()
            return compare(self._shelf, self._keeper.last(), new.root.name, text)

    def snapshots(self) -> list[Snapshot]:
        """The snapshots of this workspace that are kept on their own, newest first."""
        self._check_open()
        return self._keeper.snapshots(looks=False)[::-1]

    def ls(self, tree: TreeLike) -> list[TreeEntry]:
        """Everything in a tree, by path."""
        self._check_open()
        root = self._keeper.resolve(tree).root.name
        return [TreeEntry(path, entry) for path, entry in self._shelf.walk(root)]

    def read(self, tree: TreeLike, path: Path) -> bytes:
        """The bytes of a file in a tree; of a symlink its target."""
        self._check_open()
        where = relative(self._root, as_path(path))
        entry = self._shelf.find(self._keeper.resolve(tree).root.name, where)
        if entry is None or entry.kind == DIRECTORY:
            raise FileNotFoundError(
                f"{os.fsdecode(where)!r} is not a file in that tree; ls(tree) lists all"
            )
        if entry.kind == SYMLINK:
            return bytes(entry.place)
        return b"".join(self._shelf.read(entry))

    async def asnapshot(
        self, message: str | None = None, progress: Progress | None = None
    ) -> Snapshot:
        """The same as ``snapshot``, without blocking the event loop."""
        return await _in_thread(lambda: self.snapshot(message, progress))

    async def arestore(
        self,
        tree: TreeLike,
        paths: Iterable[Path] | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Restored:
        """The same as ``restore``, without blocking the event loop."""
        return await _in_thread(lambda: self.restore(tree, paths, dry_run, progress))

    async def afork(
        self, tree: TreeLike, new_path: Path, progress: Progress | None = None
    ) -> Workspace:
        """The same as ``fork``, without blocking the event loop."""
        return await _in_thread(lambda: self.fork(tree, new_path, progress))

    async def adiff(self, a: TreeLike, b: TreeLike | None = None, text: bool = False) -> TreeDiff:
        """The same as ``diff``, without blocking the event loop."""
        return await _in_thread(lambda: self.diff(a, b, text))

    async def astatus(self, text: bool = False) -> TreeDiff:
        """The same as ``status``, without blocking the event loop."""
        return await _in_thread(lambda: self.status(text))

    async def als(self, tree: TreeLike) -> list[TreeEntry]:
        """The same as ``ls``, without blocking the event loop."""
        return await _in_thread(lambda: self.ls(tree))

    async def asnapshots(self) -> list[Snapshot]:
        """The same as ``snapshots``, without blocking the event loop."""
        return await _in_thread(self.snapshots)

    async def aread(self, tree: TreeLike, path: Path) -> bytes:
        """The same as ``read``, without blocking the event loop."""
        return await _in_thread(lambda: self.read(tree, path))

    def _alone(self) -> AbstractContextManager[Any]:
        """What each method enters itself, after the mutex: ``file_lock`` tells why."""
        self._check_open()
        return self._home.alone()

    @contextmanager
    def _errors(self, place: bytes) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.filename is None:  # not of a file: perhaps what ``progress`` said
                raise
            where = error.filename if isinstance(error.filename, (str, bytes)) else place
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
            self._home.close()
        finally:
            if self._owns_store:
                self._store.close()

    def discard(self) -> None:
        """Close it, and remove what is kept beside the store of a directory that goes too."""
        self.close()
        self._home.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await _in_thread(self.close)


def as_workspace(given: object) -> Workspace:
    """A workspace that a user gave; anything else is refused."""
    if not isinstance(given, Workspace):
        raise InvalidArgumentError(
            f"workspace is a Workspace, not {type(given).__name__}: "
            "open it as Workspace(path, client)"
        )
    return given


def compared(store: Store, old: dict[str, Any], new: dict[str, Any]) -> TreeDiff:
    """What changed from the files that one checkpoint holds to those of another."""
    before, after = (Snapshot.from_value(part).root.name for part in (old, new))
    return compare(Shelf(store), before, after)


def checkout(
    tree: TreeLike,
    path: Path,
    store: HasRuntime | Runtime | Store | str | None = None,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> Workspace:
    """A workspace at a path with the files of a tree: a new directory, or one that is put back.

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
    place = os.path.realpath(as_path(path))
    owned = not isinstance(store, (HasRuntime, Runtime, Store))
    opened = _store_of(store)
    try:
        if not os.path.lexists(place) or (os.path.isdir(place) and not os.listdir(place)):
            target = Keeper(opened, "checkout").resolve(tree)
            fork(Shelf(opened), target, place, progress)
            workspace = Workspace(place, opened, **options)
        else:
            workspace = Workspace(place, opened, **options)
            workspace.restore(tree, progress=progress)
    except BaseException:
        if owned:
            opened.close()
        raise
    workspace._owns_store = owned
    return workspace


_KINDS: dict[int, Literal["file", "symlink", "directory"]] = {
    FILE: "file",
    SYMLINK: "symlink",
    DIRECTORY: "directory",
}


class TreeEntry:
    """A file, symlink or directory of a tree."""

    __slots__ = ("_entry", "_path")

    def __init__(self, path: bytes, entry: Entry) -> None:
        self._path = path
        self._entry = entry

    @property
    def path(self) -> str:
        """Where it is in the tree; bytes that are no text are escaped as Python's os does."""
        return os.fsdecode(self._path)

    @property
    def kind(self) -> Literal["file", "symlink", "directory"]:
        """What it is."""
        return _KINDS[self._entry.kind]

    @property
    def mode(self) -> int:
        """Its permission bits."""
        return self._entry.mode

    @property
    def mtime_ns(self) -> int:
        """When it was written, in nanoseconds; 0 for a directory."""
        return self._entry.mtime

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return self._entry.size

    @property
    def content_id(self) -> str:
        """Equal for equal contents."""
        return self._entry.content.hex()

    def __repr__(self) -> str:
        return f"<{self.kind} {self.path!r}, {self.size} bytes>"


async def _in_thread(work: Callable[[], T]) -> T:
    return await asyncio.to_thread(work)


def _checked_root(path: object) -> bytes:
    root = os.path.realpath(as_path(path))
    if not os.path.isdir(root):
        raise WorkspaceError(f"{os.fsdecode(root)!r} is no directory: make it first")
    return root


def _store_of(store: HasRuntime | Runtime | Store | str | None) -> Store:
    if isinstance(store, Store):
        return store
    if isinstance(store, HasRuntime):
        return store.runtime.store
    if isinstance(store, Runtime):
        return store.store
    if store is None or isinstance(store, str):
        return open_store(store)
    raise InvalidArgumentError(f"store is a client, a store or a URL, not {type(store).__name__}")


def _name_of(root: bytes) -> str:
    """A name for a workspace that was given none: that of its directory, and what tells it apart
    from others of the same name."""
    own = os.path.basename(root).decode("utf-8", "replace")[:200] or "root"
    return f"{own}-{hashlib.sha256(root).hexdigest()[:8]}"
