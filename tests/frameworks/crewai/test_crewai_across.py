"""A conversation begun in another framework goes on with an agent of CrewAI, and back."""

import base64
from pathlib import Path
from typing import Any

import pytest

from holdfast import SyncClient
from holdfast.adapters.crewai import HoldfastCheckpoints
from holdfast.adapters.portable import conversation
from tests.frameworks import reference
from tests.frameworks.crewai.crews import Broken, agent, call, lookup
from tests.frameworks.jobs.crewai import call as call_of
from tests.frameworks.legs import crewai as leg


@pytest.fixture
def client(tmp_path: Path) -> SyncClient:
    return SyncClient.open(f"sqlite:///{tmp_path / 'store.db'}")


def said_elsewhere(client: SyncClient) -> str:
    """Keep the reference conversation as a program of one's own has it, cut before the answer."""
    picture = f"data:image/png;base64,{base64.b64encode(reference.PNG).decode()}"
    calls = [call_of(each) for each in reference.CALLS]
    messages: list[Any] = [
        {"role": "system", "content": reference.SYSTEM},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": reference.PROMPT},
                {"type": "image_url", "image_url": {"url": picture}},
            ],
        },
        {"role": "assistant", "content": reference.SAID, "tool_calls": calls},
        *(
            {"role": "tool", "tool_call_id": call_id, "content": said}
            for call_id, said in reference.RESULTS.items()
        ),
    ]
    return client.save("own", execution_state={"messages": messages}, session_id="elsewhere")


async def test_what_was_said_elsewhere_is_shown_to_the_model_as_it_was(client: SyncClient) -> None:
    with client:
        continued = client.continue_in(said_elsewhere(client), "crewai", session_id="here")
        assert continued.lost == []
        url = client.runtime.url
        assert url is not None
        shown = await leg.go_on(url, "here", "Und morgen?", "Tiefer.")

        roles = [message["role"] for message in shown]
        assert roles == ["system", "system", "user", "assistant", "tool", "tool", "user"]
        assert shown[1]["content"] == reference.SYSTEM
        assert [part["type"] for part in shown[2]["content"]] == ["text", "image_url"]
        assert shown[3]["content"] == reference.SAID


def test_what_was_cut_here_goes_on_elsewhere(client: SyncClient) -> None:
    with client, HoldfastCheckpoints(session_id="here", client=client) as talk:
        clerk = agent([call("lookup", city="Köln")], Broken(), tools=[lookup])
        with pytest.raises(Broken):
            talk.kickoff(clerk, leg.first_messages())
        head = client.sessions("crewai")[0].head.checkpoint_id

        continued = client.continue_in(head, "langgraph", session_id="there")

        found = conversation("there", client)
        assert found is not None
        assert [message["role"] for message in found.messages] == ["user", "assistant", "tool"]
        assert client.ancestors(continued.checkpoint_id)[0].checkpoint_id == head


def test_who_comes_back_finds_its_own_messages(client: SyncClient) -> None:
    with client, HoldfastCheckpoints(session_id="here", client=client) as talk:
        talk.kickoff(agent("21 °C"), leg.first_messages())
        own = talk.messages()
        head = client.sessions("crewai")[0].head.checkpoint_id
        away = client.continue_in(head, "langgraph", session_id="away")
        client.continue_in(away.checkpoint_id, "crewai", session_id="home")

        with HoldfastCheckpoints(session_id="home", client=client) as home:
            assert home.messages() == own
            assert home.kickoff(agent("yes"), "Sure?").raw == "yes"
