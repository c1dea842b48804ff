"""Taking away what goes and moving what was made into place, so that every step can be taken back.

Nothing is overwritten and nothing is deleted here. Whatever had a name is moved aside, whole, to
where the restore makes things: what it is, is looked at once it is there and nobody can replace it
any more.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from holdfast.system.crash_points import reach
from holdfast.workspace import safe_rename
from holdfast.workspace.dir_fds import READ, DirFds
from holdfast.workspace.entries import SYMLINK, Entry
from holdfast.workspace.index import Folder
from holdfast.workspace.paths import parent_and_name
from holdfast.workspace.restore_plan import RestorePlan
from holdfast.workspace.stat_keys import INODE, MODE, MTIME, SIZE, Key, key_if_there

_OWNER = 0o700
_LINKS_MATTER_NOT = slice(0, MODE + 1)


class EntryMovedError(Exception):
    """Something stands where nothing of its kind was captured: somebody works here just now."""

    def __init__(self, path: bytes) -> None:
        super().__init__(os.fsdecode(path))
        self.path = path


@dataclass(slots=True)
class MovedAside:
    """A file or symlink that was moved aside."""

    path: bytes
    slot: bytes
    """Its name aside."""
    entry: Entry | None
    """What was captured of it, if it was there then."""
    key: Key
    """As it was right after it was moved."""
    is_sure: bool
    """Whether that tells that it is what was captured."""


def removal_slot(number: int) -> bytes:
    """Return where the file is moved that a plan removes under that number."""
    return b"r%d" % number


class Swap:
    """Brings a workspace from what was captured to what was made aside."""

    def __init__(
        self,
        staging: bytes,
        plan: RestorePlan,
        staged: Mapping[bytes, bytes],
        folders: Mapping[bytes, Folder],
    ) -> None:
        self._staging = staging
        self._plan = plan
        self._staged = staged
        self._folders = folders
        self._new_directories = {path for path, _ in plan.directories}
        self._steps: list[Callable[[DirFds], object]] = []
        self._loosened: dict[bytes, int] = {}
        self.moved_aside: list[MovedAside] = []
        self.is_done = False
        self.at = b""
        """The path that is at work."""
        self.stayed: list[bytes] = []
        """Directories that were to go and hold something that was not captured."""

    def carry_out(self, dirs: DirFds) -> None:
        """Do it all; whatever is raised, ``take_back`` undoes what was done."""
        for number, (path, _) in enumerate(self._plan.removed):
            self.at = path
            self._remove(dirs, path, removal_slot(number))
            reach("workspace:removed")
        for path in reversed(self._plan.removed_directories):
            self.at = path
            self._remove_directory(dirs, path)
        for path, staged_path in self._staged.items():
            self.at = path
            self._install(dirs, path, parent_and_name(staged_path)[1])
            reach("workspace:moved")
        self._set_attributes(dirs)
        self.is_done = True
        reach("workspace:swapped")

    def take_back(self, dirs: DirFds) -> list[tuple[bytes, OSError]]:
        """Undo what was done, the last first; returns what could not be. May be called again."""
        failures: list[tuple[bytes, OSError]] = []
        for step in reversed(self._steps):
            try:
                step(dirs)
            except OSError as error:
                failures.append((step.args[0], error))  # type: ignore[attr-defined]
            reach("workspace:taken_back")
        self._tighten(dirs)
        return failures

    def _remove(self, dirs: DirFds, path: bytes, slot: bytes) -> None:
        above, name = parent_and_name(path)
        fd = self._open_to_write(dirs, above)
        before = key_if_there(fd, name)
        if before is None:
            return  # gone already, and captured
        aside = dirs.directory(self._staging)
        self._steps.append(partial(self._put_back, path, slot))
        try:
            os.rename(name, slot, src_dir_fd=fd, dst_dir_fd=aside)
        except FileNotFoundError:
            return
        self._note_moved(aside, path, slot, before)

    def _put_back(self, path: bytes, slot: bytes, dirs: DirFds) -> None:
        """Put a file back, unless a newer one stands there: then it is looked at with the rest."""
        above, name = parent_and_name(path)
        aside = dirs.directory(self._staging)
        if key_if_there(aside, slot) is not None:
            fd = dirs.directory(above)
            try:
                safe_rename.move(aside, slot, fd, name)
            except FileExistsError:
                return

    def _remove_directory(self, dirs: DirFds, path: bytes) -> None:
        above, name = parent_and_name(path)
        fd = self._open_to_write(dirs, above)
        dirs.forget(path)
        entry, _ = self._known(path)
        mode = _OWNER if entry is None else entry.mode
        self._steps.append(partial(self._make_directory_again, path, mode))
        try:
            os.rmdir(name, dir_fd=fd)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                self.stayed.append(path)  # what is ignored or new in it stays, and so does it
            elif error.errno != errno.ENOENT:
                raise

    def _make_directory_again(self, path: bytes, mode: int, dirs: DirFds) -> None:
        above, name = parent_and_name(path)
        try:
            os.mkdir(name, _OWNER, dir_fd=dirs.directory(above))
        except FileExistsError:
            return
        if mode & _OWNER == _OWNER:
            os.fchmod(dirs.directory(path), mode)
        else:
            self._loosened[path] = mode

    def _install(self, dirs: DirFds, path: bytes, slot: bytes) -> None:
        above, name = parent_and_name(path)
        fd = self._open_to_write(dirs, above)
        aside = dirs.directory(self._staging)
        dirs.forget(self._staging + b"/" + slot)
        aside, fd = dirs.directory(self._staging), dirs.directory(above)
        made, before = key_if_there(aside, slot), key_if_there(fd, name)
        assert made is not None
        spares: list[bytes] = []
        self._steps.append(partial(self._uninstall, path, slot, made[INODE], spares))
        try:
            if path in self._new_directories:
                safe_rename.move(aside, slot, fd, name)
            else:
                safe_rename.put(aside, slot, fd, name, before is not None, spares)
        except (FileExistsError, safe_rename.NameKeepsChangingError):
            raise EntryMovedError(path) from None
        for spare in spares:
            self._note_moved(aside, path, spare, before)

    def _uninstall(
        self, path: bytes, slot: bytes, made: int, spares: list[bytes], dirs: DirFds
    ) -> None:
        """Undo an install as far as the disk says it was done: interrupts strike anywhere."""
        above, name = parent_and_name(path)
        dirs.forget(path)
        aside, fd = dirs.directory(self._staging), dirs.directory(above)
        there, here = key_if_there(fd, name), key_if_there(aside, slot)
        if there is not None and there[INODE] == made:
            exchanged = here is not None and here[INODE] != made
            safe_rename.take_back(aside, slot, fd, name, [slot] if exchanged else spares)
        elif there is None and spares and key_if_there(aside, spares[-1]) is not None:
            safe_rename.move(aside, spares[-1], fd, name)  # moved aside, and not yet replaced
        # Else it was never put there, or somebody put a newer one there since.

    def _note_moved(self, aside: int, path: bytes, slot: bytes, before: Key | None) -> None:
        """Know what was moved aside; refuse what is of a kind that cannot be captured alone."""
        key = key_if_there(aside, slot)
        if key is None or not (stat.S_ISREG(key[MODE]) or stat.S_ISLNK(key[MODE])):
            raise EntryMovedError(path)
        entry, known = self._known(path)
        # Moving it changed its time of change, so that is compared as it was just before.
        is_sure = (
            known is not None
            and before is not None
            and before[_LINKS_MATTER_NOT] == known[_LINKS_MATTER_NOT]
            and all(key[part] == known[part] for part in (MTIME, SIZE, INODE, MODE))
        )
        self.moved_aside.append(MovedAside(path, slot, entry, key, is_sure))

    def _known(self, path: bytes) -> tuple[Entry | None, Key | None]:
        above, name = parent_and_name(path)
        folder = self._folders.get(above)
        if folder is None:
            return None, None
        return folder.entries.get(name), folder.keys.get(name)

    def _set_attributes(self, dirs: DirFds) -> None:
        for path, entry in self._plan.touched:
            self.at = path
            before, _ = self._known(path)
            assert before is not None
            self._steps.append(partial(self._touch, path, entry, before))
            self._touch(path, before, entry, dirs)
            reach("workspace:touched")
        for path, entry in self._plan.modes:
            before, _ = self._known(path)
            mode = self._loosened.get(path, _OWNER if before is None else before.mode)
            self._steps.append(partial(self._set_mode, path, mode))
            self._loosened[path] = entry.mode
        self._loosened.update(
            (path, entry.mode)
            for path, entry in self._plan.directories
            if entry.mode & _OWNER != _OWNER
        )
        self._tighten(dirs)

    def _touch(self, path: bytes, before: Entry, entry: Entry, dirs: DirFds) -> None:
        """Give a file another mode and time, unless somebody has written to it meanwhile."""
        above, name = parent_and_name(path)
        fd = dirs.directory(above)
        now = key_if_there(fd, name)
        if now is None or (now[MTIME], now[SIZE]) != (before.mtime, before.size):
            return
        if entry.kind == SYMLINK:
            os.utime(name, ns=(entry.mtime, entry.mtime), dir_fd=fd, follow_symlinks=False)
            return
        file = os.open(name, READ, dir_fd=fd)
        try:
            found = os.fstat(file)
            if stat.S_ISREG(found.st_mode) and found.st_mtime_ns == before.mtime:
                os.fchmod(file, entry.mode)
                reach("workspace:touching")
                os.utime(file, ns=(entry.mtime, entry.mtime))
        finally:
            os.close(file)

    def _set_mode(self, path: bytes, mode: int, dirs: DirFds) -> None:
        self._loosened[path] = mode

    def _tighten(self, dirs: DirFds) -> None:
        """Give directories the modes that they get, or that they had before they were loosened."""
        for path, mode in sorted(self._loosened.items(), reverse=True):
            try:
                fd = dirs.directory(path)
            except (FileNotFoundError, NotADirectoryError):  # one that was loosened may be gone
                continue
            os.fchmod(fd, mode)

    def _open_to_write(self, dirs: DirFds, path: bytes) -> int:
        """Return a directory in which names may be made and removed; loosen its mode if need be."""
        fd = dirs.directory(path)
        if path not in self._loosened:
            mode = stat.S_IMODE(os.fstat(fd).st_mode)
            if mode & _OWNER != _OWNER and os.geteuid() != 0:
                os.fchmod(fd, mode | _OWNER)
                self._loosened[path] = mode
        return fd
