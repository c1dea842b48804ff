"""Client and SyncClient are one interface, and so are the groups of their verbs."""

import inspect
import re
from typing import Any

import pytest

import holdfast.client as clients
from holdfast import Client, InvalidArgumentError, SyncClient
from holdfast.client.verb_group import VerbGroup

GROUPS = ("approvals", "effects", "events", "handoffs", "upkeep")
FACES = {
    "client": (SyncClient, Client),
    **{
        name: (getattr(clients, name.title()), getattr(clients, f"Async{name.title()}"))
        for name in GROUPS
    },
}
ASYNC_NAMES = {
    "AsyncIterator": "Iterator",
    **{f"Async{name}": name for name in ("Run", "Workspace")},
}


def verbs(face: type) -> dict[str, Any]:
    """The public methods and properties of a class, by name."""
    found = {name: inspect.getattr_static(face, name) for name in dir(face)}
    return {
        name: each
        for name, each in found.items()
        if not name.startswith("_") and (inspect.isfunction(each) or isinstance(each, property))
    }


VERBS = [(face, name) for face, (sync, _) in FACES.items() for name in verbs(sync)]


def function(verb: Any) -> Any:
    return verb.fget if isinstance(verb, property) else verb


def signature(verb: Any) -> str:
    text = str(inspect.signature(function(verb)))
    return re.sub(r"\bAsync(\w+)", r"\1", text)


@pytest.mark.parametrize("face", FACES)
def test_both_faces_have_the_same_verbs(face: str) -> None:
    sync, asynchronous = FACES[face]

    assert verbs(sync).keys() == verbs(asynchronous).keys()


@pytest.mark.parametrize(("face", "name"), VERBS)
def test_a_verb_has_the_same_signature_on_both_faces(face: str, name: str) -> None:
    sync, asynchronous = (verbs(each)[name] for each in FACES[face])

    assert signature(sync) == signature(asynchronous)


@pytest.mark.parametrize(("face", "name"), VERBS)
def test_a_verb_says_the_same_of_itself_on_both_faces(face: str, name: str) -> None:
    sync, asynchronous = (
        (inspect.getdoc(function(verbs(each)[name])) or "").partition("\n")[0]
        for each in FACES[face]
    )

    assert sync
    assert sync == asynchronous


@pytest.mark.parametrize(("face", "name"), VERBS)
def test_no_signature_hides_arguments(face: str, name: str) -> None:
    parameters = inspect.signature(function(verbs(FACES[face][0])[name])).parameters.values()
    hiding = {
        each.name for each in parameters if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    }

    # What a user adds of his own has names of his own.
    assert hiding <= {"metadata", "data"}


@pytest.mark.parametrize("group", GROUPS)
def test_the_verbs_of_a_group_are_those_of_the_client(group: str) -> None:
    for client, part in zip((SyncClient, Client), FACES[group], strict=True):
        assert verbs(part)
        assert verbs(part).items() <= verbs(client).items()


@pytest.mark.parametrize("group", GROUPS)
async def test_a_group_works_on_the_store_of_its_client(group: str) -> None:
    with SyncClient.memory() as sync:
        part: VerbGroup[Any] = getattr(sync, group)
        assert type(part) is FACES[group][0]
        assert part.runtime is sync.runtime
    async with Client.memory() as client:
        part = getattr(client, group)
        assert type(part) is FACES[group][1]
        assert part.runtime is client.runtime


def test_work_is_handed_over_by_the_group_and_taken_by_the_client() -> None:
    with SyncClient.memory() as client:
        saved = client.save("planner", execution_state={"plan": ["a"]})
        offer = client.handoffs.handoff(saved, "coder")

        taken = client.accept(offer)
        settled = client.handoffs.complete(offer)

        assert (taken.agent_id, taken.execution_state) == ("coder", {"plan": ["a"]})
        assert settled == client.offer(offer)
        assert client.handoffs.inbox("coder") == []
        assert client.upkeep.stats() == client.stats()


async def test_an_event_that_the_group_publishes_reaches_subscribers_of_the_client() -> None:
    async with Client.memory() as client:
        await client.events.publish("news", number=1)

        heard = [event.data async for event in client.subscribe("news", timeout=0)]

        assert heard == [{"number": 1}]


def test_a_client_works_through_a_runtime_of_its_own_kind() -> None:
    with SyncClient.memory() as client:
        with pytest.raises(InvalidArgumentError, match="Client works through AsyncRuntime"):
            Client.over(client.runtime)  # type: ignore[arg-type]
        assert SyncClient.over(client.runtime).store is client.store
