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
from holdfast.workspace import exchange
from holdfast.workspace.dir_fds import Inside, parent_and_name
from holdfast.workspace.entries import SYMLINK, Entry
from holdfast.workspace.index import INODE, MODE, MTIME, SIZE, Folder, Key, key_of
from holdfast.workspace.restore_plan import Plan

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OWNER = 0o700
_LINKS_MATTER_NOT = slice(0, MODE + 1)


class Moved(Exception):
    """Something stands where nothing of its kind was captured: somebody works here just now."""

    def __init__(self, path: bytes) -> None:
        super().__init__(os.fsdecode(path))
        self.path = path


@dataclass(slots=True)
class Held:
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
    """Where the file is moved that a plan removes in that place."""
    return b"r%d" % number


class Swap:
    """Brings a workspace from what was captured to what was made aside."""

    def __init__(
        self,
        staging: bytes,
        plan: Plan,
        staged: Mapping[bytes, bytes],
        folders: Mapping[bytes, Folder],
    ) -> None:
        self._staging = staging
        self._plan = plan
        self._staged = staged
        self._folders = folders
        self._new_directories = {path for path, _ in plan.directories}
        self._steps: list[Callable[[Inside], object]] = []
        self._loosened: dict[bytes, int] = {}
        self.held: list[Held] = []
        self.is_done = False
        self.at = b""
        """The path that is at work."""
        self.stayed: list[bytes] = []
        """Directories that were to go and hold something that was not captured."""

    def carry_out(self, inside: Inside) -> None:
        """Do it all; whatever is raised, ``take_back`` undoes what was done."""
        for number, (path, _) in enumerate(self._plan.removed):
            self.at = path
            self._remove(inside, path, removal_slot(number))
            reach("workspace:removed")
        for path in reversed(self._plan.removed_directories):
            self.at = path
            self._remove_directory(inside, path)
        for path, place in self._staged.items():
            self.at = path
            self._install(inside, path, parent_and_name(place)[1])
            reach("workspace:moved")
        self._set_attributes(inside)
        self.is_done = True
        reach("workspace:swapped")

    def take_back(self, inside: Inside) -> list[tuple[bytes, OSError]]:
        """Undo what was done, the last first; returns what could not be. May be called again."""
        failures: list[tuple[bytes, OSError]] = []
        for step in reversed(self._steps):
            try:
                step(inside)
            except OSError as error:
                failures.append((step.args[0], error))  # type: ignore[attr-defined]
            reach("workspace:taken_back")
        self._tighten(inside)
        return failures

    def _remove(self, inside: Inside, path: bytes, slot: bytes) -> None:
        above, name = parent_and_name(path)
        fd = self._open_to_write(inside, above)
        before = _key(fd, name)
        if before is None:
            return  # gone already, and captured
        aside = inside.directory(self._staging)
        self._steps.append(partial(self._put_back, path, slot))
        try:
            os.rename(name, slot, src_dir_fd=fd, dst_dir_fd=aside)
        except FileNotFoundError:
            return
        self._hold(aside, path, slot, before)

    def _put_back(self, path: bytes, slot: bytes, inside: Inside) -> None:
        """Where a newer file stands by now it stays, and this one is looked at with the rest."""
        above, name = parent_and_name(path)
        aside = inside.directory(self._staging)
        if _key(aside, slot) is not None:
            fd = inside.directory(above)
            try:
                exchange.move(aside, slot, fd, name)
            except FileExistsError:
                return

    def _remove_directory(self, inside: Inside, path: bytes) -> None:
        above, name = parent_and_name(path)
        fd = self._open_to_write(inside, above)
        inside.forget(path)
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

    def _make_directory_again(self, path: bytes, mode: int, inside: Inside) -> None:
        above, name = parent_and_name(path)
        try:
            os.mkdir(name, _OWNER, dir_fd=inside.directory(above))
        except FileExistsError:
            return
        if mode & _OWNER == _OWNER:
            os.fchmod(inside.directory(path), mode)
        else:
            self._loosened[path] = mode

    def _install(self, inside: Inside, path: bytes, slot: bytes) -> None:
        above, name = parent_and_name(path)
        fd = self._open_to_write(inside, above)
        aside = inside.directory(self._staging)
        inside.forget(self._staging + b"/" + slot)
        aside, fd = inside.directory(self._staging), inside.directory(above)
        made, before = _key(aside, slot), _key(fd, name)
        assert made is not None
        spares: list[bytes] = []
        self._steps.append(partial(self._uninstall, path, slot, made[INODE], spares))
        try:
            if path in self._new_directories:
                exchange.move(aside, slot, fd, name)
            else:
                exchange.put(aside, slot, fd, name, before is not None, spares)
        except (FileExistsError, exchange.KeepsComing):
            raise Moved(path) from None
        for spare in spares:
            self._hold(aside, path, spare, before)

    def _uninstall(
        self, path: bytes, slot: bytes, made: int, spares: list[bytes], inside: Inside
    ) -> None:
        """Told by what is on the disk, as an interrupt may have come between any two calls."""
        above, name = parent_and_name(path)
        inside.forget(path)
        aside, fd = inside.directory(self._staging), inside.directory(above)
        there, here = _key(fd, name), _key(aside, slot)
        if there is not None and there[INODE] == made:
            exchanged = here is not None and here[INODE] != made
            exchange.take_back(aside, slot, fd, name, [slot] if exchanged else spares)
        elif there is None and spares and _key(aside, spares[-1]) is not None:
            exchange.move(aside, spares[-1], fd, name)  # moved aside, and not yet replaced
        # Else it was never put there, or somebody put a newer one there since.

    def _hold(self, aside: int, path: bytes, slot: bytes, before: Key | None) -> None:
        """Know what was moved aside; Moved if it is of a kind that cannot be captured alone."""
        key = _key(aside, slot)
        if key is None or not (stat.S_ISREG(key[MODE]) or stat.S_ISLNK(key[MODE])):
            raise Moved(path)
        entry, known = self._known(path)
        # Moving it changed its time of change, so that is compared as it was just before.
        is_sure = (
            known is not None
            and before is not None
            and before[_LINKS_MATTER_NOT] == known[_LINKS_MATTER_NOT]
            and all(key[part] == known[part] for part in (MTIME, SIZE, INODE, MODE))
        )
        self.held.append(Held(path, slot, entry, key, is_sure))

    def _known(self, path: bytes) -> tuple[Entry | None, Key | None]:
        above, name = parent_and_name(path)
        folder = self._folders.get(above)
        if folder is None:
            return None, None
        return folder.entries.get(name), folder.keys.get(name)

    def _set_attributes(self, inside: Inside) -> None:
        for path, entry in self._plan.touched:
            self.at = path
            before, _ = self._known(path)
            assert before is not None
            self._steps.append(partial(self._touch, path, entry, before))
            self._touch(path, before, entry, inside)
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
        self._tighten(inside)

    def _touch(self, path: bytes, before: Entry, entry: Entry, inside: Inside) -> None:
        """Give a file another mode and time, unless somebody has written to it meanwhile."""
        above, name = parent_and_name(path)
        fd = inside.directory(above)
        now = _key(fd, name)
        if now is None or (now[MTIME], now[SIZE]) != (before.mtime, before.size):
            return
        if entry.kind == SYMLINK:
            os.utime(name, ns=(entry.mtime, entry.mtime), dir_fd=fd, follow_symlinks=False)
            return
        file = os.open(name, _READ, dir_fd=fd)
        try:
            found = os.fstat(file)
            if stat.S_ISREG(found.st_mode) and found.st_mtime_ns == before.mtime:
                os.fchmod(file, entry.mode)
                os.utime(file, ns=(entry.mtime, entry.mtime))
        finally:
            os.close(file)

    def _set_mode(self, path: bytes, mode: int, inside: Inside) -> None:
        self._loosened[path] = mode

    def _tighten(self, inside: Inside) -> None:
        """Give directories the modes that they get, or that they had before they were loosened."""
        for path, mode in sorted(self._loosened.items(), reverse=True):
            try:
                fd = inside.directory(path)
            except (FileNotFoundError, NotADirectoryError):  # one that was loosened may be gone
                continue
            os.fchmod(fd, mode)

    def _open_to_write(self, inside: Inside, path: bytes) -> int:
        """A directory in which names may be made and removed, if need be by loosening its mode."""
        fd = inside.directory(path)
        if path not in self._loosened:
            mode = stat.S_IMODE(os.fstat(fd).st_mode)
            if mode & _OWNER != _OWNER and os.geteuid() != 0:
                os.fchmod(fd, mode | _OWNER)
                self._loosened[path] = mode
        return fd


def _key(fd: int, name: bytes) -> Key | None:
    try:
        return key_of(os.stat(name, dir_fd=fd, follow_symlinks=False))
    except FileNotFoundError:
        return None
