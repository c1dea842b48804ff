"""Making a new directory of a tree: whole, or not at all."""

from __future__ import annotations

import os
from collections.abc import Collection

from holdfast.errors import InvalidArgumentError
from holdfast.system.crash_points import reach
from holdfast.system.unfinished import Unfinished
from holdfast.workspace.capture import Progress
from holdfast.workspace.clone import Cloner
from holdfast.workspace.dir_fds import DirFds
from holdfast.workspace.disk_errors import check_room, explained
from holdfast.workspace.entries import TEMPORARY
from holdfast.workspace.restore_plan import make_plan
from holdfast.workspace.results import Snapshot
from holdfast.workspace.staging import Stager, remove_staging
from holdfast.workspace.tree_reader import TreeReader


def fork(
    reader: TreeReader,
    source: Snapshot,
    path: bytes,
    progress: Progress | None = None,
    cloner: Cloner | None = None,
    files: Collection[str] = (),
) -> None:
    """Make a new directory of a tree: whole, or not at all.

    ``files`` are those of the store beside which it is noted until it is whole.
    """
    above, name = os.path.split(path)
    if not name:
        raise InvalidArgumentError("a fork needs the path of a new directory")
    if os.path.lexists(path) and (os.path.islink(path) or not os.path.isdir(path)):
        raise InvalidArgumentError(f"{os.fsdecode(path)!r} is there already, and no directory")
    if os.path.lexists(path) and os.listdir(path):
        raise InvalidArgumentError(
            f"{os.fsdecode(path)!r} is not empty: fork into a new or empty directory"
        )
    os.makedirs(above, exist_ok=True)
    plan = make_plan({}, reader, source.root.name, None)
    check_room(above, plan)
    with Unfinished(files, above, TEMPORARY + b"fork-") as unfinished, DirFds(above) as dirs:
        staging = unfinished.name
        try:
            stager = Stager(above, staging, plan, reader, progress, True, cloner)
            stager.stage(dirs)
            stager.tighten(dirs)
            dirs.forget(staging)
            fd = dirs.directory(b"")
            os.rename(staging, name, src_dir_fd=fd, dst_dir_fd=fd)
            reach("workspace:forked")
        except BaseException as error:
            remove_staging(above, staging)
            raise explained(error, b"", "nothing was made") from error
