"""How a session is opened: what the program asks for, checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from types import MappingProxyType
from typing import Any, Literal

from holdfast.core.codec import OnUnknown
from holdfast.errors import InvalidArgumentError
from holdfast.ids import new_id
from holdfast.model import Framework, checked_name
from holdfast.model.field_types import checked_framework
from holdfast.session.approval import Approval, checked_when
from holdfast.session.functions import named
from holdfast.session.lease import DEFAULT_LEASE
from holdfast.system import progress_bar
from holdfast.verbs.save import checked_context

OnDivergence = Literal["raise", "live"]
Progress = Callable[[int, int, str], object]
"""Told how many tasks are done, of how many, and which one is worked on."""


@dataclass(frozen=True)
class SessionOptions:
    """How a session is opened."""

    agent_id: str
    session_id: str
    state: Any = None
    context: dict[str, Any] = field(default_factory=dict)
    framework: Framework | None = None
    """Of the checkpoints it writes; None: that of the checkpoint it goes on from."""
    version: int | str | None = None
    lease_seconds: float = DEFAULT_LEASE
    takeover: bool = False
    on_divergence: OnDivergence = "raise"
    on_unknown: OnUnknown = "raise"
    """With "raw" a session is worked on without its classes, which stay what they are."""
    approval: Approval | None = None
    tools: Sequence[tuple[str, Callable[..., Any]]] = ()
    """Functions that may undo effects, each with the name by which stored data names it."""
    progress: Progress | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def session(self) -> tuple[str, str]:
        """The agent and the id of the session."""
        return self.agent_id, self.session_id


def options_of(
    agent_id: str,
    session_id: str | None,
    *,
    state: Any = None,
    context: dict[str, Any] | None = None,
    framework: Framework | str | None = None,
    version: int | str | None = None,
    lease_seconds: float = DEFAULT_LEASE,
    takeover: bool = False,
    on_divergence: str = "raise",
    approval: Any = None,
    approve_when: Any = None,
    approval_expires_seconds: float | None = None,
    approval_timeout: float | None = None,
    tools: Iterable[Callable[..., Any]] | Mapping[str, Callable[..., Any]] = (),
    progress: bool | Progress = False,
    metadata: Mapping[str, Any] = MappingProxyType({}),
) -> SessionOptions:
    """Return the options of a session, checked."""
    if on_divergence not in ("raise", "live"):
        raise InvalidArgumentError(f'on_divergence is "raise" or "live", not {on_divergence!r}')
    if not isinstance(lease_seconds, (int, float)) or not 0 < lease_seconds < 10**9:
        raise InvalidArgumentError(f"lease_seconds is a number above 0, not {lease_seconds!r}")
    deciding = None
    if approval is not None:
        deciding = Approval(
            approval, checked_when(approve_when), approval_expires_seconds, approval_timeout
        )
    return SessionOptions(
        agent_id=checked_name("agent_id", agent_id),
        session_id=new_id() if session_id is None else checked_name("session_id", session_id),
        state=state,
        context=checked_context(context),
        framework=None if framework is None else checked_framework("framework", framework),
        version=version,
        lease_seconds=float(lease_seconds),
        takeover=takeover,
        on_divergence=on_divergence,  # type: ignore[arg-type]
        approval=deciding,
        tools=named(tools),
        progress=_progress(progress),
        metadata=dict(metadata),
    )


def _progress(wanted: Any) -> Progress | None:
    if wanted is True:
        return progress_bar.show
    if wanted is False or wanted is None:
        return None
    if not callable(wanted) or iscoroutinefunction(wanted):
        raise InvalidArgumentError(
            "progress is True, False or a plain function of how many tasks are done, of how many, "
            f"and the name of the one that is worked on, not {wanted!r}"
        )
    return wanted  # type: ignore[no-any-return]
