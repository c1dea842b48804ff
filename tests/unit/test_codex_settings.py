"""The hook in hooks.json of Codex, and the approval that Codex asks its users for.

A Codex that answers as one may imagine stands in for what the real one never does; what the real
one does is in ``tests/coding_agents/test_codex.py``.
"""

import json
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.coding_agents.codex import app_server, trust
from holdfast.coding_agents.codex.settings import EVENTS, SETTINGS
from holdfast.coding_agents.installing import hook_command
from holdfast.errors import CodingAgentError

OURS = [*hook_command("codex"), "--agent", "my agent"]
COMMAND = shlex.join(OURS)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user of Codex who has no program of that name yet."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


@pytest.fixture
def project(home: Path) -> Path:
    folder = home / "project"
    folder.mkdir()
    return folder


def answering(home: Path, body: str) -> None:
    """Put a ``codex`` on the PATH that is a program in Python; ``said`` is what it is asked."""
    file = home / "bin" / "codex"
    file.parent.mkdir(exist_ok=True)
    file.write_text(
        f"#!{sys.executable}\n"
        "import json, sys, time\n"
        "def answer(**more):\n"
        "    print(json.dumps({'id': said.get('id'), **more}), flush=True)\n"
        "for line in sys.stdin:\n"
        "    said = json.loads(line)\n"
        "    if said['method'] == 'initialized': continue\n"
        "    if said['method'] == 'initialize':\n"
        "        print('no JSON, {')\n"
        "        answer(result={})\n"
        "        continue\n" + "".join(f"    {each}\n" for each in body.splitlines())
    )
    file.chmod(0o755)


def listed(file: Path, **more: Any) -> dict[str, Any]:
    return {
        "key": f"{file}:stop:0:0",
        "eventName": "stop",
        "command": COMMAND,
        "sourcePath": str(file),
        "currentHash": "sha256:1",
        "trustStatus": "untrusted",
        "enabled": True,
        **more,
    }


def listing(*hooks: Any) -> str:
    return f"answer(result={ {'data': [{'hooks': list(hooks)}]}!r})"


def installed(project: Path) -> Path:
    file = SETTINGS.file("project", project)
    SETTINGS.install(file, OURS)
    return file


def test_the_hook_is_at_every_event_that_matters_with_a_time_limit(project: Path) -> None:
    file = installed(project)

    hooks = json.loads(file.read_text())["hooks"]
    assert list(hooks) == list(EVENTS)
    assert hooks["Stop"] == [
        {"hooks": [{"type": "command", "command": COMMAND, "timeout": 60}]},
    ]
    assert hooks["PostToolUse"][0]["matcher"] == "*"
    assert SETTINGS.installed(file) == OURS
    assert not SETTINGS.install(file, OURS)


def test_what_a_user_has_in_the_file_stays_to_the_byte(project: Path) -> None:
    file = SETTINGS.file("project", project)
    file.parent.mkdir()
    mine = '{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"say done","timeout":5}]}]}}'
    file.write_text(mine)

    SETTINGS.install(file, OURS)
    assert json.loads(file.read_text())["hooks"]["Stop"][0] == json.loads(mine)["hooks"]["Stop"][0]
    SETTINGS.uninstall(file)

    assert file.read_text() == mine


@pytest.mark.parametrize("text", ["[]", '{"hooks": []}', '{"hooks": {"Stop": {}}}', "{", "// x"])
def test_a_file_that_is_not_understood_is_left_alone(project: Path, text: str) -> None:
    file = SETTINGS.file("project", project)
    file.parent.mkdir()
    file.write_text(text)

    with pytest.raises(CodingAgentError, match=r"hooks\.json"):
        SETTINGS.install(file, OURS)

    assert file.read_text() == text


def test_the_user_s_own_file_is_where_codex_is_at_home(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert SETTINGS.file("project", project) == project / ".codex/hooks.json"
    assert SETTINGS.file("user", project) == home / "codex/hooks.json"
    monkeypatch.delenv("CODEX_HOME")
    assert SETTINGS.file("user", project) == home / "home/.codex/hooks.json"


def test_without_a_codex_the_approval_is_explained(project: Path) -> None:
    file = installed(project)

    (advice,) = SETTINGS.advice(file, project)

    assert "Trust all and continue" in advice
    assert "`holdfast hook install codex --trust`" in advice
    with pytest.raises(CodingAgentError, match="not on the PATH"):
        trust.trust(file, project)


def test_the_advice_for_a_user_s_own_file_says_so(home: Path, project: Path) -> None:
    file = SETTINGS.file("user", project)
    SETTINGS.install(file, OURS)

    assert "`holdfast hook install codex --user --trust`" in SETTINGS.advice(file, project)[0]


def test_where_there_is_no_hook_there_is_nothing_to_do(project: Path) -> None:
    assert SETTINGS.advice(SETTINGS.file("project", project), project) == []


def test_a_hook_that_is_approved_needs_nothing(home: Path, project: Path) -> None:
    file = installed(project)
    answering(home, listing(listed(file, trustStatus="trusted")))

    assert SETTINGS.advice(file, project) == []
    assert trust.trust(file, project) == []


def test_a_hook_that_was_changed_since_or_switched_off_is_told(home: Path, project: Path) -> None:
    file = installed(project)
    answering(home, listing(listed(file, trustStatus="modified", enabled=False)))

    approve, switched_off = SETTINGS.advice(file, project)

    assert "approved" in approve
    assert "switched off at Stop" in switched_off


def test_a_project_that_is_not_trusted_is_told_and_not_trusted_for_the_user(
    home: Path, project: Path
) -> None:
    file = installed(project)
    answering(home, listing())

    assert "only in projects that you trust" in SETTINGS.advice(file, project)[0]
    with pytest.raises(CodingAgentError, match="only in projects that you trust"):
        trust.trust(file, project)


def test_a_codex_whose_hooks_are_switched_off_is_told(home: Path, project: Path) -> None:
    file = SETTINGS.file("user", project)
    SETTINGS.install(file, OURS)
    answering(home, listing())

    assert "hooks = false under [features]" in SETTINGS.advice(file, project)[0]


def test_hooks_of_others_are_never_approved(home: Path, project: Path) -> None:
    file = installed(project)
    wrote = home / "wrote.json"
    answering(
        home,
        "if said['method'] == 'hooks/list':\n"
        f"    import os; status = 'trusted' if os.path.exists({str(wrote)!r}) else 'untrusted'\n"
        f"    hooks = {[listed(file)]!r}\n"
        "    hooks[0]['trustStatus'] = status\n"
        f"    hooks.append({listed(file, key='k1', command='rm -rf /')!r})\n"
        f"    hooks.append({listed(project / 'other.json', key='k2')!r})\n"
        "    answer(result={'data': [{'hooks': hooks}]})\n"
        "else:\n"
        f"    open({str(wrote)!r}, 'w').write(json.dumps(said))\n"
        "    answer(result={'status': 'ok'})",
    )

    assert trust.trust(file, project) == ["Stop"]

    said = json.loads(wrote.read_text())
    assert said["method"] == "config/batchWrite"
    assert [edit["value"] for edit in said["params"]["edits"]] == [
        {f"{file}:stop:0:0": {"trusted_hash": "sha256:1"}}
    ]


def test_a_program_of_the_same_name_is_not_approved(home: Path, project: Path) -> None:
    file = installed(project)
    answering(home, listing(listed(file, command="./holdfast hook --from codex")))

    with pytest.raises(CodingAgentError, match=r"runs \./holdfast, which is not this Holdfast"):
        trust.trust(file, project)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("answer(error={'message': 'no such method'})", "no such method"),
        ("answer(result=7)", "refused hooks/list"),
        ("sys.exit(3)", "ended before it answered"),
        ("print('x' * 100, flush=True)\nsys.exit(0)", "ended before it answered"),
        ("time.sleep(60)", "did not answer hooks/list"),
    ],
)
def test_a_codex_that_does_not_answer_is_said_so_and_ended(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch, body: str, why: str
) -> None:
    monkeypatch.setattr(app_server, "_SECONDS", 1.0)
    monkeypatch.setattr(app_server, "_GRACE", 0.2)
    file = installed(project)
    answering(home, body)
    begun = time.monotonic()

    with pytest.raises(CodingAgentError, match=why):
        trust.trust(file, project)

    assert time.monotonic() - begun < 10
    assert len(SETTINGS.advice(file, project)) == 1


@pytest.mark.parametrize(
    "data",
    [
        None,
        7,
        [None],
        [{"hooks": 7}],
        [{"hooks": [None, {}, {"key": 1}]}],
        [{"hooks": [{"key": "k", "command": None}]}],
    ],
)
def test_an_answer_of_another_shape_has_no_hooks(home: Path, project: Path, data: Any) -> None:
    file = installed(project)
    answering(home, f"answer(result={ {'data': data}!r})")

    assert trust.known_hooks(file, project) == []


def test_what_codex_still_does_not_trust_is_no_success(home: Path, project: Path) -> None:
    file = installed(project)
    answering(home, listing(listed(file)))

    with pytest.raises(CodingAgentError, match="still does not trust the hook at Stop"):
        trust.trust(file, project)
