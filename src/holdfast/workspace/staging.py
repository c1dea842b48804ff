"""Making aside all that is new in a plan, before anything is moved into place.

Until the first move nothing that a user sees has changed, so a full disk or an unreadable block
does no harm. Every name is reached through descriptors of directories that follow no symlink.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

from holdfast.system.crash_points import reach
from holdfast.workspace.clone import Cloner
from holdfast.workspace.dir_fds import DirFds
from holdfast.workspace.entries import MAKING, SMALL, BlockLocation, Entry
from holdfast.workspace.paths import parent_and_name
from holdfast.workspace.restore_plan import RestorePlan
from holdfast.workspace.tree_reader import TreeReader, part_of

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OWNER = 0o700
_THREADS = min(4, os.cpu_count() or 1)
_BLOCKS_AT_ONCE = 4
_ZEROS = bytes(64 * 1024)


class Stager:
    """Makes what a plan wants, in a directory beside the rest."""

    def __init__(
        self,
        root: bytes,
        staging: bytes,
        plan: RestorePlan,
        reader: TreeReader,
        progress: Callable[[int, int | None], None] | None = None,
        whole: bool = False,
        cloner: Cloner | None = None,
    ) -> None:
        self._root = root
        self._staging = staging
        self._plan = plan
        self._reader = reader
        self._progress = progress
        self._cloner = cloner
        self._tops: dict[bytes, bytes] = {b"": staging} if whole else {}
        self.staged: dict[bytes, bytes] = {}
        """Where each thing is made that is moved into place on its own."""
        self._staged_paths: dict[bytes, bytes] = {}
        self._done = 0
        self._umask = _umask()
        for path, _ in plan.directories:
            self._staged_paths[path] = self._tops[path] = self._new_staged_path(path)
        for path, _ in (*plan.symlinks, *plan.files):
            self._staged_paths[path] = self._new_staged_path(path)

    def stage(self, dirs: DirFds) -> None:
        """Make everything that is new, aside; a mark stands there until all of it is whole."""
        os.mkdir(self._staging, _OWNER, dir_fd=dirs.directory(b""))
        os.close(os.open(MAKING, _NEW, 0o600, dir_fd=dirs.directory(self._staging)))
        reach("workspace:staging")
        self._stage_directories(dirs)
        for path, entry in self._plan.symlinks:
            above, name = parent_and_name(self._staged_paths[path])
            fd = dirs.directory(above)
            os.symlink(entry.location, name, dir_fd=fd)
            _set_time(name, entry, fd)
            self._tell()
        self._stage_files(dirs)
        os.unlink(MAKING, dir_fd=dirs.directory(self._staging))
        reach("workspace:staged")

    def _stage_directories(self, dirs: DirFds) -> None:
        """Make new directories; those that could not be filled get their mode at the end."""
        passed_on = set()  # a directory passes its set-group-id bit on to those made in it
        if os.fstat(dirs.directory(self._staging)).st_mode & stat.S_ISGID:
            passed_on.add(self._staging)
        for path, entry in self._plan.directories:
            staged_path = self._staged_paths[path]
            above, name = parent_and_name(staged_path)
            fd = dirs.directory(above)
            usable = entry.mode & _OWNER == _OWNER
            if usable and not entry.mode & (self._umask | 0o7000) and above not in passed_on:
                os.mkdir(name, entry.mode, dir_fd=fd)
                continue
            os.mkdir(name, _OWNER, dir_fd=fd)
            os.fchmod(dirs.directory(staged_path), entry.mode if usable else _OWNER)
            if usable and entry.mode & stat.S_ISGID:
                passed_on.add(staged_path)

    def _stage_files(self, dirs: DirFds) -> None:
        by_block: dict[bytes, list[tuple[bytes, Entry]]] = {}
        for path, entry in self._plan.files:
            staged_path = self._staged_paths[path]
            if isinstance(entry.location, BlockLocation):
                by_block.setdefault(entry.location.block, []).append((staged_path, entry))
            else:
                self._write(dirs, staged_path, entry, self._reader.read(entry))
                self._tell()
        if len(by_block) == 1:
            self._tell(self._write_blocks(dirs, by_block))
        elif by_block:
            self._stage_in_threads(by_block)

    def _stage_in_threads(self, by_block: dict[bytes, list[tuple[bytes, Entry]]]) -> None:
        """Fetch blocks and write the files that lie in them, some blocks in each thread."""
        names = iter(by_block)
        hands: list[DirFds] = []

        def work(job: dict[bytes, list[tuple[bytes, Entry]]]) -> int:
            try:
                dirs = hands.pop()
            except IndexError:
                dirs = DirFds(self._root)
            try:
                return self._write_blocks(dirs, job)
            finally:
                hands.append(dirs)

        running: deque[Future[int]] = deque()
        pool = ThreadPoolExecutor(_THREADS, "holdfast-restore")
        try:
            while job := {name: by_block[name] for name in islice(names, _BLOCKS_AT_ONCE)}:
                running.append(pool.submit(work, job))
                if len(running) > 2 * _THREADS:
                    self._tell(running.popleft().result())
            while running:
                self._tell(running.popleft().result())
        finally:
            pool.shutdown(cancel_futures=True)
            for dirs in hands:
                dirs.close()

    def _write_blocks(self, dirs: DirFds, job: dict[bytes, list[tuple[bytes, Entry]]]) -> int:
        for name, raw in self._reader.blocks(job):
            for staged_path, entry in job[name]:
                self._write(dirs, staged_path, entry, [part_of(raw, entry)])
        return sum(map(len, job.values()))

    def _write(self, dirs: DirFds, staged_path: bytes, entry: Entry, data: Iterable[bytes]) -> None:
        above, name = parent_and_name(staged_path)
        fd = os.open(name, _NEW, entry.mode, dir_fd=dirs.directory(above))
        reach("workspace:making")
        try:
            if self._cloner is not None and entry.size > SMALL and self._cloner.clone(fd, entry):
                pass
            elif entry.size > SMALL:
                for piece in data:
                    _write_sparsely(fd, piece)
                os.ftruncate(fd, entry.size)
            else:
                for piece in data:
                    _write_all(fd, piece)
            if entry.mode & self._umask:
                os.fchmod(fd, entry.mode)
            os.utime(fd, ns=(entry.mtime, entry.mtime))
        finally:
            os.close(fd)

    def _new_staged_path(self, path: bytes) -> bytes:
        """Return where a path is made aside: in the new directory it belongs to, or on its own."""
        above, name = parent_and_name(path)
        staged_path = self._tops.get(above)
        if staged_path is not None:
            return staged_path + b"/" + name
        staged_path = self.staged[path] = b"%b/%d" % (self._staging, len(self.staged))
        return staged_path

    def _tell(self, files: int = 1) -> None:
        self._done += files
        if self._progress is not None:
            self._progress(self._done, len(self._plan.files) + len(self._plan.symlinks))

    def tighten(self, dirs: DirFds) -> None:
        """Give the directories of a fork, which are all there now, the modes that they get."""
        for path, entry in reversed(self._plan.directories):
            if entry.mode & _OWNER != _OWNER:
                os.fchmod(dirs.directory(self._staged_paths[path]), entry.mode)
        top = dirs.directory(self._staging)
        passed_on = os.fstat(top).st_mode & stat.S_ISGID
        os.fchmod(top, 0o777 & ~self._umask | _OWNER | passed_on)


def _umask() -> int:
    """Return the bits that new files do not get; all of them where they cannot be asked for."""
    try:
        with open("/proc/self/status", "rb") as file:
            return int(file.read().split(b"\nUmask:")[1].split()[0], 8)
    except (OSError, IndexError):
        return 0o777


def _write_all(fd: int, data: bytes) -> None:
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, data[written:])


def _write_sparsely(fd: int, data: bytes) -> None:
    """Write a piece of a large file; one of zeros alone is left as a hole."""
    if data[: len(_ZEROS)] == _ZEROS and data.count(0) == len(data):
        os.lseek(fd, len(data), os.SEEK_CUR)
    else:
        _write_all(fd, data)


def _set_time(name: bytes, entry: Entry, fd: int) -> None:
    os.utime(name, ns=(entry.mtime, entry.mtime), dir_fd=fd, follow_symlinks=False)


def remove_staging(root: bytes, name: bytes) -> None:
    """Remove what a restore made aside, wherever it was stopped; follows no symlink."""
    with DirFds(root) as dirs:
        if not _is_directory(name, dirs.directory(b"")):
            return
        found = [name]
        for path in found:  # grows as it goes
            fd = dirs.directory(path)
            os.fchmod(fd, _OWNER)
            for inner in map(os.fsencode, os.listdir(fd)):
                if _is_directory(inner, fd):
                    found.append(path + b"/" + inner)
                else:
                    os.unlink(inner, dir_fd=fd)
        for path in reversed(found):
            above, last = parent_and_name(path)
            dirs.forget(path)
            os.rmdir(last, dir_fd=dirs.directory(above))


def _is_directory(name: bytes, fd: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False
