"""How a command ends: its exit codes, and which error leads to which."""

from __future__ import annotations

from typing import Any

from holdfast import errors

OK, FAILED, USAGE, NOT_FOUND, AMBIGUOUS, REFUSED, DAMAGED, UNREACHABLE = range(8)
INTERRUPTED = 130
BROKEN_PIPE = 141

MEANINGS = {
    OK: ("ok", "it was done"),
    FAILED: ("error", "something else went wrong; the message says what"),
    USAGE: ("usage", "the command was not written as it has to be"),
    NOT_FOUND: ("not_found", "no such checkpoint, session, question or store"),
    AMBIGUOUS: ("ambiguous", "what was named fits more than one"),
    REFUSED: (
        "refused",
        "it was not confirmed, another process works on it, or it would be unsafe",
    ),
    DAMAGED: ("damaged", "stored data is damaged or of a format that cannot be read"),
    UNREACHABLE: ("unreachable", "the store cannot be reached or written to"),
    INTERRUPTED: ("interrupted", "it was ended with Ctrl-C"),
    BROKEN_PIPE: ("broken_pipe", "whoever read the output has gone"),
}
"""Every exit code, with the word for it in JSON and what it says."""


class CommandError(errors.HoldfastError):
    """What goes wrong in the command line itself."""

    code = FAILED


class UsageError(CommandError):
    """The command was not written as it has to be."""

    code = USAGE


class NotFound(CommandError):
    """What was named is not there."""

    code = NOT_FOUND

    def __init__(self, message: str, suggestions: list[str] | None = None) -> None:
        self.suggestions = suggestions or []
        hint = f"; did you mean {' or '.join(self.suggestions)}?" if self.suggestions else ""
        super().__init__(message + hint)


class Ambiguous(CommandError):
    """What was named fits more than one."""

    code = AMBIGUOUS


class Refused(CommandError):
    """It was not confirmed, or would be unsafe."""

    code = REFUSED

    def __init__(self, message: str, unless: str | None = None) -> None:
        self.unless = unless
        """The option with which it is done all the same."""
        super().__init__(message)


class Fault(CommandError):
    """What nobody has thought of: a fault of the program, and no traceback at 2 a.m."""

    def __init__(self, error: Exception) -> None:
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        super().__init__(
            f"{said[:_LONGEST]}. This is a fault of holdfast: please report it, with what the "
            "same command says with HOLDFAST_DEBUG=1 in the environment"
        )


_LONGEST = 500

_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (errors.CheckpointNotFoundError, NOT_FOUND),
    (errors.AmbiguousIdError, AMBIGUOUS),
    (errors.CheckpointIntegrityError, DAMAGED),
    (errors.StoreFormatError, DAMAGED),
    (errors.StoreConnectionError, UNREACHABLE),
    (errors.StoreFullError, UNREACHABLE),
    (errors.StoreReadOnlyError, UNREACHABLE),
    (errors.SessionBusyError, REFUSED),
    (errors.SessionLostError, REFUSED),
    (errors.RollbackRefusedError, REFUSED),
    (errors.HandoffError, REFUSED),
    (errors.ContractError, REFUSED),
    (errors.InvalidArgumentError, USAGE),
)


def error_json(error: Exception) -> dict[str, Any]:
    """Return what went wrong, in JSON."""
    code = code_of(error) if isinstance(error, errors.HoldfastError) else FAILED
    said: dict[str, Any] = {"code": code, "kind": MEANINGS[code][0], "message": str(error)}
    suggestions, unless = getattr(error, "suggestions", None), _unless(error)
    if suggestions:
        said["suggestions"] = list(suggestions)
    if unless is not None:
        said["unless"] = unless
    return {"error": said}


def _unless(error: Exception) -> str | None:
    """Return the option with which what was refused is done all the same, if there is one."""
    if isinstance(error, errors.RollbackRefusedError):
        return "accept_irreversible"
    if isinstance(error, errors.SessionBusyError):
        return "takeover" if "takeover=True" in str(error) else None
    return error.unless if isinstance(error, Refused) else None


def code_of(error: errors.HoldfastError) -> int:
    """Return the exit code that tells of an error."""
    if isinstance(error, CommandError):
        return error.code
    return next((code for kind, code in _CODES if isinstance(error, kind)), FAILED)
