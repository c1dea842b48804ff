"""What a coding agent did that no rewind takes back: it reached beyond the files of the project."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.model import CheckpointInfo

_SHELLS = {
    *("bash", "shell", "shell_command", "exec_command", "write_stdin", "local_shell"),
    *("run_shell_command", "unified_exec", "container.exec", "powershell"),
}
_REACHING = re.compile(
    r"\b(?:git\s+push|gh|glab|curl|wget|ssh|scp|sftp|rsync|ftp|nc|sendmail|mail"
    r"|(?:npm|pnpm|yarn|cargo|poetry|uv|gem)\s+publish|twine\s+upload|docker|podman|kubectl|helm"
    r"|terraform|tofu|ansible(?:-playbook)?|aws|gcloud|az|heroku|fly(?:ctl)?|vercel|netlify"
    r"|psql|mysql|mongosh?|redis-cli|sqlcmd|systemctl|crontab)\b"
)
_SERVED = ("mcp_", "MCP:")
"""How the names of tools begin that are served over MCP: mcp__ in most, mcp_ in Gemini CLI."""


def is_shell(info: CheckpointInfo) -> bool:
    """Return whether a step was a command in a shell, which may do anything."""
    tool = info.metadata.get("tool")
    return isinstance(tool, str) and tool.lower() in _SHELLS


def reaches_outside(info: CheckpointInfo) -> bool:
    """Return whether a step shows by its name that it reached beyond the files of the project.

    >>> from types import SimpleNamespace
    >>> from holdfast.coding_agents.outside import reaches_outside
    >>> push = SimpleNamespace(metadata={"tool": "Bash"}, step_name="Bash git push origin main")
    >>> reaches_outside(push)
    True
    >>> mail = SimpleNamespace(metadata={"tool": "mcp_mail_send"}, step_name="mcp_mail_send")
    >>> reaches_outside(mail)
    True
    """
    tool = info.metadata.get("tool")
    if isinstance(tool, str) and tool.startswith(_SERVED):
        return True
    return is_shell(info) and _REACHING.search(info.step_name or "") is not None
