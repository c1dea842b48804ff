"""What the tests of workspaces share: pictures of directories, and making things in them."""

import errno
import fcntl
import os
import shutil
import stat
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdfast.testing import crash_points
from holdfast.workspace import Workspace, safe_rename
from holdfast.workspace.entries import TEMPORARY

Picture = dict[bytes, tuple]


def picture(directory: Path | str | bytes, times: bool = True) -> Picture:
    """Everything in a directory, to the byte: kind, mode, time and content by path."""
    root = os.fsencode(directory)
    found: Picture = {}
    stack = [b""]
    while stack:
        path = stack.pop()
        for name in os.listdir(os.path.join(root, path)):
            inner = os.path.join(path, name)
            whole = os.path.join(root, inner)
            info = os.lstat(whole)
            mode = stat.S_IMODE(info.st_mode)
            time = info.st_mtime_ns if times else 0
            if stat.S_ISDIR(info.st_mode):
                found[inner] = ("directory", mode)
                stack.append(inner)
            elif stat.S_ISLNK(info.st_mode):
                found[inner] = ("symlink", os.readlink(whole), time)
            elif stat.S_ISREG(info.st_mode):
                with open(whole, "rb") as file:
                    found[inner] = ("file", mode, time, file.read())
            else:
                found[inner] = ("special", mode)
    return found


def copy(source: Path, to: Path) -> None:
    """A plain copy, kept beside."""
    shutil.copytree(source, to, symlinks=True)


def put(path: Path, content: bytes | str = b"content\n", mode: int | None = None) -> Path:
    """Write a file, with the directories above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    if mode is not None:
        path.chmod(mode)
    return path


def left_behind(directory: Path) -> list[bytes]:
    """What a restore made aside and did not take away again."""
    names = os.listdir(os.fsencode(directory))
    return [name for name in names if name.startswith(TEMPORARY)]


def unprivileged(work: Callable[[], None]) -> None:
    """Do something as a user whom permissions keep out, in a child if this is the superuser."""
    if os.geteuid() != 0:
        work()
        return
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        error = b""
        try:
            os.setgid(65534)
            os.setuid(65534)
            work()
        except BaseException:
            error = traceback.format_exc().encode()
        finally:
            os.write(send, error or b"done")
            os._exit(0)
    os.close(send)
    with open(receive, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    assert said == "done", said


@contextmanager
def open_to_all() -> Iterator[Path]:
    """A directory in which any user may write, with an empty one in it to work in."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        place = Path(name)
        place.chmod(0o777)
        (place / "repo").mkdir()
        (place / "repo").chmod(0o777)
        yield place


@contextmanager
def at(point: str, action: Callable[[int], object]) -> Iterator[list[int]]:
    """Do something whenever a named point is passed; it is told how often that was."""
    passed: list[int] = []

    def on_reached(name: str) -> None:
        if name == point:
            passed.append(len(passed) + 1)
            action(len(passed))

    with crash_points.listening(on_reached):
        yield passed


def back(workspace: Workspace, root: Path) -> None:
    """Snapshot, wipe, restore: everything is there again."""
    before = picture(root)
    snapshot = workspace.snapshot()
    for path in root.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    workspace.restore(snapshot)
    assert picture(root) == before


def paths(workspace: Workspace) -> list[str]:
    """What a snapshot holds now."""
    return [entry.path for entry in workspace.ls(workspace.snapshot())]


_GET_FLAGS, _SET_FLAGS, _IMMUTABLE = 0x80086601, 0x40086602, 0x10


@contextmanager
def immutable(file: Path) -> Iterator[bool]:
    """A file that nobody may change, rename or remove; False where there is no such thing here."""
    fd = os.open(file, os.O_RDONLY)
    try:
        flags = 0
        try:
            flags = int.from_bytes(fcntl.ioctl(fd, _GET_FLAGS, bytes(8)), "little")
            fcntl.ioctl(fd, _SET_FLAGS, (flags | _IMMUTABLE).to_bytes(8, "little"))
        except OSError:
            yield False
            return
        try:
            yield True
        finally:
            fcntl.ioctl(fd, _SET_FLAGS, flags.to_bytes(8, "little"))
    finally:
        os.close(fd)


@contextmanager
def unchangeable(file: Path) -> Iterator[None]:
    """A file that cannot be replaced or removed: truly so, or as told by the call that would."""
    with immutable(file) as is_so:
        if is_so:
            yield
            return
        put, rename, name = safe_rename.put, os.rename, os.fsencode(file.name)

        def refuse(call: Callable[..., Any], at: int) -> Callable[..., Any]:
            def refusing(*args: Any, **options: Any) -> Any:
                if args[at] == name:
                    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(file))
                return call(*args, **options)

            return refusing

        safe_rename.put, os.rename = refuse(put, 3), refuse(rename, 0)
        try:
            yield
        finally:
            safe_rename.put, os.rename = put, rename
