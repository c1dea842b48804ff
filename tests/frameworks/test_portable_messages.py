"""A portable conversation as each framework takes it, in objects of its own classes."""

import pytest

from holdfast.adapters.portable import Conversation, messages
from holdfast.core.conversation import FRAMEWORKS
from tests.frameworks import reference

HERE = [name for name in FRAMEWORKS if name != "crewai"]
"""Those of the environment that these tests run in."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("framework", HERE)
def test_a_conversation_is_given_as_the_framework_takes_it(framework: str) -> None:
    calls = [{"type": "tool_call", **call} for call in reference.CALLS]
    answers = [
        {"type": "tool_call_response", "id": call_id, "response": result}
        for call_id, result in reference.RESULTS.items()
    ]
    talk = Conversation.of(
        [
            {"role": "user", "parts": [{"type": "text", "content": reference.PROMPT}]},
            {"role": "assistant", "parts": [{"type": "text", "content": reference.SAID}, *calls]},
            {"role": "tool", "parts": answers},
        ]
    )
    found = messages(talk, framework)

    assert found
    told = str([each.to_dict() if framework == "agent_framework" else str(each) for each in found])
    assert all(each in told for each in (reference.PROMPT, "depth", reference.RESULTS["call_tide"]))
