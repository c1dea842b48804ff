"""A conversation with an agent of CrewAI is kept before each request, and goes on."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crewai import Agent

from holdfast import SyncClient
from holdfast.adapters.crewai import HoldfastCheckpoints
from holdfast.adapters.crewai.messages import loaded
from holdfast.core.conversation.reading import conversation_in
from holdfast.errors import AdapterError, InvalidArgumentError, SessionLostError, StoreClosedError
from tests.frameworks.crewai.crews import Broken, agent, call, crew, lookup, used
from tests.frameworks.legs import crewai as leg

CALLS = [call("lookup", 1, city="Bergen"), call("lookup", 2, city="Köln")]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture
def talk(url: str) -> Iterator[HoldfastCheckpoints]:
    with HoldfastCheckpoints(session_id="talk", url=url) as made:
        yield made


def names(talk: HoldfastCheckpoints) -> list[str | None]:
    return [info.step_name for info in reversed(talk.client.timeline("crewai", "talk"))]


def roles(messages: list[dict[str, Any]]) -> list[str]:
    return [message["role"] for message in messages]


def clerk(*answers: Any) -> Agent:
    return agent(*answers, tools=[lookup])


def test_it_is_kept_when_it_is_asked_called_and_answered(talk: HoldfastCheckpoints) -> None:
    assert talk.kickoff(clerk(CALLS, "21 °C"), "How warm?").raw == "21 °C"

    assert names(talk) == ["user prompt", "tools", "answer"]
    assert roles(talk.messages()) == ["user", "assistant", "tool", "tool", "assistant"]
    assert talk.messages()[0] == {"role": "user", "content": "How warm?"}


def test_after_an_error_it_goes_on_with_the_prompt_there_once(talk: HoldfastCheckpoints) -> None:
    with pytest.raises(Broken):
        talk.kickoff(clerk(CALLS, Broken()), "How warm?")
    used.clear()
    second = clerk("21 °C")

    assert talk.kickoff(second, "How warm?").raw == "21 °C"

    assert used == []
    assert roles(talk.messages()) == ["user", "assistant", "tool", "tool", "assistant"]
    assert roles(second.llm.seen[0]) == ["system", "user", "assistant", "tool", "tool"]


def test_the_model_is_asked_the_same_as_if_nothing_had_gone_wrong(url: str) -> None:
    with HoldfastCheckpoints(session_id="whole", url=url) as whole:
        one = clerk(CALLS, "21 °C")
        whole.kickoff(one, leg.first_messages())
    with HoldfastCheckpoints(session_id="cut", url=url) as cut:
        with pytest.raises(Broken):
            cut.kickoff(clerk(CALLS, Broken()), leg.first_messages())
        two = clerk("21 °C")
        cut.kickoff(two, leg.first_messages())

    assert two.llm.seen[0] == one.llm.seen[1]


def test_an_agent_without_tools_answers_too(talk: HoldfastCheckpoints) -> None:
    talk.kickoff(agent("one"), "first")
    talk.kickoff(agent("two"), "second")

    said = [message["content"] for message in talk.messages()]
    assert said == ["first", "one", "second", "two"]


def test_a_prompt_with_a_picture_reaches_the_model_and_is_kept(talk: HoldfastCheckpoints) -> None:
    made = clerk("seen")

    talk.kickoff(made, leg.first_messages())

    assert talk.messages()[:2] == leg.first_messages()
    shown = made.llm.seen[0][-1]["content"]
    assert [part["type"] for part in shown] == ["text", "image_url"]


def test_the_same_prompt_again_is_a_new_turn_once_it_is_answered(
    talk: HoldfastCheckpoints,
) -> None:
    talk.kickoff(clerk("one"), "more")
    talk.kickoff(clerk("two"), "more")

    said = [message["content"] for message in talk.messages()]
    assert said == ["more", "one", "more", "two"]


def test_another_prompt_after_an_error_comes_behind_what_was_said(
    talk: HoldfastCheckpoints,
) -> None:
    with pytest.raises(Broken):
        talk.kickoff(clerk(CALLS, Broken()), "How warm?")

    talk.kickoff(clerk("never mind"), "Forget it.")

    assert roles(talk.messages()) == ["user", "assistant", "tool", "tool", "user", "assistant"]


def test_going_on_without_a_prompt_answers_what_was_asked(talk: HoldfastCheckpoints) -> None:
    with pytest.raises(Broken):
        talk.kickoff(clerk(Broken()), "How warm?")

    assert talk.kickoff(clerk("21 °C"), []).raw == "21 °C"
    assert len(talk.messages()) == 2


def test_after_a_rollback_the_later_turn_was_never_said(talk: HoldfastCheckpoints) -> None:
    talk.kickoff(clerk("one"), "first")
    talk.kickoff(clerk("two"), "second")
    with talk.client.session("crewai", "talk") as run:
        run.rollback(steps=2)

    talk.kickoff(clerk("three"), "third")

    said = [message["content"] for message in talk.messages()]
    assert said == ["first", "one", "third", "three"]


def test_the_output_of_an_agent_of_ones_own_is_kept_as_a_conversation(
    talk: HoldfastCheckpoints,
) -> None:
    output = clerk(CALLS, "21 °C").kickoff("How warm?")

    talk(output)

    assert roles(talk.messages()) == ["user", "assistant", "tool", "tool", "assistant"]
    more = clerk("yes").kickoff([*loaded(talk.messages()), {"role": "user", "content": "sure?"}])
    assert more.raw == "yes"


def test_an_agent_that_a_tool_asks_is_no_part_of_the_conversation(
    talk: HoldfastCheckpoints,
) -> None:
    from crewai.tools import tool

    helper = clerk("from the helper")

    @tool("ask")
    def ask(question: str) -> str:
        """Ask the helper."""
        return str(helper.kickoff(question).raw)

    asking = agent([call("ask", question="?")], "done", tools=[ask])

    assert talk.kickoff(asking, "Ask.").raw == "done"
    assert roles(talk.messages()) == ["user", "assistant", "tool", "assistant"]


def test_a_conversation_that_cannot_be_kept_ends_the_kickoff(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = SyncClient.open(url)
    talk = HoldfastCheckpoints(session_id="talk", client=client)
    made = clerk(CALLS, "never said")

    def close_then_look(city: str) -> str:
        client.close()
        return city

    monkeypatch.setattr(lookup, "func", close_then_look)

    with pytest.raises(StoreClosedError):
        talk.kickoff(made, "How warm?")
    assert len(made.llm.seen) == 1


def test_two_that_speak_in_one_session_at_once_are_told(
    url: str, talk: HoldfastCheckpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    def speak_too(city: str) -> str:
        with HoldfastCheckpoints(session_id="talk", url=url) as other:
            other.kickoff(agent("me too"), "And I?")
        return city

    monkeypatch.setattr(lookup, "func", speak_too)

    with pytest.raises(SessionLostError, match="written by another"):
        talk.kickoff(clerk(CALLS[:1], "never said"), "How warm?")
    assert [message["content"] for message in talk.messages()][-1] == "me too"


def test_it_is_read_without_crewai(talk: HoldfastCheckpoints) -> None:
    talk.kickoff(clerk(CALLS, "21 °C"), leg.first_messages())
    head = talk.client.latest("crewai", "talk")
    assert head is not None

    found = conversation_in("crewai", head.execution_state)

    assert found is not None
    assert found.lost == []
    assert [part["type"] for part in found.messages[0]["parts"]] == ["text", "blob"]
    assert [part["name"] for part in found.messages[1]["parts"]] == ["lookup", "lookup"]
    assert [part["response"] for part in found.messages[2]["parts"]] == [
        "Bergen: 21 °C",
        "Köln: 21 °C",
    ]


def test_what_a_crew_said_in_its_tasks_is_read_too(talk: HoldfastCheckpoints) -> None:
    crew("a", "b", callback=talk, descriptions=("one", "two")).kickoff()
    head = talk.client.latest("crewai", "talk")
    assert head is not None

    found = conversation_in("crewai", head.execution_state)

    assert found is not None
    said = [
        part["content"] for m in found.messages if m["role"] == "assistant" for part in m["parts"]
    ]
    assert said == ["a", "b"]


def test_what_a_crew_without_tools_said_ends_with_its_answers(talk: HoldfastCheckpoints) -> None:
    crew("a", "b", callback=talk, tools=(), descriptions=("one", "two")).kickoff()
    head = talk.client.latest("crewai", "talk")
    assert head is not None

    found = conversation_in("crewai", head.execution_state)

    assert found is not None
    assert [message["role"] for message in found.messages].count("assistant") == 2


def test_a_kickoff_on_an_event_loop_is_told_how_to_be_one(talk: HoldfastCheckpoints) -> None:
    async def main() -> None:
        talk.kickoff(clerk("x"), "hi")

    with pytest.raises(InvalidArgumentError, match=r"asyncio\.to_thread"):
        asyncio.run(main())


@pytest.mark.parametrize(
    ("prompt", "told"),
    [
        ("", "empty"),
        (7, "not int"),
        ([], "yet to begin"),
        (["hi"], "message 0 of the prompt is no chat message"),
        ([{"role": "king", "content": "hi"}], "no chat message"),
        ([{"role": "user", "content": "hi", "files": {"a": b"x"}}], "files"),
    ],
)
def test_what_is_no_prompt_is_refused(talk: HoldfastCheckpoints, prompt: Any, told: str) -> None:
    with pytest.raises(InvalidArgumentError, match=told):
        talk.kickoff(clerk("x"), prompt)
    assert talk.client.sessions() == []


def test_what_is_no_agent_or_no_conversation_is_refused(talk: HoldfastCheckpoints) -> None:
    with pytest.raises(InvalidArgumentError, match="an Agent, not str"):
        talk.kickoff("agent", "hi")
    crew("a", callback=talk, descriptions=("one",)).kickoff()
    with pytest.raises(AdapterError, match="holds no conversation of CrewAI"):
        talk.kickoff(clerk("x"), "hi")
