"""Bundles through pipes, results that print as summaries, packages that are not there."""

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import Keep, SyncClient
from holdfast.errors import HoldfastError, MissingPackageError
from holdfast.verbs.verify import Damage, Verified
from tests.cli.kit import Holdfast, environment


def test_a_bundle_goes_through_a_pipe(project: Holdfast, tmp_path: Path) -> None:
    command = f"{sys.executable} -m holdfast"
    done = subprocess.run(
        f"{command} export - | {command} import - --store sqlite:///other.db",
        shell=True,
        cwd=project.directory,
        env=environment(),
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    assert "15 checkpoints brought into" in done.stdout
    assert "15 checkpoints written" in done.stderr
    assert not (project.directory / "-").exists()


def test_a_bundle_is_nothing_for_a_terminal(project: Holdfast) -> None:
    written = project.on_terminal("export", "-")
    read = project.on_terminal("import", "-")

    assert (written.code, read.code) == (2, 2)
    assert "nothing for a terminal" in written.out
    assert "no bundle comes from a terminal" in read.out


def test_a_bundle_and_json_do_not_mix_on_standard_output(project: Holdfast) -> None:
    done = project("export", "-", "--json")

    assert (done.code, done.out) == (2, "")


def test_results_print_as_summaries(tmp_path: Path) -> None:
    with SyncClient.memory() as client:
        for number in range(500):
            client.save("a", execution_state={"n": number}, session_id="s")
        pruned = client.prune(Keep(last=10))
        tree = client.tree("a", "s")

    for each in (pruned, tree):
        assert len(repr(each)) < 300
    assert str(pruned).startswith("removed 490 checkpoints of ")
    assert "and 487 more), kept 10" in str(pruned)


def test_a_verification_prints_as_a_summary() -> None:
    damaged = [Damage(f"checkpoint-{number}", "chunk 00 is missing") for number in range(500)]
    verified = Verified(1000, damaged, damaged[:2])

    assert repr(verified) == (
        "<Verified: 1,000 checkpoints verified, 500 damaged; checkpoint-0 (chunk 00 is missing); "
        "checkpoint-1 (chunk 00 is missing); checkpoint-2 (chunk 00 is missing); and 497 more; "
        "2 notes lead nowhere>"
    )


def test_a_restore_prints_as_a_summary(tmp_path: Path) -> None:
    from holdfast import Workspace

    folder = tmp_path / "w"
    folder.mkdir()
    with SyncClient.memory() as client, Workspace(folder, store=client) as workspace:
        empty = workspace.snapshot()
        for number in range(300):
            (folder / f"file-{number}").write_text("x")
        changed = workspace.diff(empty)
        restored = workspace.restore(empty)

    assert len(repr(restored)) < 400
    assert "300 removed" in str(restored)
    assert repr(changed) == "<TreeDiff: 300 added>"


def test_gc_tells_what_waits_for_its_grace(project: Holdfast) -> None:
    assert "holdfast gc frees their room" in project.ok("prune", "--last", "1", "--yes")

    said = project.ok("gc")
    told = project.json("gc")

    assert "younger than 1h" in said
    assert "holdfast gc --grace 0" in said
    assert told["waiting_chunks"] > 0
    assert told["grace_seconds"] == 3600
    assert "younger" not in project.ok("gc", "--grace", "0")
    assert project.json("gc")["waiting_chunks"] == 0


@pytest.mark.parametrize(
    ("package", "code"),
    [
        ("redis", "SyncClient.open('redis://127.0.0.1:1')"),
        ("psycopg", "SyncClient.open('postgresql://127.0.0.1:1/x')"),
        ("obstore", "SyncClient.open('memory://?blobs=s3://bucket')"),
        ("langgraph", "import holdfast.adapters.langgraph"),
        ("inotify_simple", "Workspace('.', store='memory://', watch=True)"),
    ],
)
def test_a_missing_package_is_an_error_of_ours_that_names_the_extra(
    package: str, code: str, tmp_path: Path
) -> None:
    script = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from holdfast import MissingPackageError, SyncClient, Workspace\n"
        f"try:\n    {code}\n"
        "except MissingPackageError as error:\n    print(error.package, error.extra, error)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True
    )

    assert done.stdout.startswith(f"{package} "), done.stderr
    assert "pip install 'holdfast[" in done.stdout


def test_a_missing_package_is_an_import_error_too() -> None:
    error = MissingPackageError("it", "redis", "redis")

    assert isinstance(error, HoldfastError)
    assert isinstance(error, ImportError)
    assert (error.name, error.extra) == ("redis", "redis")


@pytest.mark.parametrize(
    ("package", "arguments"),
    [
        ("redis", ["log", "--store", "redis://127.0.0.1:1"]),
        ("redis", ["doctor", "--store", "redis://127.0.0.1:1"]),
        ("psycopg", ["log", "--store", "postgresql://127.0.0.1:1/x"]),
        ("psycopg", ["doctor", "--store", "postgresql://127.0.0.1:1/x"]),
        ("psycopg", ["import", "langgraph-postgres", "postgresql://127.0.0.1:1/x"]),
        ("langgraph", ["import", "langgraph-sqlite", "some.db"]),
        ("obstore", ["init", "--store", "sqlite:///a.db?blobs=s3://bucket"]),
    ],
)
def test_the_command_line_says_what_to_install(
    package: str, arguments: list[str], holdfast: Holdfast
) -> None:
    hidden = holdfast.directory / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(f"import sys; sys.modules[{package!r}] = None")
    (holdfast.directory / "some.db").touch()

    done = holdfast(*arguments, PYTHONPATH=str(hidden))

    assert done.code in (1, 7)
    assert f"pip install 'holdfast[{'s3' if package == 'obstore' else ''}" in done.err + done.out
