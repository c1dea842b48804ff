"""A state is opened branch by branch, and every branch is what it is in the whole."""

import json
import math
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import HealthCheck, given, settings

from holdfast import SyncClient
from holdfast.core.json_form import from_json, to_json
from holdfast.ui.numbers import exact, meant
from holdfast.ui.routes import Parameters
from holdfast.ui.state_tree import STATE, TEXT_PAGE, state
from tests.clients import url_of
from tests.samples import SAMPLES
from tests.strategies import values
from tests.ui.kit import Api, strict

_VALIDATOR = jsonschema.Draft202012Validator(strict(STATE))


@pytest.fixture(params=["memory", "file", "sqlite"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SyncClient]:
    with SyncClient.open(url_of(request.param, tmp_path)) as opened:
        yield opened


def saved(client: SyncClient, value: Any) -> str:
    """The id of a checkpoint with this state."""
    return client.save("agent", execution_state=value)


def asked(client: SyncClient, checkpoint_id: str, path: str = "$", **more: Any) -> dict[str, Any]:
    """What stands at a path, as a browser gets it."""
    told = state(client, Parameters({"id": checkpoint_id, "path": path, **more}, {}))
    text = json.dumps(told, allow_nan=False, ensure_ascii=False).encode()
    read: dict[str, Any] = json.loads(text)
    _VALIDATOR.validate(read)
    return read


def whole(client: SyncClient, checkpoint_id: str, path: str, limit: int = 500) -> dict[str, Any]:
    """What stands at a path, with all its pages."""
    told = asked(client, checkpoint_id, path, limit=limit)
    cursor = told["next"]
    while cursor is not None and told["children"]:
        page = asked(client, checkpoint_id, path, limit=limit, cursor=cursor)
        told["children"] += page["children"]
        cursor = page["next"]
    return told


def inner(typed: Any) -> list[Any] | None:
    """What a value in the typed form consists of, in its order; None if it is not looked into."""
    if isinstance(typed, list):
        return typed
    if not isinstance(typed, dict):
        return None
    if "$type" not in typed:
        return list(typed.values())
    kind, plain = typed["$type"], typed["value"]
    return _INNER[kind](plain) if kind in _INNER else None


def _subclass(plain: list[Any]) -> list[Any]:
    _, main, base, attributes = plain
    contents: list[Any] = []
    if base in ("list", "tuple", "set", "frozenset"):
        contents = main
    elif base == "deque":
        contents = main[1]
    elif base in ("dict", "OrderedDict"):
        contents = main[1::2]
    elif base == "defaultdict":
        contents = main[1][1::2]
    return [*contents, *(inner(attributes) or [])]


def _named(at: int, *more: int) -> Any:
    def found(plain: list[Any]) -> list[Any]:
        parts = [inner(plain[each]) for each in (at, *more) if each < len(plain)]
        return [part for each in parts for part in each or []]

    return found


_INNER: dict[str, Any] = {
    "escaped": lambda plain: list(plain.values()),
    "tuple": list,
    "set": list,
    "frozenset": list,
    "dict": lambda pairs: [part for _, part in pairs],
    "deque": lambda plain: plain[1],
    "OrderedDict": inner,
    "Counter": inner,
    "mappingproxy": inner,
    "SimpleNamespace": inner,
    "defaultdict": lambda plain: inner(plain[1]),
    "dict with attributes": _named(1, 2),
    "object": _named(1, 2),
    "msgspec": _named(1, 2),
    "namedtuple": _named(1, 2),
    "exception": _named(1),
    "pydantic": _named(1, 3, 4),
    "pydantic.v1": _named(1, 3),
    "subclass": _subclass,
}


def check(client: SyncClient, checkpoint_id: str, path: str, typed: Any) -> None:
    """Assert that what stands at a path, and all below it, is what the whole has there."""
    told = whole(client, checkpoint_id, path)
    parts = inner(typed)
    assert told["path"] == path
    if not parts:
        assert told["children"] == []
        assert told["value"] == exact(typed)
        return
    paths = [child["path"] for child in told["children"]]
    assert told["size"] == len(paths) == len(set(paths)) == len(parts)
    for child, part in zip(told["children"], parts, strict=True):
        if "value" in child:
            assert child["value"] == exact(part)
        check(client, checkpoint_id, child["path"], part)


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(values())
def test_every_branch_is_what_the_whole_has_there(value: Any) -> None:
    with SyncClient.open("memory://") as client:
        checkpoint_id = saved(client, value)
        restored = client.restore(checkpoint_id, on_unknown="raw").execution_state
        check(client, checkpoint_id, "$", to_json(restored))


@pytest.mark.parametrize("name", SAMPLES)
def test_a_value_of_every_type_is_shown_by_its_path(name: str) -> None:
    with SyncClient.open("memory://") as client:
        checkpoint_id = saved(client, {"here": SAMPLES[name], "many": [SAMPLES[name]] * 300})
        typed = to_json(SAMPLES[name])
        check(client, checkpoint_id, "$.here", typed)
        check(client, checkpoint_id, "$.many[299]", typed)


def test_a_list_of_many_pages_is_read_to_its_end(client: SyncClient) -> None:
    value = [{"text": f"message {i}" * 20, "at": i} for i in range(3000)]
    checkpoint_id = saved(client, {"messages": value})

    told = whole(client, checkpoint_id, "$.messages")

    assert told["size"] == 3000
    assert [child["key"] for child in told["children"]] == list(range(3000))
    last = asked(client, checkpoint_id, told["children"][-1]["path"])
    assert {child["key"]: child["value"] for child in last["children"]} == value[-1]


@pytest.mark.parametrize("count", [3000, 6000])
def test_every_key_of_a_large_dict_leads_to_its_value(client: SyncClient, count: int) -> None:
    checkpoint_id = saved(client, {"by name": {f"key {i}": [i, "x" * 50] for i in range(count)}})

    told = whole(client, checkpoint_id, '$["by name"]')

    assert [child["key"] for child in told["children"]] == [f"key {i}" for i in range(count)]
    for at in (0, 1, count // 2, count - 1):
        found = asked(client, checkpoint_id, told["children"][at]["path"] + "[0]")
        assert found["value"] == at


def test_a_large_dict_with_keys_of_any_type_leads_to_its_values(client: SyncClient) -> None:
    value: dict[Any, Any] = {(i, f"k{i}"): [i] for i in range(2000)}
    checkpoint_id = saved(client, value)

    told = whole(client, checkpoint_id, "$")

    assert told["size"] == 2000
    assert told["children"][1999]["typed_key"] == to_json((1999, "k1999"))
    assert asked(client, checkpoint_id, told["children"][1999]["path"] + "[0]")["value"] == 1999


@pytest.mark.parametrize("text", ["word " * 30_000, "é\U0001f600" * 30_000, "a" + "é" * 60_000])
def test_a_long_text_is_read_page_by_page(client: SyncClient, text: str) -> None:
    checkpoint_id = saved(client, {"text": text})
    found, cursor, told = "", "0", {}

    while cursor is not None:
        told = asked(client, checkpoint_id, "$.text", cursor=cursor)
        found, cursor = found + told["value"], told["next"]
        assert len(told["value"].encode()) <= TEXT_PAGE

    assert found == text
    assert told["size"] == len(text.encode())


def test_long_bytes_are_read_page_by_page(client: SyncClient) -> None:
    data = bytes(range(256)) * 400
    checkpoint_id = saved(client, [data])
    found, cursor = b"", "0"

    while cursor is not None:
        told = asked(client, checkpoint_id, "$[0]", cursor=cursor)
        found, cursor = found + from_json(told["value"]), told["next"]

    assert found == data


@pytest.mark.parametrize(
    "number", [2**53, -(2**60), 2**64 - 1, 10**300], ids=["53 bits", "60", "64", "997"]
)
def test_a_number_that_a_browser_would_round_is_given_in_digits(
    client: SyncClient, number: int
) -> None:
    told = asked(client, saved(client, {"n": number}), "$.n")

    assert told["value"] == {"$type": "int", "value": str(number)}
    assert meant(told["value"]) == number
    assert asked(client, saved(client, number))["preview"].startswith(str(number)[:100])


def test_numbers_that_json_has_no_word_for_are_typed(client: SyncClient) -> None:
    checkpoint_id = saved(client, [math.nan, math.inf, -0.0])

    found = [child["value"] for child in asked(client, checkpoint_id)["children"]]

    assert found[:2] == [to_json(math.nan), to_json(math.inf)]
    assert math.copysign(1, meant(found[2])) == -1


def test_paths_as_the_command_line_writes_them_lead_there_too(client: SyncClient) -> None:
    checkpoint_id = saved(client, {"plan": [{"it's": {7: "seven"}}], "a b": 1})

    assert asked(client, checkpoint_id, "plan[0]['it\\'s'][7]")["value"] == "seven"
    assert asked(client, checkpoint_id, '$.plan.0["it\'s"].7')["value"] == "seven"
    assert asked(client, checkpoint_id, "$['a b']")["value"] == 1
    assert asked(client, checkpoint_id, "$.plan[-1]")["type"] == "dict"


def test_a_key_that_hides_behind_another_goes_by_its_place(client: SyncClient) -> None:
    from tests.strategies import Mapping, with_note

    checkpoint_id = saved(client, with_note(Mapping({"note": "item", 1: 2}), "attribute"))

    paths = {child["path"]: child["value"] for child in asked(client, checkpoint_id)["children"]}

    assert paths == {"$.note": "item", "$[1]": 2, "$[#2]": "attribute"}


def test_a_class_that_is_not_known_here_is_shown(client: SyncClient) -> None:
    from tests.strategies import Plain

    value = to_json(Plain(1, [2]))
    value["value"][0] = "nowhere.at_all:Thing"
    checkpoint_id = saved(client, {"thing": from_json(value, on_unknown="raw")})

    told = asked(client, checkpoint_id, "$.thing")

    assert told["type"] == "Thing"
    assert told["preview"] == "Thing(a=1, b=[2])"
    assert [child["path"] for child in told["children"]] == ["$.thing.a", "$.thing.b"]


def test_values_nest_as_deep_as_a_checkpoint_keeps_them(client: SyncClient) -> None:
    value: Any = "bottom"
    for _ in range(120):
        value = {"in": [value]}

    assert asked(client, saved(client, value), "$" + ".in[0]" * 120)["value"] == "bottom"


def test_the_context_is_the_other_part(client: SyncClient) -> None:
    checkpoint_id = client.save("agent", execution_state=1, context={"user": "anna"})

    assert asked(client, checkpoint_id, "$.user", part="context")["value"] == "anna"
    assert asked(client, saved(client, 1), part="context")["value"] == {}


def test_of_a_large_state_only_what_is_looked_at_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SyncClient.open(url_of("sqlite", tmp_path)) as client:
        checkpoint_id = saved(client, {"log": [f"{i} " * 200 for i in range(20_000)], "n": 1})
        fetched: list[int] = []
        fetch = client.store.fetch

        def counted(names: Collection[bytes]) -> dict[bytes, bytes]:
            fetched.append(len(names))
            return fetch(names)

        monkeypatch.setattr(client.store, "fetch", counted)
        assert asked(client, checkpoint_id, "$.log[19999]")["value"] == "19999 " * 200
        asked(client, checkpoint_id, "$.log", cursor="10000", limit=20)

    assert sum(fetched) < 100


def test_a_value_that_is_too_large_is_not_given(client: SyncClient) -> None:
    import numpy as np

    checkpoint_id = saved(client, {"array": np.zeros(500_000)})

    told = asked(client, checkpoint_id, "$.array")

    assert told["cut"] is True
    assert "value" not in told
    assert "value" not in asked(client, checkpoint_id)["children"][0]


def test_a_path_that_leads_nowhere_is_not_found(client: SyncClient) -> None:
    api, checkpoint_id = Api(client), saved(client, {"plan": ["a"], "n": 5})

    for path in ("$.nope", "$.plan[1]", "$.plan[-2]", "$.plan[#1]", "$.n[0]", "$.n.x", "$['']"):
        assert "has no" in api.refused("state", 404, id=checkpoint_id, path=path)["message"]


@pytest.mark.parametrize("path", ["$.a[", "$]", '$["a]', "$['\\x']", "$[1e3]", "$[#-1]", "$..a"])
def test_what_is_no_path_is_refused(client: SyncClient, path: str) -> None:
    error = Api(client).refused("state", 400, id=saved(client, {"a": 1}), path=path)

    assert "is no path" in error["message"]


def test_a_page_behind_the_last_is_empty(client: SyncClient) -> None:
    told = Api(client).get("state", id=saved(client, [1, 2]), cursor="10")

    assert (told["children"], told["next"]) == ([], None)


def test_a_damaged_chunk_is_told_where_it_is_needed_and_nowhere_else(tmp_path: Path) -> None:
    with SyncClient.open(url_of("sqlite", tmp_path)) as client:
        checkpoint_id = saved(client, {"log": [f"{i} " * 200 for i in range(2000)], "n": 1})
        with closing(sqlite3.connect(tmp_path / "holdfast.db")) as database, database:
            database.execute(
                "UPDATE chunks SET data = x'0001' WHERE seq = "
                "(SELECT seq FROM chunks ORDER BY length(data) DESC LIMIT 1)"
            )
        api = Api(client)
        asked_for = [{"id": checkpoint_id, "path": f"$.log[{at}]"} for at in range(0, 2000, 3)]
        answers = [api.raw("state", **each) for each in asked_for]

        assert api.get("state", id=checkpoint_id, path="$.n")["value"] == 1

    damaged = [answer.json()["error"] for answer in answers if answer.status_code == 422]
    assert {answer.status_code for answer in answers} == {200, 422}
    assert {error["kind"] for error in damaged} == {"damaged"}
    assert all(checkpoint_id in error["message"] for error in damaged)


def test_a_missing_chunk_is_told(tmp_path: Path) -> None:
    with SyncClient.open(url_of("sqlite", tmp_path)) as client:
        checkpoint_id = saved(client, {"n": 1})
        with closing(sqlite3.connect(tmp_path / "holdfast.db")) as database, database:
            database.execute("DELETE FROM chunks")

        assert "is missing" in Api(client).refused("state", 422, id=checkpoint_id)["message"]
