"""The messages of S2 as the classes programs use: dataclass, pydantic, LangChain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.workloads.conversation import Message

Convert = Callable[[Message], Any]


@dataclass
class DataclassMessage:
    role: str
    content: str
    id: str
    metadata: dict[str, Any]


def dataclass_messages() -> Convert:
    return lambda message: DataclassMessage(**message)


def pydantic_messages() -> Convert:
    from benchmarks.workloads.typed_pydantic import PydanticMessage

    return lambda message: PydanticMessage(**message)


def langchain_messages() -> Convert:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    def convert(message: Message) -> Any:
        fields = {"content": message["content"], "id": message["id"]}
        if message["role"] == "assistant":
            return AIMessage(**fields, response_metadata=message["metadata"])
        if message["role"] == "tool":
            return ToolMessage(
                **fields, tool_call_id=f"call-{message['id']}", artifact=message["metadata"]
            )
        return HumanMessage(**fields, additional_kwargs=message["metadata"])

    return convert


KINDS: dict[str, Callable[[], Convert]] = {
    "pydantic": pydantic_messages,
    "dataclass": dataclass_messages,
    "LangChain": langchain_messages,
}
