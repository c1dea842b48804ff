"""Ways to keep the files of a directory: Holdfast, and git in a shadow repository."""

from __future__ import annotations

import os
import shutil
import subprocess
from abc import abstractmethod
from pathlib import Path
from typing import Any

from benchmarks.contenders.base import Contender


class TreeContender(Contender):
    """Keeps snapshots of a directory of its own."""

    tree: Path

    async def open(self, directory: Path) -> None:
        self.directory = directory / "kept"
        self.directory.mkdir()
        self.tree = directory / "tree"
        self.forks = directory / "forks"
        self.forks.mkdir()
        self.open_now()

    async def close(self) -> None:
        self.close_now()

    async def save(self, step: int, state: Any, session: str = "main") -> None:
        raise NotImplementedError("a tree is captured")

    async def restore_newest(self, session: str = "main") -> Any:
        raise NotImplementedError("a tree is captured")

    def bytes(self) -> int:
        """The room its files take on the disk: git's many small ones take whole blocks each."""
        return sum(path.lstat().st_blocks * 512 for path in self.directory.rglob("*"))

    @abstractmethod
    def open_now(self) -> None: ...

    @abstractmethod
    def snapshot(self) -> str:
        """Keep the directory as it is; what is captured can be restored by its name."""

    @abstractmethod
    def restore(self, snapshot: str) -> None:
        """Put the directory back, so that what was there before can be had again."""

    @abstractmethod
    def fork(self, snapshot: str, number: int) -> None:
        """Make a new directory of a snapshot."""

    def close_now(self) -> None:
        return


class HoldfastTree(TreeContender):
    """A workspace on an SQLite file."""

    requires = "holdfast"

    def __init__(self, name: str, watch: bool = False, durability: str = "full") -> None:
        self.name = name
        self.durability = durability
        self._watch = watch
        if watch:
            self.requires = "inotify_simple"

    def open_now(self) -> None:
        from holdfast.workspace import Workspace

        url = f"sqlite:///{self.directory}/holdfast.db?durability={self.durability}"
        self._workspace = Workspace(self.tree, url, watch=self._watch)

    def snapshot(self) -> str:
        return self._workspace.snapshot().tree_id

    def restore(self, snapshot: str) -> None:
        self._workspace.restore(snapshot)

    def fork(self, snapshot: str, number: int) -> None:
        self._workspace.fork(snapshot, self.forks / str(number)).close()

    def close_now(self) -> None:
        self._workspace.close()


class ShadowGit(TreeContender):
    """A git directory apart from the tree, committed to at every step: what coding agents do."""

    requires = "subprocess"
    durability = "none"

    def __init__(self, name: str) -> None:
        self.name = name

    def missing(self) -> bool:
        return shutil.which("git") is None

    def open_now(self) -> None:
        self._git("init", "-q")

    def snapshot(self) -> str:
        self._git("add", "-A")
        self._git("commit", "-q", "--allow-empty", "--no-verify", "-m", "snapshot")
        return self._git("rev-parse", "HEAD").strip()

    def restore(self, snapshot: str) -> None:
        self.snapshot()
        self._git("read-tree", "--reset", "-u", snapshot)

    def fork(self, snapshot: str, number: int) -> None:
        place = self.forks / str(number)
        place.mkdir()
        index = str(self.directory / f"index-{number}")
        self._git("read-tree", "--reset", "-u", snapshot, tree=place, GIT_INDEX_FILE=index)

    def _git(self, *arguments: str, tree: Path | None = None, **environment: str) -> str:
        tree = tree or self.tree
        who = {
            f"GIT_{role}_{part}": "bench@example.org"
            for role in ("AUTHOR", "COMMITTER")
            for part in ("NAME", "EMAIL")
        }
        return subprocess.run(
            ["git", *arguments],
            cwd=tree,
            env={
                **os.environ,
                **who,
                "GIT_DIR": str(self.directory / "git"),
                "GIT_WORK_TREE": str(tree),
                "GIT_CONFIG_GLOBAL": os.devnull,
                "GIT_CONFIG_SYSTEM": os.devnull,
                **environment,
            },
            check=True,
            capture_output=True,
            text=True,
        ).stdout
