"""An agent of smolagents that calls two tools at once, writes a file, and answers."""

import asyncio
from typing import Any, ClassVar

from smolagents import ChatMessage, LogLevel, Model, Tool, ToolCallingAgent
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole

from holdfast.adapters.smolagents import Checkpoints
from tests.frameworks import kit
from tests.frameworks.reference import ANSWER, CALLS, PROMPT, RESULTS, SAID


def calls(*given: dict[str, Any], said: str | None = None) -> ChatMessage:
    """Return an answer of a model that calls tools."""
    made = [
        ChatMessageToolCall(
            function=ChatMessageToolCallFunction(name=call["name"], arguments=call["arguments"]),
            id=call["id"],
            type="function",
        )
        for call in given
    ]
    return ChatMessage(role=MessageRole.ASSISTANT, content=said, tool_calls=made)


class Scripted(Model):
    """A model that answers by how often it has been answered before."""

    def __init__(self, *answers: ChatMessage) -> None:
        super().__init__(model_id="scripted")
        self.answers = answers
        self.asked: list[Any] = []

    def generate(self, messages: Any, **options: Any) -> ChatMessage:
        kit.point("model")
        self.asked.append(messages)
        said = sum(message.role == MessageRole.TOOL_RESPONSE for message in messages)
        answer = self.answers[min(said, len(self.answers) - 1)]
        kit.point("model done")
        return answer


class Depth(Tool):
    name = "depth"
    description = "Tell how deep a harbour is."
    inputs: ClassVar[dict[str, Any]] = {
        "harbour": {"type": "string", "description": "its name"},
        "unit": {"type": "string", "description": "of the answer"},
    }
    output_type = "string"

    def forward(self, harbour: str, unit: str) -> str:
        kit.point("tool depth")
        kit.point("tool depth done")
        return RESULTS["call_depth"]


class Tide(Tool):
    name = "tide"
    description = "Tell whether the water rises."
    inputs: ClassVar[dict[str, Any]] = {"harbour": {"type": "string", "description": "its name"}}
    output_type = "string"

    def forward(self, harbour: str) -> str:
        kit.point("tool tide")
        kit.point("tool tide done")
        return RESULTS["call_tide"]


class Note(Tool):
    name = "note"
    description = "Write a line into the harbour's book."
    inputs: ClassVar[dict[str, Any]] = {"line": {"type": "string", "description": "to add"}}
    output_type = "string"

    def forward(self, line: str) -> str:
        place = kit.workspace()
        assert place is not None
        kit.point("tool note")
        with (place / "book.txt").open("a", encoding="utf-8") as book:
            book.write(f"{line}\n")
        kit.point("tool note done")
        return "written"


def harbour_agent() -> ToolCallingAgent:
    model = Scripted(
        calls(*CALLS, said=SAID),
        calls({"id": "call_note", "name": "note", "arguments": {"line": "12,5 m ✓"}}),
        calls({"id": "call_end", "name": "final_answer", "arguments": {"answer": ANSWER}}),
    )
    return ToolCallingAgent(
        tools=[Depth(), Tide(), Note()],
        model=model,
        max_tool_threads=1,  # one after the other, so that it is known which have ended
        verbosity_level=LogLevel.OFF,
    )


def work(url: str, session_id: str) -> Any:
    agent = harbour_agent()
    with Checkpoints(session_id=session_id, url=url, workspace=kit.workspace()) as checkpoints:
        answer = checkpoints.run(agent, PROMPT)
    place = kit.workspace()
    assert place is not None
    numbers = [step["step_number"] for step in agent.memory.get_succinct_steps()[1:]]
    return [str(answer), numbers, (place / "book.txt").read_text("utf-8")]


async def main(url: str, session_id: str) -> Any:
    return await asyncio.to_thread(work, url, session_id)
