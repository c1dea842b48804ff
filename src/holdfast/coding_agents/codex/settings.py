"""The hook in the settings of Codex: ``hooks.json``, of a project or of a user."""

from __future__ import annotations

from pathlib import Path

from holdfast.coding_agents.codex import trust
from holdfast.coding_agents.codex.rollout_files import home
from holdfast.coding_agents.json_settings import JsonHooks
from holdfast.coding_agents.settings import Scope
from holdfast.errors import CodingAgentError

EVENTS = {
    "UserPromptSubmit": None,
    "PostToolUse": "*",
    "Stop": None,
    "SubagentStop": None,
    "Interrupt": None,
}
"""Before anything is done, after everything that was or went wrong, and at each end."""
_SECONDS = 60
"""Codex itself would wait ten minutes for a hook."""


class CodexSettings(JsonHooks):
    """The hooks of a project, and of a user for all projects."""

    scopes: tuple[Scope, ...] = ("project", "user")

    def __init__(self) -> None:
        super().__init__("codex", "Codex", EVENTS, timeout=_SECONDS)

    def file(self, scope: Scope, folder: Path) -> Path:
        """Return the file that says which hooks there are."""
        return (home() if scope == "user" else folder / ".codex") / "hooks.json"

    def advice(self, file: Path, folder: Path) -> list[str]:
        """Return what the user still has to do: Codex runs only hooks that were approved."""
        if self.installed(file) is None:
            return []
        try:
            known = trust.known_hooks(file, folder)
        except CodingAgentError:
            return [_approve(file)]  # there is no Codex yet, or one that does not tell
        if not known:
            return [trust.unread(file, folder), _approve(file)]
        off = [hook.event for hook in known if not hook.is_enabled]
        return [
            *([] if all(hook.is_trusted for hook in known) else [_approve(file)]),
            *(
                [f"the hook is switched off at {', '.join(off)}: see /hooks in codex"]
                if off
                else []
            ),
        ]

    def trust(self, file: Path, folder: Path) -> list[str]:
        """Approve the hook in Codex, for a user who has said so; return the events."""
        return trust.trust(file, folder)


def _approve(file: Path) -> str:
    flag = " --user" if file.parent == home() else ""
    return (
        "Codex runs a hook only once you have approved it, and says nothing where you have not: "
        'start codex and choose "Trust all and continue" (/hooks shows them), or run '
        f"`holdfast hook install codex{flag} --trust`"
    )


SETTINGS = CodexSettings()
