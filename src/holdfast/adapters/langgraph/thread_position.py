"""Where in LangGraph's threads a config points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import get_checkpoint_id

from holdfast.adapters.langgraph.checkpoint_ids import record_id
from holdfast.errors import InvalidArgumentError
from holdfast.model import checked_name
from holdfast.verbs.thread_names import session_of, thread_of


@dataclass(frozen=True, slots=True)
class ThreadPosition:
    """A thread, a namespace in it, and a checkpoint there if one is named."""

    thread_id: str
    namespace: str = ""
    checkpoint_id: str | None = None

    @classmethod
    def of(cls, config: RunnableConfig) -> Self:
        """Return the position that a config names; one without a thread is refused."""
        configurable = config.get("configurable") or {}
        if configurable.get("thread_id") is None:
            raise InvalidArgumentError(
                "the config names no thread: pass {'configurable': {'thread_id': ...}}"
            )
        return cls(
            checked_name("thread_id", str(configurable["thread_id"])),
            configurable.get("checkpoint_ns") or "",
            get_checkpoint_id(config) or None,
        )

    @classmethod
    def of_session(cls, session_id: str) -> Self:
        """Return the thread and namespace that a session holds."""
        return cls(*thread_of(session_id))

    @property
    def session_id(self) -> str:
        return session_of(self.thread_id, self.namespace)

    def record_id(self, checkpoint_id: str) -> str:
        """Return the Holdfast id of one of LangGraph's checkpoints in this namespace."""
        return record_id(self.thread_id, self.namespace, checkpoint_id)

    def config(self, checkpoint_id: str) -> RunnableConfig:
        """Return the config of a checkpoint in this namespace."""
        return {
            "configurable": {
                "thread_id": self.thread_id,
                "checkpoint_ns": self.namespace,
                "checkpoint_id": checkpoint_id,
            }
        }
