"""What an address of the HTTP interface is, and what it is asked with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from holdfast.cli.exits import UsageError
from holdfast.core.short_repr import brief

if TYPE_CHECKING:
    from holdfast.client import SyncClient

_NOTHING: Any = object()
DEFAULT_LIMIT = 100
MOST = 500
"""How many rows a page has at most."""


@dataclass(frozen=True)
class Content:
    """An answer that is no JSON: bytes of a file, or a text."""

    body: bytes
    media_type: str
    download_name: str | None = None


class Parameters:
    """What a request gives by name, in its address or in its body; each is checked when read."""

    def __init__(self, given: Mapping[str, Any], several: Mapping[str, Sequence[str]]) -> None:
        self._given = given
        self._several = several
        self.tools: Sequence[Callable[..., Any]] = ()
        """Functions that undo calls: the server's, and never named by a request."""

    def check(self, known: Collection[str]) -> None:
        """Refuse what nobody here knows: it was meant to say something."""
        others = sorted(self._given.keys() - set(known))
        if others:
            what = f"it takes {', '.join(known)}" if known else "it takes nothing"
            raise UsageError(f"there is no {brief(others[0])} here: {what}")

    def raw(self, name: str, default: Any = None) -> Any:
        """Return what was given, as it is."""
        return self._given.get(name, default)

    def text(self, name: str, default: str | None = None) -> str | None:
        """Return a text; an empty one is none."""
        value = self._given.get(name)
        if value is None or value == "":
            return default
        if not isinstance(value, str):
            raise UsageError(f"{name} is a text, not {brief(value)}")
        return value

    def needed(self, name: str) -> str:
        """Return a text that has to be given."""
        value = self.text(name)
        if value is None:
            raise UsageError(f"{name} has to be given")
        return value

    def number(
        self, name: str, default: int | None = None, most: int = 2**53, least: int = 0
    ) -> int | None:
        """Return a whole number within its bounds."""
        value = self._given.get(name)
        if value is None or value == "":
            return default
        if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 17:
            value = int(value)
        if type(value) is not int or not least <= value <= most:
            raise UsageError(f"{name} is a number from {least} to {most}, not {brief(value)}")
        return value

    @property
    def limit(self) -> int:
        """How many rows are wanted at most."""
        return self.number("limit", DEFAULT_LIMIT, MOST, least=1) or DEFAULT_LIMIT

    def flag(self, name: str) -> bool:
        """Return whether something is wanted."""
        value = self._given.get(name, False)
        if value in ("", False, "0", "false"):
            return False
        if value in (True, "1", "true"):
            return True
        raise UsageError(f"{name} is true or false, not {brief(value)}")

    def choice(self, name: str, among: Sequence[str], default: str) -> str:
        """Return one of some words."""
        value = self.text(name) or default
        if value not in among:
            words = ", ".join(filter(None, among))
            raise UsageError(f"{name} is one of {words}, not {brief(value)}")
        return value

    def many(self, name: str) -> list[str]:
        """Return a text that may be given several times."""
        return list(self._several.get(name, ()))

    def moment(self, name: str) -> datetime | None:
        """Return a time; one without a zone is UTC."""
        value = self.text(name)
        if value is None:
            return None
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            raise UsageError(
                f"{name} is a time such as 2026-11-18T10:00Z, not {brief(value)}"
            ) from None
        return found if found.tzinfo else found.replace(tzinfo=UTC)


Answer = Callable[["SyncClient", Parameters], "dict[str, Any] | Content"]


@dataclass(frozen=True)
class Route:
    """An address below ``api/v1``, what answers there, and what the description says of it."""

    path: str
    answer: Answer
    summary: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    """What can be given, by name, in a few words each."""
    schema: Mapping[str, Any] | None = None
    """The JSON Schema of the answer; None for content that is no JSON."""
    writes: bool = False
    """Whether it is a POST that changes something."""
