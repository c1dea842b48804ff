"""The words behind ``holdfast hook``, read without argparse, which takes longer than all the rest.

The command line describes the same options, for its help.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

RECORD = "record"
MANAGING = ("install", "uninstall", "status", "-h", "--help")
"""What people do with the hook; everything else is an agent that tells an event."""
_VALUED = ("--from", "--map", "--agent", "--directory", "--store", "--color")
_PLAIN = ("--json", "--no-pager")
_LONGEST = 100


class HookOptions:
    """How an event is to be recorded."""

    def __init__(self) -> None:
        self.program = "claude-code"
        self.maps: list[str] = []
        self.agent: str | None = None
        self.directory: str | None = None
        self.store: str | None = None
        self.is_json = False


def is_event(words: Sequence[str]) -> bool:
    """Return whether the hook is run by an agent, and so may never forbid it anything.

    Also behind an option that nobody knows: it may be of a newer Holdfast, and take a value.
    """
    rest = iter(words)
    for word in rest:
        name, sign, _ = word.partition("=")
        if word in MANAGING:
            return False
        if name in _VALUED:
            if not sign:
                next(rest, None)
        elif name not in _PLAIN:
            return True
    return True


def read_options(words: Sequence[str]) -> HookOptions:
    """Return what the words of a recording hook say."""
    options = HookOptions()
    rest = iter(words)
    for word in rest:
        name, sign, value = word.partition("=")
        if name in _VALUED:
            given = value if sign else next(rest, None)
            if given is None:
                raise _wrong(f"{name} needs a value")
            _set(options, name, given)
        elif word == "--json":
            options.is_json = True
        elif word not in (RECORD, *_PLAIN):
            raise _wrong(f"holdfast hook takes no {word[:_LONGEST]}; see holdfast hook --help")
    return options


def _set(options: HookOptions, name: str, value: str) -> None:
    if name == "--from":
        options.program = value
    elif name == "--map":
        options.maps.append(value)
    elif name == "--agent":
        options.agent = value
    elif name == "--directory":
        options.directory = value
    elif name == "--store":
        options.store = value


def _wrong(text: str) -> Exception:
    from holdfast.errors import CodingAgentError

    return CodingAgentError(text)
