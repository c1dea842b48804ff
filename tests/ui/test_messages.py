"""A conversation is given from its end, with addresses for what is too long to be given whole."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import SyncClient
from tests.ui import stories
from tests.ui.kit import Api
from tests.ui.stories import AGENT, SESSION


@pytest.fixture
def client(tmp_path: Path) -> Iterator[SyncClient]:
    with SyncClient.sqlite(tmp_path / "said.db") as opened:
        yield opened


def saved(client: SyncClient, *messages: dict[str, Any]) -> str:
    return client.save("agent", execution_state={"messages": list(messages)}, session_id="s")


def texts(answer: dict[str, Any]) -> list[str]:
    return [each["parts"][0].get("content", "") for each in answer["messages"]]


def whole(api: Api, src: str) -> Any:
    path, _, query = src.partition("?")
    return api.raw(path, **dict(part.split("=") for part in query.split("&")))


def test_messages_have_roles_and_parts_and_say_what_is_new(api: Api, told: SyncClient) -> None:
    found = api.get("messages", id=stories.named(told, AGENT, SESSION, "read: completed"))

    assert [each["role"] for each in found["messages"]] == ["system", "user", "assistant", "tool"]
    assert [each["new"] for each in found["messages"]] == [False, False, True, True]
    assert found["messages"][2]["parts"][1]["name"] == "look"
    assert found["pending"] == []


def test_messages_that_went_are_counted(api: Api, told: SyncClient) -> None:
    found = api.get("messages", id=stories.named(told, AGENT, "bolder", "rewrite"))

    assert found["removed"] == 5


def test_the_end_comes_first_and_pages_lead_back(client: SyncClient) -> None:
    at = stories.steps(client, "agent", "s", 7)[-1]
    api = Api(client)

    last = api.get("messages", id=at, limit=3)
    before = api.get("messages", id=at, limit=3, cursor=last["next"])
    first = api.get("messages", id=at, limit=3, cursor=before["next"])

    assert texts(last) == ["message 4", "message 5", "message 6"]
    assert texts(before) == ["message 1", "message 2", "message 3"]
    assert texts(first) == ["message 0"]
    assert [each["index"] for each in before["messages"]] == [1, 2, 3]
    assert (first["next"], first["total"]) == (None, 7)


def test_a_long_text_is_cut_and_has_an_address(client: SyncClient) -> None:
    text = "a line of ten megabytes " * 400_000
    api = Api(client)
    at = saved(client, {"role": "user", "content": text})

    (part,) = api.get("messages", id=at)["messages"][0]["parts"]

    assert len(part["content"]) < 20_000
    assert part["cut"] == len(text)
    answer = whole(api, part["src"])
    assert answer.text == text
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


def test_an_image_has_an_address_and_is_what_its_bytes_are(client: SyncClient) -> None:
    data = stories.picture()
    url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    at = saved(
        client, {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}
    )
    api = Api(client)

    (part,) = api.get("messages", id=at)["messages"][0]["parts"]

    assert part["size"] == len(data)
    answer = whole(api, part["src"])
    assert answer.content == data
    assert answer.headers["content-type"] == "image/png"


def test_what_only_says_that_it_is_an_image_is_a_download(client: SyncClient) -> None:
    url = f"data:image/svg+xml;base64,{base64.b64encode(stories.SVG.encode()).decode()}"
    at = saved(
        client, {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}
    )
    api = Api(client)

    answer = whole(api, api.get("messages", id=at)["messages"][0]["parts"][0]["src"])

    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert "sandbox" in answer.headers["content-security-policy"]


def test_a_call_without_an_answer_is_pending(client: SyncClient) -> None:
    call = {"id": "c7", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    at = saved(client, {"role": "assistant", "content": "", "tool_calls": [call]})

    assert Api(client).get("messages", id=at)["pending"] == ["c7"]


def test_a_state_without_messages_has_none(client: SyncClient) -> None:
    at = client.save("agent", execution_state={"n": 1}, session_id="s")

    found = Api(client).get("messages", id=at)

    assert (found["messages"], found["total"]) == ([], 0)


@pytest.mark.parametrize("place", ["", "x", "0", "0.9", "9.0", "0.0.0", "-1.0", "0.-1", "9" * 30])
def test_a_part_that_is_not_there_is_not_found(client: SyncClient, place: str) -> None:
    at = saved(client, {"role": "user", "content": "hi"})

    status = 404 if place else 400
    assert Api(client).refused("message-part", status, id=at, place=place)["message"]


def test_halves_of_characters_are_given_and_lost_nowhere(client: SyncClient) -> None:
    at = saved(client, {"role": "user", "content": "half \ud83d of one"})

    assert texts(Api(client).get("messages", id=at)) == ["half \ud83d of one"]


def test_arguments_that_only_look_typed_are_told_apart_from_typed_ones(client: SyncClient) -> None:
    forged = {"$type": "datetime", "value": ["x"]}
    call = {"type": "tool_use", "id": "c1", "name": "pay", "input": {"to": forged}}
    said = [{"role": "user", "content": "go"}, {"role": "assistant", "content": [call]}]
    saved = client.save("agent", execution_state={"messages": said})

    (part,) = Api(client).get("messages", id=saved)["messages"][1]["parts"]

    assert part["arguments"] == {"to": {"$type": "escaped", "value": forged}}
