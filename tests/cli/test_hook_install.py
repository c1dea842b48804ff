"""holdfast hook install, uninstall and status: the hook in the settings of programs."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from holdfast.cli.output.json_schemas import document
from holdfast.coding_agents.claude_code.settings import EVENTS
from holdfast.coding_agents.installing import INSTALLABLE, hook_command
from tests.cli.kit import Done, Holdfast, environment

OURS = shlex.join(hook_command("claude-code"))


class Project(Holdfast):
    """A project of a user who has a home, and no coding agent on the PATH."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory / "site")
        self.home = directory / "home"
        for folder in (self.home, self.directory):
            folder.mkdir()
        self.settings = self.directory / ".claude" / "settings.json"
        self.local = self.directory / ".claude" / "settings.local.json"
        self.users = self.home / ".claude" / "settings.json"

    def _python(self, *arguments: str, given: str = "", **variables: str) -> Done:
        return super()._python(*arguments, given=given, **{**self.variables, **variables})

    @property
    def variables(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "PATH": "/usr/bin:/bin",
            "HOLDFAST_HOOK_HELPER": "off",
            "CLAUDE_CONFIG_DIR": "",
            "CODEX_HOME": "",
            "XDG_CONFIG_HOME": "",
            "XDG_STATE_HOME": "",
        }

    def tells(self, event: str, file: Path | None = None, **more: Any) -> list[int]:
        """Run the hooks of an event in a shell, as Claude Code does, elsewhere and with no PATH."""
        told = {"session_id": "s1", "hook_event_name": event, "cwd": str(self.directory), **more}
        codes = []
        for entry in json.loads((file or self.settings).read_text())["hooks"].get(event, []):
            for hook in entry["hooks"]:
                done = subprocess.run(
                    ["/bin/sh", "-c", hook["command"]],
                    cwd="/",
                    env=environment(**{**self.variables, "PATH": "/nowhere"}),
                    input=json.dumps(told).encode(),
                    capture_output=True,
                )
                assert done.stdout == b""
                codes.append(done.returncode)
        return codes

    def status(self, *arguments: str) -> tuple[int, Any]:
        done = self("hook", "status", *arguments, "--json")
        said = json.loads(done.out)
        jsonschema.validate(said, document("hook"))
        return done.code, said

    def put(self, file: Path, text: str | bytes) -> None:
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def hook(command: str, **more: Any) -> dict[str, Any]:
    return {"hooks": [{"type": "command", "command": command, **more}]}


def test_events_arrive_from_anywhere_and_with_any_path(project: Project) -> None:
    project.ok("hook", "install", "claude-code")

    assert project.tells("SessionStart") == [0]
    assert project.tells("UserPromptSubmit", prompt="Make it blue") == [0]
    assert project.tells("PostToolUse", tool_name="Bash", tool_input={"command": "ls"}) == [0]
    assert project.tells("PostToolUseFailure", tool_name="Bash", error="no") == [0]
    assert project.tells("Stop") == [0]

    assert [each["step_name"] for each in project.json("log")["checkpoints"]] == [
        *("agent: done", "Bash (failed)", "Bash ls", "you: Make it blue")
    ]
    code, said = project.status("claude-code")
    assert (code, said["ok"]) == (0, True)
    assert (said["programs"][0]["last_event"]["name"]) == "Stop"
    assert (said["programs"][0]["last_event"]["count"]) == 5
    assert "events arrive, 5 so far, the last " in project.ok("hook", "status")


def test_a_hook_whose_environment_is_gone_harms_nobody_and_is_told_of(project: Project) -> None:
    gone = project.directory / "my env" / "bin" / "holdfast"
    project.put(
        project.settings,
        json.dumps({"hooks": {"Stop": [hook(shlex.join([str(gone), "hook"]), timeout=9)]}}),
    )
    assert project.tells("Stop") == [127]

    done = project("hook", "status", "claude-code")

    assert done.code == 1
    assert f"{gone} is not there: `holdfast hook install claude-code` brings it up" in done.out
    assert project.json("hook", "install", "claude-code")["changed"]
    assert project.tells("Stop") == [0]
    stop = json.loads(project.settings.read_text())["hooks"]["Stop"]
    assert stop == [hook(OURS, timeout=9)]


def test_a_script_whose_python_is_gone_is_told_of(project: Project) -> None:
    script = project.directory / "holdfast"
    script.write_text("#!/gone/bin/python\n")
    script.chmod(0o755)
    project.put(project.settings, json.dumps({"hooks": {"Stop": [hook(f"{script} hook")]}}))

    faults = project.status("claude-code")[1]["programs"][0]["faults"]

    assert "/gone/bin/python, which is not there any more" in faults[0]


def test_what_stands_in_settings_is_looked_at_and_never_run(project: Project) -> None:
    """They may have come with the project, and so be anybody's."""
    script = project.directory / "holdfast"
    script.write_text(f"#!/bin/sh\ntouch {project.directory}/was-run\n")
    script.chmod(0o755)
    project.put(project.settings, json.dumps({"hooks": {"Stop": [hook(f"{script} hook")]}}))

    project("hook", "status")
    project.ok("hook", "install", "claude-code")
    project.ok("hook", "uninstall", "claude-code")

    assert not (project.directory / "was-run").exists()


def test_an_older_hook_is_brought_up_to_date_and_keeps_what_it_was_given(project: Project) -> None:
    old = "holdfast hook --from claude-code --store sqlite:///my.db --agent 'my coder'"
    project.put(project.settings, json.dumps({"hooks": {"Stop": [hook("say so"), hook(old)]}}))
    assert "lacks SessionStart, " in project("hook", "status").out

    assert "brought up to date" in project.ok("hook", "install", "claude-code")

    hooks = json.loads(project.settings.read_text())["hooks"]
    ours = f"{OURS} --store sqlite:///my.db --agent 'my coder'"
    assert hooks["Stop"] == [hook("say so"), hook(ours)]
    assert list(hooks) == ["Stop", *(event for event in EVENTS if event != "Stop")]
    assert not project.json("hook", "install", "claude-code")["changed"]
    assert project.json("hook", "install", "claude-code", "--agent", "other")["changed"]
    assert "--store sqlite:///my.db --agent other" in project.settings.read_text()


SETTINGS = [
    '{"model": "opus"}',
    '{"model":"opus","permissions":{"allow":["Read"]}}\n',
    '{\n    "permissions": {\n        "allow": [\n            "Bash(ls:*)"\n        ]\n    }\n}\n',
    '{\n  "hooks": {\n    "Stop": [\n      {\n        "matcher": "Edit"\n      }\n    ]\n  }\n}',
    '{\r\n\t"z": 1,\r\n\t"é": "ü",\r\n\t"a": [\r\n\t\t1.5,\r\n\t\tnull\r\n\t]\r\n}\r\n',
    '{\n "broken": "\\ud800"\n}\n',
]


@pytest.mark.parametrize("before", SETTINGS)
def test_settings_keep_their_order_and_style(project: Project, before: str) -> None:
    project.put(project.settings, before)

    project.ok("hook", "install", "claude-code")
    after = project.settings.read_bytes().decode()
    assert not project.json("hook", "install", "claude-code")["changed"]
    assert project.settings.read_bytes().decode() == after
    project.ok("hook", "uninstall", "claude-code")

    hooks = json.loads(after)["hooks"]
    assert all(hooks[each][-1]["hooks"][0]["command"] == OURS for each in EVENTS)
    assert list(json.loads(after)) == list(dict.fromkeys([*json.loads(before), "hooks"]))
    assert project.settings.read_bytes().decode() == before


def test_the_mode_of_settings_stays_and_so_does_a_link_to_them(project: Project) -> None:
    real = project.directory / "dotfiles.json"
    real.write_text('{"model": "opus"}')
    real.chmod(0o640)
    project.settings.parent.mkdir()
    project.settings.symlink_to(real)

    project.ok("hook", "install", "claude-code")

    assert project.settings.is_symlink()
    assert "hooks" in json.loads(real.read_text())
    assert real.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(project.settings.parent)) == ["settings.json"]


def test_what_others_add_later_stays(project: Project) -> None:
    project.ok("hook", "install", "claude-code")
    settings = json.loads(project.settings.read_text())
    settings["model"] = "opus"
    settings["hooks"]["Stop"].append(hook("say done"))
    settings["hooks"]["PostToolUse"][0]["hooks"].append({"type": "command", "command": "lint"})
    project.put(project.settings, json.dumps(settings, indent=4))

    project.ok("hook", "uninstall", "claude-code")

    assert json.loads(project.settings.read_text()) == {
        "hooks": {
            "PostToolUse": [{"matcher": "*", **hook("lint")}],
            "Stop": [hook("say done")],
        },
        "model": "opus",
    }


@pytest.mark.parametrize(
    "text",
    [
        *("{broken", "[]", '{"hooks": []}', '{"hooks": {"Stop": 1}}'),
        *('{"a": 1} // mine', '{"a": 1, "a": 2}', '{"n": 1e999}', '{"n": NaN}', "[" * 100_000),
    ],
)
def test_settings_that_are_not_as_expected_are_left_alone(project: Project, text: str) -> None:
    project.put(project.settings, text)

    for action in ("install", "uninstall"):
        done = project("hook", action, "claude-code")
        assert (done.code, str(project.settings) in done.err) == (1, True)
        assert "nothing was changed" in done.err
    assert project.settings.read_text() == text
    assert not (project.directory / ".holdfast").exists()
    code, said = project.status("claude-code")
    assert (code, str(project.settings) in said["programs"][0]["advice"][0]) == (1, True)
    assert str(project.settings) in project("hook", "status", "claude-code").out


def test_settings_elsewhere_that_cannot_be_read_do_not_stand_in_the_way(project: Project) -> None:
    project.put(project.users, "{ // comments\n}")

    project.ok("hook", "install", "claude-code")

    assert project.tells("Stop") == [0]
    code, said = project.status("claude-code")
    assert (code, said["programs"][0]["works"]) == (0, True)
    assert str(project.users) in said["programs"][0]["advice"][0]


def test_settings_that_were_made_are_removed_and_what_was_recorded_stays(project: Project) -> None:
    said = [
        project.json("hook", action, "claude-code", "--local")["changed"]
        for action in ("install", "install", "uninstall", "uninstall")
    ]

    assert said == [True, False, True, False]
    assert not project.local.exists()
    assert "is not there" in project.ok("hook", "uninstall", "claude-code", "--local")
    assert (project.directory / ".holdfast" / "holdfast.db").exists()


def test_uninstalling_clears_the_project_and_says_what_is_left(project: Project) -> None:
    for flags in ([], ["--local"], ["--user"]):
        project.ok("hook", "install", "claude-code", *flags)
    assert "costs twice the time" in project.ok("hook", "install", "claude-code")

    said = project.json("hook", "uninstall", "claude-code")

    assert said["removed"] == [str(project.settings), str(project.local)]
    assert said["left"] == [str(project.users)]
    told = project.ok("hook", "uninstall", "claude-code")
    assert "holdfast hook uninstall claude-code --user" in told
    project.ok("hook", "uninstall", "claude-code", "--user")
    assert not project.users.exists()


def test_the_hook_of_a_user_works_in_projects_that_have_no_store(project: Project) -> None:
    project.ok("hook", "install", "claude-code", "--user")
    assert not (project.directory / ".holdfast").exists()

    assert project.tells("Stop", project.users) == [0]

    assert project.json("log")["checkpoints"][0]["step_name"] == "agent: done"
    assert project.status("claude-code")[0] == 0


def test_the_settings_of_a_home_directory_are_those_of_its_user(project: Project) -> None:
    done = project("hook", "install", "claude-code", "--directory", str(project.home))

    assert done.code == 2
    assert "--user" in done.err
    assert not project.users.exists()


def test_another_directory_may_be_named(project: Project) -> None:
    other = project.directory.with_name("other site")
    other.mkdir()

    said = project.json("hook", "install", "claude-code", "--directory", str(other))

    assert said["path"] == str(other / ".claude" / "settings.json")
    assert (other / ".holdfast").is_dir()
    assert not (project.directory / ".holdfast").exists()


def test_a_password_is_not_written_where_others_read_it(project: Project) -> None:
    url = "sqlite:///kept.db?password=hunter2"
    done = project("hook", "install", "claude-code", "--store", url)

    assert done.code == 5
    assert "HOLDFAST_URL" in done.err
    assert "--local" in done.err
    assert "hunter2" not in done.err + done.out
    assert not project.settings.exists()


def test_a_store_that_was_named_is_the_one_that_is_used(project: Project) -> None:
    project.ok("hook", "install", "claude-code", "--store", "sqlite:///kept.db")

    assert project.tells("Stop") == [0]

    assert project.json("log", "--store", "sqlite:///kept.db")["checkpoints"]


def test_what_is_on_a_path_with_blanks_is_run(project: Project) -> None:
    """A python without a script beside it, in a directory with modules that hide Python's own."""
    bin_folder = project.directory.with_name("my env") / "bin"
    bin_folder.mkdir(parents=True)
    python = bin_folder / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    script = (
        f"import sys; sys.executable = {str(python)!r}; from holdfast.cli import main; "
        "sys.exit(main(['hook', 'install', 'claude-code']))"
    )
    assert project.within(script).code == 0

    command = json.loads(project.settings.read_text())["hooks"]["Stop"][0]["hooks"][0]["command"]
    assert shlex.split(command) == [
        *(str(python), "-P", "-m", "holdfast", "hook", "--from", "claude-code")
    ]
    hiding = project.directory / "json.py"
    hiding.write_text("raise SystemExit(9)\n")
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=project.directory,
        env=environment(**project.variables),
        input=json.dumps({"session_id": "s", "hook_event_name": "Stop", "cwd": "."}).encode(),
    )
    assert done.returncode == 0
    hiding.unlink()
    assert project.status("claude-code")[0] == 0


@pytest.mark.parametrize("name", INSTALLABLE)
def test_every_program_has_its_hook_put_in_and_taken_out(project: Project, name: str) -> None:
    said = project.json("hook", "install", name)
    jsonschema.validate(said, document("hook"))
    file = Path(said["path"])
    assert OURS.split()[0] in file.read_text()
    assert said["command"] == hook_command(name)
    assert not project.json("hook", "install", name)["changed"]
    code, status = project.status(name)
    assert (code, status["programs"][0]["installed"]) == (1, True)
    assert status["programs"][0]["faults"] == []

    removed = project.json("hook", "uninstall", name)

    jsonschema.validate(removed, document("hook"))
    assert removed["removed"] == [str(file)]
    assert not file.exists()
    assert project.status(name)[1]["programs"][0]["installed"] is False


@pytest.mark.parametrize("name", INSTALLABLE)
def test_the_hook_of_every_program_keeps_its_store(project: Project, name: str) -> None:
    project.ok("hook", "install", name, "--store", "sqlite:///kept.db")

    assert not project.json("hook", "install", name)["changed"]


def test_programs_that_seem_to_be_used_are_offered(project: Project) -> None:
    nothing = project("hook", "install")
    (project.directory / ".gemini").mkdir()
    (project.home / ".codex").mkdir()
    some = project("hook", "install")

    assert (nothing.code, nothing.err.count("holdfast hook install")) == (2, len(INSTALLABLE))
    assert some.code == 2
    assert "holdfast hook install gemini-cli" in some.err
    assert "holdfast hook install codex" in some.err
    assert "claude-code" not in some.err
    said = json.loads(project("hook", "install", "--json").out)
    jsonschema.validate(said, document("hook"))
    assert said["programs"] == ["codex", "gemini-cli"]
    assert "Codex: not installed; holdfast hook install codex" in project("hook", "status").out


@pytest.mark.parametrize(
    "words",
    [
        ["install", "claude-code", "--user", "--local"],
        ["install", "codex", "--local"],
        ["install", "aider"],
        ["install", "claude-code", "--directory", "/no/such/directory"],
        ["uninstall"],
        ["status", "generic"],
    ],
)
def test_what_cannot_be_meant_is_refused(project: Project, words: list[str]) -> None:
    done = project("hook", *words)

    assert done.code == 2, done.err
    assert not (project.directory / ".holdfast").exists()


def test_nothing_is_approved_where_nothing_has_to_be(project: Project) -> None:
    done = project("hook", "install", "claude-code", "--trust")

    assert done.code == 2
    assert "leave --trust" in done.err
    assert not project.settings.exists()


def test_a_status_without_anything_says_what_to_do(project: Project) -> None:
    done = project("hook", "status")

    assert (done.code, done.err) == (1, "")
    assert "no hook is installed here" in done.out
    assert not (project.directory / ".holdfast").exists()


def test_a_hook_of_which_nothing_came_yet_is_told_apart(project: Project) -> None:
    project.ok("hook", "install", "claude-code")

    done = project("hook", "status")

    assert done.code == 1
    assert "installed, but no event has come yet" in done.out
    assert "start claude here" in done.out


def test_events_that_went_wrong_are_told_of_until_one_goes_well(project: Project) -> None:
    project.ok("hook", "install", "claude-code")
    database = project.directory / ".holdfast" / "holdfast.db"
    kept = database.read_bytes()
    for each in database.parent.glob("holdfast.db*"):
        each.unlink()
    database.write_bytes(b"this is no database, " * 100)
    assert project.tells("Stop") == [1]

    code, said = project.status("claude-code")
    assert (code, said["ok"], said["programs"][0]["works"]) == (1, False, False)
    assert said["store_problem"]
    assert "the last event was not recorded" in said["programs"][0]["faults"][0]
    assert said["programs"][0]["problems"][0]["count"] == 1

    database.write_bytes(kept)
    assert project.tells("Stop") == [0]
    code, said = project.status("claude-code")
    assert (code, said["programs"][0]["works"]) == (0, True)
    assert len(said["programs"][0]["problems"]) == 1


def test_checkpoints_of_a_hook_that_kept_no_log_are_events_too(project: Project) -> None:
    project.ok("hook", "install", "claude-code")
    project.ok("snapshot", "--agent", "claude-code", "--session", "s", "-m", "Bash ls")

    code, said = project.status("claude-code")

    assert code == 0
    event = said["programs"][0]["last_event"]
    assert (event["name"], event["count"]) == ("Bash ls", None)


def test_a_project_that_is_shared_is_told_of(project: Project) -> None:
    (project.directory / ".git").mkdir()

    assert "--local installs the hook for yourself" in project.ok("hook", "install", "claude-code")
    project.ok("hook", "uninstall", "claude-code")
    assert "may be shared" not in project.ok("hook", "install", "claude-code", "--local")
