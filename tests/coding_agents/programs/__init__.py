"""The coding agents that are installed for the tests, one module each."""

from __future__ import annotations

from importlib import import_module

from tests.coding_agents.kit import RealProgram

CLASSES = {
    "claude-code": "claude_code.ClaudeCode",
    "codex": "codex.Codex",
    "gemini-cli": "gemini_cli.GeminiCli",
    "opencode": "opencode.OpenCode",
}


def real_program(name: str) -> type[RealProgram]:
    """Return the class of a program."""
    module, _, of_class = CLASSES[name].partition(".")
    found: type[RealProgram] = getattr(import_module(f"{__name__}.{module}"), of_class)
    return found
