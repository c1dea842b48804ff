"""Giving a file its name without ever overwriting what stands there: that is moved aside whole.

Linux can exchange two names, and can rename only where nothing stands. Where a file system cannot,
what stands there is moved aside first and the new file is linked, which never overwrites either.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from functools import cache

_NOREPLACE, _EXCHANGE = 1, 2
_UNABLE = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTTY)
_TRIES = 20
_Rename = Callable[[int, bytes, int, bytes, int], int]


class NameKeepsChangingError(Exception):
    """Somebody makes and removes a name faster than it can be taken."""


@cache
def _renameat2() -> _Rename | None:
    """Return the call of the C library, where there is one."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return None
    call.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]

    def rename(old_fd: int, old: bytes, new_fd: int, new: bytes, flags: int) -> int:
        return 0 if call(old_fd, old, new_fd, new, flags) == 0 else ctypes.get_errno()

    return rename


def _renamed(old_fd: int, old: bytes, new_fd: int, new: bytes, flags: int) -> bool:
    """Rename with flags; return False where that is not known here."""
    rename = _renameat2()
    if rename is None:
        return False
    error = rename(old_fd, old, new_fd, new, flags)
    if error in _UNABLE:
        return False
    if error:
        raise OSError(error, os.strerror(error), os.fsdecode(new))
    return True


def move(old_fd: int, old: bytes, new_fd: int, new: bytes) -> None:
    """Move something to a name where nothing stands; FileExistsError if something does."""
    if _renamed(old_fd, old, new_fd, new, _NOREPLACE):
        return
    try:
        os.link(old, new, src_dir_fd=old_fd, dst_dir_fd=new_fd, follow_symlinks=False)
    except PermissionError:  # a directory, or a file system without links
        _move_unlinked(old_fd, old, new_fd, new)
    else:
        os.unlink(old, dir_fd=old_fd)


def _move_unlinked(old_fd: int, old: bytes, new_fd: int, new: bytes) -> None:
    """Move as a last resort; nothing is lost, as only an empty directory is ever replaced."""
    try:
        os.stat(new, dir_fd=new_fd, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(old, new, src_dir_fd=old_fd, dst_dir_fd=new_fd)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fsdecode(new))


def put(made_fd: int, made: bytes, fd: int, name: bytes, stands: bool, spares: list[bytes]) -> None:
    """Give what was made aside its name; whatever stood there is aside afterwards.

    ``spares`` gets the names it has there, ``stands`` says whether something is expected.
    """
    for _ in range(_TRIES):
        try:
            if stands:
                if _renamed(made_fd, made, fd, name, _EXCHANGE):
                    spares.append(made)
                    return
                spare = b"%b~%d" % (made, len(spares))
                spares.append(spare)  # first, as an interrupt may come at any moment
                try:
                    os.rename(name, spare, src_dir_fd=fd, dst_dir_fd=made_fd)
                except FileNotFoundError:
                    spares.pop()
            move(made_fd, made, fd, name)
            return
        except FileNotFoundError:
            stands = False
        except FileExistsError:
            stands = True
    raise NameKeepsChangingError(os.fsdecode(name))


def take_back(made_fd: int, made: bytes, fd: int, name: bytes, spares: list[bytes]) -> None:
    """Undo ``put``: what stood under the name stands there again, and what is there now is aside.

    The very same file: whoever has it open goes on writing to it.
    """
    if not spares:
        os.rename(name, made, src_dir_fd=fd, dst_dir_fd=made_fd)
    elif spares[-1] != made or not _renamed(made_fd, made, fd, name, _EXCHANGE):
        old = spares[-1]
        if old == made:
            old = made + b"~"
            os.rename(made, old, src_dir_fd=made_fd, dst_dir_fd=made_fd)
        os.rename(name, made, src_dir_fd=fd, dst_dir_fd=made_fd)
        move(made_fd, old, fd, name)
