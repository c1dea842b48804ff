"""Completion: the scripts are taken by their shells, and the program says what fits."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.kit import Holdfast, environment


def completed(holdfast: Holdfast, *words: str) -> list[str]:
    return holdfast.ok("__complete", *words).splitlines()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ro"], ["rollback"]),
        (["log", "--gr"], ["--graph"]),
        (["log", "fi"], ["fix-42"]),
        (["show", "--session", "bo"], ["bolder"]),
        (["show", "read: c"], ["read: completed"]),
        (["show", "fix-42"], ["fix-42@"]),
        (["rollback", "--scope", ""], ["all", "files", "state"]),
        (["--color", "never", "sta"], ["stats", "status"]),
        (["nonsense", ""], []),
    ],
)
def test_a_word_is_completed(project: Holdfast, words: list[str], expected: list[str]) -> None:
    assert completed(project, *words) == expected


def test_without_a_store_nothing_is_offered_and_nothing_fails(holdfast: Holdfast) -> None:
    assert completed(holdfast, "log", "") == []
    assert list(holdfast.directory.iterdir()) == []


def test_bash_completes_with_the_script(project: Holdfast) -> None:
    script = (
        'eval "$(holdfast completion bash)"; COMP_WORDS=(holdfast log fi); COMP_CWORD=2; '
        'COMP_LINE="holdfast log fi"; _holdfast; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=project.directory,
        env=environment(PATH=f"{Path(sys.executable).parent}:/usr/bin:/bin"),
        capture_output=True,
        text=True,
    )

    assert (done.stdout, done.stderr) == ("fix-42\n", "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_take_their_script(holdfast: Holdfast, shell: str) -> None:
    script = holdfast.ok("completion", shell)

    assert "holdfast __complete" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)
