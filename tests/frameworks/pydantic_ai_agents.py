"""Agents of Pydantic AI whose model says what a script says."""

from collections.abc import Sequence
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from holdfast.adapters.pydantic_ai import HoldfastCapability


class PowerCut(BaseException):
    """Ends a run as a kill would."""


class Script:
    """A model that says the next of its answers: parts, a text, or an error that it raises."""

    def __init__(self, *answers: Any) -> None:
        self.answers = answers
        self.asked: list[list[ModelMessage]] = []
        self.model = FunctionModel(self._answer, stream_function=self._stream)

    def _next(self, messages: list[ModelMessage]) -> list[Any]:
        self.asked.append(list(messages))
        said = sum(isinstance(message, ModelResponse) for message in messages)
        answer = self.answers[said]
        if isinstance(answer, list) and answer and isinstance(answer[0], BaseException):
            raise answer.pop(0)
        if isinstance(answer, list):
            return answer
        return [TextPart(answer)] if isinstance(answer, str) else [answer]

    def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=self._next(messages))

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> Any:
        for index, part in enumerate(self._next(messages)):
            if isinstance(part, TextPart):
                for word in part.content.split(" "):
                    yield f"{word} "
            else:
                yield {
                    index: DeltaToolCall(
                        name=part.tool_name,
                        json_args=part.args_as_json_str(),
                        tool_call_id=part.tool_call_id,
                    )
                }


def call(name: str, call_id: str = "", **arguments: Any) -> ToolCallPart:
    return ToolCallPart(name, arguments, call_id or f"call_{name}")


def agent_of(
    script: Script, capability: HoldfastCapability, tools: Sequence[Any] = (), **options: Any
) -> Agent[Any, Any]:
    return Agent(script.model, tools=tools, capabilities=[capability], **options)


def answers_in(messages: Sequence[ModelMessage]) -> dict[str, Any]:
    """Return what calls gave, by their ids."""
    return {
        part.tool_call_id: part.content
        for message in messages
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    }


def said_in(messages: Sequence[ModelMessage]) -> list[str]:
    """Return the kinds of all parts, in order."""
    return [part.part_kind for message in messages for part in message.parts]
