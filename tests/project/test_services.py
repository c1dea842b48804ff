"""What installs the servers judges by whether they start, not by what the package manager says."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "install-services"
SHELL = ("sh", "dirname", "mktemp", "rm", "tail", "chmod", "cat")
THERE = ("postgres", "initdb", "pgbouncer", "faketime", "git", "openssl", "chromium")


class Machine:
    """A machine without a Redis server, whose other programs are made up."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name in SHELL:
            (directory / name).symlink_to(str(shutil.which(name)))
        for name in THERE:
            self.program(name, "exit 0")
        self.program("id", "echo 0")
        self.program("getent", "exit 2")
        self.program("useradd", 'echo "useradd $*" >> told')

    def program(self, name: str, text: str) -> None:
        path = self.directory / name
        path.write_text(f"#!{self.directory}/sh\n{text}\n")
        path.chmod(0o755)

    def run(self, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.directory / "sh", SCRIPT],
            cwd=self.directory,
            env={"PATH": str(self.directory), **variables},
            capture_output=True,
            text=True,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_server_that_starts_will_do_though_its_package_is_not_configured(
    machine: Machine,
) -> None:
    here = machine.directory
    makes_it = f"echo '#!{here}/sh' > {here}/redis-server; chmod +x {here}/redis-server"
    machine.program("apt-get", f'case "$1" in install) {makes_it}; exit 100;; esac')

    done = machine.run(CI="true")

    assert (done.returncode, done.stderr) == (0, "")


def test_the_user_that_packages_need_is_made_first(machine: Machine) -> None:
    machine.program("apt-get", 'echo "apt-get $1" >> told')

    machine.run()

    told = (machine.directory / "told").read_text().splitlines()
    assert told[0].startswith("useradd --system")
    assert told[0].endswith("postgres")
    assert told[-1] == "apt-get install"


def test_a_server_that_cannot_be_had_is_named_and_the_rest_runs(machine: Machine) -> None:
    machine.program("apt-get", "exit 100")

    done = machine.run()

    assert done.returncode == 0
    assert "what needs them is not run: redis-server" in done.stderr


def test_a_user_who_may_install_nothing_is_told_what_is_not_run(machine: Machine) -> None:
    machine.program("id", "echo 1000")
    machine.program("apt-get", "echo apt-get >> told")

    done = machine.run()

    assert done.returncode == 0
    assert "what needs them is not run: redis-server" in done.stderr
    assert not (machine.directory / "told").exists()


def test_in_ci_a_server_that_cannot_be_had_is_a_failure(machine: Machine) -> None:
    machine.program("apt-get", "exit 100")

    done = machine.run(CI="true")

    assert done.returncode == 1
    assert "redis-server" in done.stderr
