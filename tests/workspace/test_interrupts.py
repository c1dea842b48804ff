"""Ctrl-C at every moment of a snapshot, a restore, a fork: the workspace goes on as it was."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from holdfast.workspace import Snapshot, Workspace
from tests.interrupts import interruptions
from tests.workspace.kit import picture, put

VERBS: dict[str, Callable[[Workspace, Snapshot, Path], Any]] = {
    "snapshot": lambda workspace, first, _: workspace.snapshot(),
    "restore": lambda workspace, first, _: workspace.restore(first),
    "fork": lambda workspace, first, there: workspace.fork(first, there).close(),
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("verb", VERBS)
def test_an_interrupted_verb_is_followed_by_any_other(
    verb: str, workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    put(root / "a" / "one", "1\n" * 50)
    put(root / "two", "2\n" * 50)
    first = workspace.snapshot()
    at_first = picture(root)
    forks = (tmp_path / f"fork-{number}" for number in count())

    def begin() -> Callable[[], Any]:
        put(root / "two", "changed")
        there = next(forks)
        return lambda: VERBS[verb](workspace, first, there)

    for number, raised in enumerate(interruptions(begin)):
        assert isinstance(raised, KeyboardInterrupt)
        put(root / "three", f"{number}")
        now = workspace.snapshot()
        at_now = picture(root)

        workspace.restore(first)
        assert picture(root) == at_first
        workspace.restore(now)
        assert picture(root) == at_now
        (root / "three").unlink()
