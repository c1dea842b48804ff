"""The reference conversation in Pydantic AI, and going on with one."""

from pydantic_ai import Agent
from pydantic_ai.messages import BinaryContent, ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from holdfast.adapters.pydantic_ai import HoldfastCapability
from tests.frameworks import reference
from tests.frameworks.kit import point


async def begin(url: str, session_id: str) -> None:
    """Have the reference conversation, until the model is asked for the second time."""

    def answers(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        point("model")
        calls = [
            ToolCallPart(each["name"], each["arguments"], each["id"]) for each in reference.CALLS
        ]
        return ModelResponse(parts=[TextPart(reference.SAID), *calls])

    async with HoldfastCapability(url=url, session_id=session_id) as capability:
        agent = Agent(
            FunctionModel(answers),
            instructions=reference.SYSTEM,
            tools=[reference.depth, reference.tide],
            capabilities=[capability],
        )
        picture = BinaryContent(reference.PNG, media_type="image/png")
        await agent.run([reference.PROMPT, picture])


async def go_on(url: str, session_id: str, prompt: str, reply: str) -> None:
    """Go on with a session: the prompt is given, and the model says the reply."""

    def answers(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[TextPart(reply)])

    async with HoldfastCapability(url=url, session_id=session_id) as capability:
        agent = Agent(
            FunctionModel(answers),
            tools=[reference.depth, reference.tide],
            capabilities=[capability],
        )
        await agent.run(prompt)
