"""The state of flows: ``@persist(HoldfastFlowPersistence(url=...))``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crewai.flow.async_feedback.types import PendingFeedbackContext
from crewai.flow.persistence.base import FlowPersistence
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, field_serializer
from pydantic_core import PydanticSerializationError

from holdfast.adapters.kept import KeptSessions
from holdfast.adapters.opening import AdapterStore
from holdfast.client import SyncClient
from holdfast.errors import AdapterError, InvalidArgumentError
from holdfast.model import Framework
from holdfast.stores.shared.secrets import masked


class HoldfastFlowPersistence(FlowPersistence):
    """Keeps the state of a flow after each method: its id is the session.

    >>> from holdfast.adapters.crewai import HoldfastFlowPersistence
    >>> persistence = HoldfastFlowPersistence(url="memory://")
    >>> persistence.save_state("flow-1", "fetch", {"id": "flow-1", "found": 3})
    >>> persistence.load_state("flow-1")
    {'id': 'flow-1', 'found': 3}
    >>> persistence.close()
    """

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    persistence_type: str = "HoldfastFlowPersistence"
    url: str | None = Field(repr=False)
    """Of the store; None for that of HOLDFAST_URL."""
    agent_id: str = Framework.CREWAI.value

    _store: AdapterStore = PrivateAttr()
    _kept: KeptSessions = PrivateAttr()

    @field_serializer("url")
    def _shown(self, url: str | None) -> str | None:
        """Write the URL into CrewAI's definitions of flows without what is secret in it."""
        return None if url is None else masked(url)

    def model_post_init(self, context: Any) -> None:
        """Open the store; what is wrong with it is raised as it is."""
        self._store = AdapterStore.given(None, self.url)
        self._kept = KeptSessions(self._store, Framework.CREWAI, self.agent_id)

    def init_db(self) -> None:
        """Do nothing: the store is there when it is opened."""

    def save_state(
        self, flow_uuid: str, method_name: str, state_data: dict[str, Any] | BaseModel
    ) -> None:
        """Keep the state after a method; a question that waits for an answer stays."""
        state = _plain_state(state_data)

        def change(before: Any) -> dict[str, Any]:
            return {"flow_state": state, "pending": _part(before, "pending", flow_uuid)}

        self._store.sync.run(self._kept.update(flow_uuid, change, name=method_name))

    def load_state(self, flow_uuid: str) -> dict[str, Any] | None:
        """Return the state of a flow as the head of its session has it."""
        head = self._store.sync.run(self._kept.head(flow_uuid))
        return None if head is None else _part(head.state, "flow_state", flow_uuid)

    def save_pending_feedback(
        self,
        flow_uuid: str,
        context: PendingFeedbackContext,
        state_data: dict[str, Any] | BaseModel,
    ) -> None:
        """Keep the state of a flow that waits for a person, and what it asks."""
        state = _plain_state(state_data)
        pending = {"context": context.to_dict(), "flow_state": state}
        kept = {"flow_state": state, "pending": pending}
        name = f"{context.method_name} asks"
        self._store.sync.run(self._kept.update(flow_uuid, lambda _: kept, name=name))

    def load_pending_feedback(
        self, flow_uuid: str
    ) -> tuple[dict[str, Any], PendingFeedbackContext] | None:
        """Return the state of a flow that waits for a person, and what it asks."""
        head = self._store.sync.run(self._kept.head(flow_uuid))
        pending = None if head is None else _part(head.state, "pending", flow_uuid)
        if pending is None:
            return None
        return pending["flow_state"], PendingFeedbackContext.from_dict(pending["context"])

    def clear_pending_feedback(self, flow_uuid: str) -> None:
        """Keep that the question was answered."""
        head = self._store.sync.run(self._kept.head(flow_uuid))
        if head is None or _part(head.state, "pending", flow_uuid) is None:
            return

        def change(before: Any) -> dict[str, Any]:
            return {"flow_state": _part(before, "flow_state", flow_uuid), "pending": None}

        self._store.sync.run(self._kept.update(flow_uuid, change, name="answered"))

    @property
    def client(self) -> SyncClient:
        """The client of the store, to look at what was kept."""
        return self._store.client

    def close(self) -> None:
        """Close the store."""
        self._store.close()


def _plain_state(state: Any) -> dict[str, Any]:
    """Return the state of a flow as data, with the types that Holdfast keeps."""
    if isinstance(state, BaseModel):
        try:
            return state.model_dump(mode="json")
        except PydanticSerializationError:
            state = state.model_dump(mode="python")
    if isinstance(state, Mapping):
        return {key: _without_models(each) for key, each in state.items()}
    raise InvalidArgumentError(
        f"the state of a flow is a dict or a pydantic model, not {type(state).__name__}"
    )


def _without_models(value: Any) -> Any:
    """Return data in which pydantic models are dicts, as CrewAI's own persistence has them."""
    if isinstance(value, BaseModel):
        return _plain_state(value)
    if isinstance(value, Mapping):
        return {key: _without_models(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_without_models(each) for each in value])
    return value


def _part(state: Any, name: str, flow_uuid: str) -> Any:
    if state is None:
        return None
    if isinstance(state, dict) and isinstance(state.get("flow_state"), dict):
        return state.get(name)
    raise AdapterError(
        f"session {flow_uuid!r} holds no state of a flow: it was kept by something else (a crew, "
        "a conversation), or is damaged; use another id for the flow"
    )
