"""What --json prints is what the published schemas say, for every command."""

import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from holdfast.cli.commands import COMMANDS, HIDDEN
from holdfast.cli.output.json_schemas import SHAPES, document
from tests.cli.kit import Holdfast


def strict(schema: Any) -> Any:
    """A schema that allows no field it does not name, so that none is added unnoticed."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: strict(value) for key, value in schema.items()}
    if "properties" in schema and "additionalProperties" not in schema:
        inner["additionalProperties"] = False
    return inner


def check(name: str, text: str) -> None:
    jsonschema.validate(json.loads(text), strict(document(name)))


READING = [
    ["status"],
    ["doctor"],
    ["sessions"],
    ["log", "--all"],
    ["log", "--graph"],
    ["log", "fix-42", "--messages"],
    ["show", "fix-42@"],
    ["show", "start", "--session", "fix-42"],
    ["show", "fix-42@", "--state", "messages"],
    ["show", "fix-42@", "--messages"],
    ["diff", "fix-42@", "bolder@"],
    ["diff", "fix-42@", "--effects"],
    ["replay", "fix-42"],
    ["bisect", "fix-42", "--python", "'fixed' not in state"],
    ["tasks", "fix-42@"],
    ["tasks", "bolder@"],
    ["effects", "fix-42"],
    ["pending"],
    ["inbox", "reviewer"],
    ["stats"],
    ["verify"],
    ["migrate"],
    ["prune", "--last", "1", "--dry-run"],
    ["gc", "--dry-run"],
    ["rollback", "start", "--session", "fix-42", "--dry-run"],
    ["adopt", "bolder", "--dry-run"],
    ["completion", "bash"],
]
WRITING = [
    ["init"],
    ["handoff", "tester", "bolder@"],
    ["handoff", "tester", "bolder@", "--to-framework", "strands", "--tool", "a=b"],
    ["continue", "langgraph", "bolder@"],
    ["fork", "bolder@"],
    ["rollback", "start", "--session", "fix-42", "--yes"],
    ["undo", "fix-42", "--yes"],
    ["snapshot", "-m", "kept"],
    ["restore", "kept", "--to", "copy"],
    ["restore", "kept", "--to", ".", "--dry-run"],
    ["export", "all.holdfast"],
    ["import", "all.holdfast"],
    ["hook", "install", "claude-code"],
    ["gc", "--grace", "0"],
    ["prune", "--last", "1", "--yes"],
]


ELSEWHERE = {"approve", "demo", "deny", "mcp", "resolve", "rewind", "ui", "watch", "wrap"}
"""Commands that need another process, or a call that waits: their own tests check their shapes."""


def test_every_command_is_checked_here_or_elsewhere() -> None:
    known = {name for name, command in COMMANDS.items() if command.group != HIDDEN}

    assert known == {arguments[0] for arguments in (*READING, *WRITING)} | ELSEWHERE


def test_commands_that_look_print_what_their_schemas_say(project: Holdfast) -> None:
    for arguments in READING:
        check(arguments[0], project.ok(*arguments, "--json"))


def test_commands_that_do_something_print_what_their_schemas_say(project: Holdfast) -> None:
    for arguments in WRITING:
        check(arguments[0], project.ok(*arguments, "--json"))


def test_lines_of_watch_are_as_their_schema_says(project: Holdfast) -> None:
    for line in project.ok("watch", "--timeout", "0.1", "--json").splitlines():
        check("watch", line)


def test_a_hook_and_an_error_are_as_their_schemas_say(project: Holdfast) -> None:
    told = json.dumps({"session_id": "s", "hook_event_name": "Stop", "cwd": "."})

    check("hook", project("hook", "--json", given=told).out)
    start = json.dumps({"session_id": "s", "hook_event_name": "SessionStart", "cwd": "."})
    check("hook", project("hook", "--json", given=start).out)
    check("error", project("show", "nothing", "--json").err)
    check("error", project("log", "fix-24", "--json").err)


@pytest.mark.parametrize("name", [c.name for c in COMMANDS.values() if c.group != HIDDEN])
def test_every_command_has_a_schema(name: str) -> None:
    if name != "mcp":  # what it prints is the protocol
        jsonschema.Draft202012Validator.check_schema(document(name))
        assert name in SHAPES
