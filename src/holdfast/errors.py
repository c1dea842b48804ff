"""Every error Holdfast raises.

HoldfastError
├── CheckpointNotFoundError        no checkpoint has that id (or it has expired)
├── AmbiguousIdError               an id prefix fits more than one checkpoint
├── CheckpointConflictError        a checkpoint with that id exists already
├── CheckpointIntegrityError       stored bytes do not match their checksum, or cannot be read
├── SerializationError             a value cannot be kept; names its path and the remedy
│   └── UnknownTypeError           a stored class is not available to this process
├── SchemaMigrationError           it is of a newer version, or no migration leads from its own
├── InvalidArgumentError           an argument is of the wrong type or out of range
├── MissingPackageError            a package that is needed for this is not installed
├── HandoffError                   an offer cannot be accepted, settled or renewed (any more)
├── ContractError                  a state does not fit the contract of a handoff
├── RunError                       a run cannot go on as asked
│   ├── SessionBusyError           another process works on the session
│   ├── SessionLostError           another process took the session over meanwhile
│   ├── DivergenceError            after a resume the program did other than what was recorded
│   ├── UnknownEffectError         nobody knows whether a call took place: decide first
│   ├── RollbackRefusedError       it would go back past what cannot be undone
│   ├── TaskError                  a plan that cannot be carried out
│   ├── StillWaitingError          nobody has decided of a call yet
│   └── ApprovalDeniedError        a call was not allowed
├── WorkspaceError                 a directory cannot be captured, or put back
├── StoreError                     the store could not do what was asked
│   ├── StoreConnectionError       it cannot be opened or reached
│   ├── StoreClosedError           the client was closed
│   ├── StoreFullError             no space is left
│   ├── StoreReadOnlyError         it may not be written to
│   └── StoreFormatError           it was written by a newer Holdfast, or is not a Holdfast store
├── RefusedError                   a store may not write a commit as it is; for who asks stores
│   ├── MissingBaseError           chunks were left out that are gone: send all of them
│   ├── MissingParentError         the parent of the record is not there
│   ├── NoteExistsError            a note of that key is there already
│   ├── FencedError                another has taken over
│   └── NotTheHeadError            the session went on meanwhile
├── AdapterError                   a framework adapter could not translate
└── CodingAgentError               an event or the settings of a coding agent are not as known
    └── TranscriptError            its conversation is not as known
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast._lazy import OLD_ERRORS, renamed


class HoldfastError(Exception):
    """Base of every error that Holdfast raises."""


class CheckpointNotFoundError(HoldfastError, LookupError):
    """No checkpoint has this id, or it has expired."""

    def __init__(self, checkpoint_id: str, hint: str = "") -> None:
        self.checkpoint_id = checkpoint_id
        super().__init__(
            f"no checkpoint {checkpoint_id!r}: "
            + (hint or "it was never saved here, or it has expired or been removed")
        )


class AmbiguousIdError(HoldfastError, LookupError):
    """An id prefix fits more than one checkpoint."""

    def __init__(self, prefix: str, candidates: list[str]) -> None:
        self.prefix = prefix
        self.candidates = candidates
        super().__init__(
            f"{prefix!r} fits several checkpoints ({', '.join(candidates)}, …): give more"
        )


class CheckpointConflictError(HoldfastError):
    """A checkpoint with this id exists already; checkpoints are never overwritten."""

    def __init__(self, checkpoint_id: str) -> None:
        self.checkpoint_id = checkpoint_id
        super().__init__(
            f"checkpoint {checkpoint_id!r} exists already and checkpoints are immutable: "
            "save a new one, with this one as its parent"
        )


class CheckpointIntegrityError(HoldfastError):
    """Stored bytes are damaged, incomplete or were altered."""

    def __init__(self, checkpoint_id: str | None, reason: str) -> None:
        self.checkpoint_id = checkpoint_id
        self.reason = reason
        subject = f"checkpoint {checkpoint_id!r}" if checkpoint_id else "stored data"
        super().__init__(f"{subject} is damaged: {reason}")


class SerializationError(HoldfastError, TypeError):
    """A value cannot be kept; the message names its path and what to do."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path}: {problem}")


class UnknownTypeError(SerializationError):
    """A stored class is not available to this process, so its value is not revived."""

    def __init__(self, path: str, type_name: str, why: str, remedy: str = "") -> None:
        self.type_name = type_name
        remedy = remedy or (
            "import its module first, register_type(...) it, "
            'or restore with on_unknown="raw" to get its fields'
        )
        super().__init__(path, f"{type_name} {why}; {remedy}")


class SchemaMigrationError(HoldfastError):
    """It was saved by a newer Holdfast, or no migration leads from its version to the current."""


class InvalidArgumentError(HoldfastError, ValueError):
    """An argument is of the wrong type or out of range."""


class MissingPackageError(HoldfastError, ImportError):
    """A package that is needed for this is not installed; ``extra`` is what to install it with."""

    def __init__(self, what: str, package: str, extra: str | None = None) -> None:
        self.package = package
        self.extra = extra
        wanted = f"'holdfast[{extra}]'" if extra else package
        super().__init__(f"{what} needs the package {package}: pip install {wanted}", name=package)


class HandoffError(HoldfastError):
    """An offer is taken, settled or none; the message says by whom and what to do."""

    def __init__(self, checkpoint_id: str, reason: str) -> None:
        self.checkpoint_id = checkpoint_id
        self.reason = reason
        super().__init__(f"the offer {checkpoint_id!r} {reason}")


@dataclass(frozen=True, slots=True)
class Problem:
    """One place where a state does not fit a contract."""

    path: str
    expected: str
    came: str

    def __str__(self) -> str:
        return f"{self.path}: expected {self.expected}, got {self.came}"


class ContractError(HoldfastError, ValueError):
    """A state does not fit the contract of a handoff; nothing was written."""

    def __init__(self, contract: str, problems: Sequence[Problem]) -> None:
        self.contract = contract
        self.problems = list(problems)
        self.path = self.problems[0].path
        shown = "; ".join(map(str, self.problems[:5]))
        more = f"; and {len(self.problems) - 5} more" if len(self.problems) > 5 else ""
        super().__init__(f"the state does not fit the contract {contract}: {shown}{more}")


class RunError(HoldfastError):
    """A run cannot go on as asked."""


class SessionBusyError(RunError):
    """Another process works on the session."""


class SessionLostError(RunError):
    """Another process took the session over; nothing more is written by this one."""


class DivergenceError(RunError):
    """After a resume the program did other than what was recorded."""


class UnknownEffectError(RunError):
    """A call was begun and its end is not recorded; it may have taken place or not."""


class RollbackRefusedError(RunError):
    """A rollback would go back past what cannot be undone; ``effects`` lists it."""

    def __init__(self, message: str, effects: Sequence[object] = ()) -> None:
        self.effects = list(effects)
        super().__init__(message)


class TaskError(RunError):
    """A plan that cannot be carried out."""


class StillWaitingError(RunError):
    """Nobody has decided of a call yet: run the program again later."""


class ApprovalDeniedError(RunError):
    """A call was not allowed; ``reason`` says why, if a reason was given."""

    def __init__(self, tool: str, reason: str | None = None) -> None:
        self.tool = tool
        self.reason = reason
        super().__init__(f"{tool} was not allowed" + (f": {reason}" if reason else ""))


class WorkspaceError(HoldfastError):
    """A directory cannot be captured, or not be put back."""


class StoreError(HoldfastError):
    """The store could not do what was asked."""


class StoreConnectionError(StoreError, ConnectionError):
    """The store cannot be opened or reached."""


class StoreClosedError(StoreError):
    """The client was closed; open a new one."""

    def __init__(self, store: str) -> None:
        super().__init__(f"{store} is closed: open a new client to go on")


class StoreFullError(StoreError):
    """No space is left where the store lives; nothing was written."""


class StoreReadOnlyError(StoreError):
    """The store may not be written to; nothing was written."""


class StoreFormatError(StoreError):
    """The store was written by a newer Holdfast, or is not a Holdfast store at all."""


class RefusedError(HoldfastError):
    """The store may not write this as it is; whoever asked knows what to do instead."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or type(self).__doc__)


class MissingBaseError(RefusedError):
    """The base of a commit is gone, so all its chunks have to be sent."""


class MissingParentError(RefusedError):
    """The parent of a commit is not in the store."""


class NoteExistsError(RefusedError):
    """A note of a commit has a key that its scope has already; ``note`` is the one refused."""

    def __init__(self, note: Any) -> None:
        super().__init__(f"{note.scope} has a note {note.key!r} already")
        self.note = note


class FencedError(RefusedError):
    """The note is there that a commit may not come after: another has taken over."""

    def __init__(self, fence: tuple[str, str]) -> None:
        super().__init__(f"{fence[0]} has a note {fence[1]!r}")
        self.fence = fence


class NotTheHeadError(RefusedError):
    """Something else was written on the session since what a commit wants to follow."""


class AdapterError(HoldfastError):
    """A framework adapter could not translate a state."""


class CodingAgentError(HoldfastError):
    """An event, or the settings, of a coding agent are not as known: nothing was changed."""


class TranscriptError(CodingAgentError):
    """The conversation of a coding agent is not as known, and so cannot be cut or written."""


if TYPE_CHECKING:
    ApprovalDenied = ApprovalDeniedError
    StillWaiting = StillWaitingError
else:
    __getattr__ = renamed(__name__, OLD_ERRORS)
