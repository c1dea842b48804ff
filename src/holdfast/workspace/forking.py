"""Making a new directory of a tree: whole, or not at all."""

from __future__ import annotations

import os
from collections.abc import Collection

from holdfast.errors import InvalidArgumentError
from holdfast.system.crash_points import reach
from holdfast.system.unfinished import Unfinished
from holdfast.workspace.apply import Applier, remove_staging
from holdfast.workspace.capture import Progress
from holdfast.workspace.clone import Cloner
from holdfast.workspace.dir_fds import Inside
from holdfast.workspace.disk_errors import check_room, explained
from holdfast.workspace.entries import TEMPORARY
from holdfast.workspace.restore_plan import make_plan
from holdfast.workspace.results import Snapshot
from holdfast.workspace.tree_reader import Shelf


def fork(
    shelf: Shelf,
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
    plan = make_plan({}, shelf, source.root.name, None)
    check_room(above, plan)
    with Unfinished(files, above, TEMPORARY + b"fork-") as unfinished, Inside(above) as inside:
        staging = unfinished.name
        try:
            applier = Applier(above, staging, plan, shelf, progress, True, cloner)
            applier.stage(inside)
            applier.tighten(inside)
            inside.forget(staging)
            fd = inside.directory(b"")
            os.rename(staging, name, src_dir_fd=fd, dst_dir_fd=fd)
            reach("workspace:forked")
        except BaseException as error:
            remove_staging(above, staging)
            raise explained(error, b"", "nothing was made") from error
