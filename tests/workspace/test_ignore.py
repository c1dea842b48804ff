"""The rules of .gitignore mean what git says they mean."""

import os
import random
import subprocess
from pathlib import Path

import pytest

from holdfast import SyncClient
from holdfast.workspace import Workspace
from tests.programs import program
from tests.workspace.kit import put

CASES = [
    "*.log\n!keep.log",
    "build/",
    "/build",
    "build",
    "a/b",
    "/a/*\n!/a/b",
    "a/**",
    "**/b",
    "a/**/b",
    "a/**/b/",
    "**",
    "*\n!*/\n!*.py",
    "*\n!a\n!a/**",
    "doc/*.txt",
    "?.py",
    "[ab].py",
    "[!a].py",
    "[^a].py",
    "[a-c]?.py",
    "[[:digit:]]",
    "[]]",
    "[a",
    "\\#file\n#file",
    "\\!file",
    "trailing  ",
    "trailing\\ ",
    "a//b",
    "/",
    "!",
    "a\\",
    "\\*.py",
    "a*b*c",
    "***/b",
    "a**b",
    "*/b",
    "\ufeffa",
    "a\r\nb\r\n",
    "!a.py\na.py",
    "a.py\n!a.py",
    "a/\n!a/b",
    "a/*\n!a/b\na/b/c",
]
NAMES = [
    "a",
    "b",
    "c",
    "a.py",
    "b.py",
    "x.log",
    "keep.log",
    "build",
    "doc",
    "1",
    "]",
    "[a",
    "#file",
]
NAMES += ["!file", "trailing", "trailing ", "a\\", "*.py", "abc", "axbxc", "n.txt", "ab.py"]


@pytest.fixture(scope="module")
def git() -> None:
    program("git", package="git")


def grow(root: Path, chance: random.Random, depth: int = 3) -> None:
    for name in chance.sample(NAMES, 9):
        if depth and chance.random() < 0.4:
            (root / name).mkdir()
            grow(root / name, chance, depth - 1)
        else:
            put(root / name, b"")


def seen_by_git(root: Path) -> set[bytes]:
    subprocess.run(["git", "init", "-q"], cwd=root, check=True, env=_environment())
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        env=_environment(),
    ).stdout
    return set(filter(None, listed.split(b"\x00")))


def _environment() -> dict[str, str]:
    return os.environ | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


def seen_by_us(root: Path) -> set[bytes]:
    with SyncClient.memory() as client, Workspace(root, client) as workspace:
        tree = workspace.snapshot()
        return {os.fsencode(e.path) for e in workspace.ls(tree) if e.kind != "directory"}


@pytest.mark.parametrize("text", CASES)
def test_a_pattern_means_what_git_says(text: str, root: Path, git: None) -> None:
    grow(root, random.Random(text))
    put(root / ".gitignore", text)

    assert seen_by_us(root) == seen_by_git(root)


@pytest.mark.parametrize("seed", range(25))
def test_nested_files_of_any_patterns_mean_what_git_says(seed: int, root: Path, git: None) -> None:
    chance = random.Random(seed)
    grow(root, chance)
    directories = [root, *(path for path in root.rglob("*") if path.is_dir())]
    for directory in chance.sample(directories, min(4, len(directories))):
        lines = [line for case in chance.sample(CASES, 3) for line in case.splitlines()]
        put(directory / ".gitignore", "\n".join(lines) + "\n")

    assert seen_by_us(root) == seen_by_git(root)
