"""What every program's settings can do: take the hook in, and let it go."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

Scope = Literal["project", "local", "user"]


class Settings(Protocol):
    """How the hook gets into a program.

    Nothing of the user's is lost; a file that is not understood is refused with a
    CodingAgentError and left as it is.
    """

    scopes: tuple[Scope, ...]
    """For whom it can be installed; the first is the default."""

    def file(self, scope: Scope, folder: Path) -> Path:
        """Return the file that says which hooks there are."""

    def install(self, file: Path, command: Sequence[str]) -> bool:
        """Put the hook in; return whether that changed anything."""

    def uninstall(self, file: Path) -> bool:
        """Take the hook out; return whether that changed anything."""

    def installed(self, file: Path) -> list[str] | None:
        """Return the command of the hook that is there; None if there is none."""

    def advice(self, file: Path, folder: Path) -> list[str]:
        """Return what the user still has to do so that the program runs the hook."""


@runtime_checkable
class Approving(Protocol):
    """Settings of a program that runs a hook only once its user has approved it."""

    def trust(self, file: Path, folder: Path) -> list[str]:
        """Approve the hook, for a user who has said so; return at which events."""
