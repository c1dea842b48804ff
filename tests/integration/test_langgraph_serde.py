"""LangGraph's serializers on a HoldfastSaver: encryption, lists of allowed classes, pickle."""

import json
import secrets
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START

from holdfast import SerializationError
from holdfast.adapters.langgraph import HoldfastSaver
from tests.clients import PERSISTENT, url_of
from tests.graphs import (
    Colour,
    Frozen,
    Log,
    Point,
    Profile,
    Step,
    answer,
    asking,
    chat,
    delta_asking,
    every_message,
    line,
    new_graph,
    thread,
    to_all,
)

ONE = thread("1")
KEY = b"0123456789abcdef"


def encrypted(key: bytes = KEY) -> EncryptedSerializer:
    return EncryptedSerializer.from_pycryptodome_aes(key=key)


def all_bytes(directory: Path) -> bytes:
    """Everything in the files of a store."""
    return b"".join(path.read_bytes() for path in directory.rglob("*") if path.is_file())


def marker() -> str:
    """A text that compression cannot change and that is nowhere by chance."""
    return secrets.token_hex(16)


class TestEncrypted:
    @pytest.mark.parametrize("store", PERSISTENT)
    def test_nothing_that_was_said_or_written_is_readable_on_disk(
        self, store: str, tmp_path: Path
    ) -> None:
        said, replied, asked, given, noted, failed, sent = (marker() for _ in range(7))
        with HoldfastSaver.open(url_of(store, tmp_path), serde=encrypted()) as saver:
            graph = chat(lambda number: f"{replied} {number}").compile(checkpointer=saver)
            for number in range(12):
                graph.invoke({"messages": [HumanMessage(f"{said} {number}")]}, ONE)
            questions = asking(asked, "and?").compile(checkpointer=saver)
            questions.invoke({"log": [noted], "value": {"k": noted}}, thread("2"))
            questions.invoke(answer(given), thread("2"))
            builder = new_graph(Log).add_node("a", lambda state: int(f"x{failed}"))
            builder.add_edge(START, "a")
            with pytest.raises(ValueError, match=failed):
                builder.compile(checkpointer=saver).invoke({"log": [sent]}, thread("3"))

        stored = all_bytes(tmp_path)
        for secret in (said, replied, asked, given, noted, failed, sent):
            assert secret.encode() not in stored
        with HoldfastSaver.open(url_of(store, tmp_path), serde=encrypted()) as saver:
            texts = chat().compile(checkpointer=saver).get_state(ONE).values["messages"]
            assert [m.content for m in texts[:2]] == [f"{said} 0", f"{replied} 1"]
            again = asking(asked, "and?").compile(checkpointer=saver)
            assert again.invoke(answer("x"), thread("2"))["log"][1] == f"{asked} {given}"

    def test_without_encryption_it_would_be_readable(self, tmp_path: Path) -> None:
        said = marker()
        with HoldfastSaver.open(url_of("sqlite", tmp_path)) as saver:
            chat().compile(checkpointer=saver).invoke({"messages": [HumanMessage(said)]}, ONE)

        assert said.encode() in all_bytes(tmp_path)

    @pytest.mark.parametrize("store", PERSISTENT)
    def test_messages_come_back_exactly(self, store: str, tmp_path: Path) -> None:
        with HoldfastSaver.open(url_of(store, tmp_path), serde=encrypted()) as saver:
            chat().compile(checkpointer=saver).invoke({"messages": every_message()}, ONE)
        with HoldfastSaver.open(url_of(store, tmp_path), serde=encrypted()) as saver:
            found = chat().compile(checkpointer=saver).get_state(ONE).values["messages"]

        assert [m.model_dump() for m in found[:-1]] == [m.model_dump() for m in every_message()]
        assert [type(m) for m in found[:-1]] == [type(m) for m in every_message()]

    def test_delta_channels_and_pruning_work_encrypted(self, tmp_path: Path) -> None:
        with HoldfastSaver.open(url_of("sqlite", tmp_path), serde=encrypted()) as saver:
            graph = delta_asking().compile(checkpointer=saver)
            graph.invoke(to_all("in"), ONE)
            saver.prune(["1"])
            saver.copy_thread("1", "2")
            result = graph.invoke(answer("yes"), thread("2"))

        assert result["seldom"] == result["often"] == result["plain"]
        assert result["plain"][-2:] == ["told yes", "end"]

    @pytest.mark.parametrize("reopen", [False, True])
    def test_steps_still_share_what_they_have_in_common(self, reopen: bool, tmp_path: Path) -> None:
        steps, each = 200, 1000
        text = secrets.token_hex(each // 2)
        saver = HoldfastSaver.open(url_of("sqlite", tmp_path), serde=encrypted())
        for step in range(steps // 2):
            if reopen and step % 25 == 24:
                saver.close()
                saver = HoldfastSaver.open(url_of("sqlite", tmp_path), serde=encrypted())
            graph = chat(lambda number: f"{number} {text}").compile(checkpointer=saver)
            graph.invoke({"messages": [HumanMessage(f"{step} {text}", id=f"h{step}")]}, ONE)
        stats = saver.client.stats()
        messages = chat().compile(checkpointer=saver).get_state(ONE).values["messages"]
        saver.close()

        assert len(messages) == steps
        assert stats.checkpoints > steps
        # Encrypted text cannot be compressed: these are a few copies of the last state, not 200.
        assert stats.stored_bytes < 25 * steps * each
        assert stats.sharing > 8

    def test_a_wrong_key_fails_and_does_not_give_other_values(self, tmp_path: Path) -> None:
        with HoldfastSaver.open(url_of("sqlite", tmp_path), serde=encrypted()) as saver:
            asking("who?").compile(checkpointer=saver).invoke({"log": ["x"]}, ONE)

        with HoldfastSaver.open(url_of("sqlite", tmp_path), serde=encrypted(b"f" * 16)) as saver:
            with pytest.raises(ValueError, match="MAC"):
                saver.get_tuple(ONE)
            with pytest.raises(ValueError, match="MAC"):
                [*saver.list(ONE)]
        with (
            HoldfastSaver.open(url_of("sqlite", tmp_path)) as saver,
            pytest.raises(
                SerializationError, match=r"^\$\.channel_values\.\w+: is sealed .*serde="
            ),
        ):
            saver.get_tuple(ONE)

    def test_a_thread_that_was_plain_goes_on_encrypted_and_stays_readable(
        self, tmp_path: Path
    ) -> None:
        secret = marker()
        url = url_of("sqlite", tmp_path)
        with HoldfastSaver.open(url) as saver:
            chat().compile(checkpointer=saver).invoke({"messages": [HumanMessage("open")]}, ONE)
        with HoldfastSaver.open(url, serde=encrypted()) as saver:
            graph = chat().compile(checkpointer=saver)
            graph.invoke({"messages": [HumanMessage(secret)]}, ONE)
            states = [
                [m.content for m in s.values.get("messages", [])]
                for s in graph.get_state_history(ONE)
            ]

        assert states[0] == ["open", "answer 1", secret, "answer 3"]
        assert ["open", "answer 1"] in states
        assert ["open"] in states
        assert secret.encode() not in all_bytes(tmp_path)

    def test_a_sealed_state_shows_in_a_timeline_as_sealed(self, tmp_path: Path) -> None:
        with HoldfastSaver.open(url_of("sqlite", tmp_path), serde=encrypted()) as saver:
            line("a").compile(checkpointer=saver).invoke({"log": ["x"], "value": 1}, ONE)
            newest = saver.client.timeline("langgraph", "1", with_state=True)[0]

        assert "sealed" in repr(newest.execution_state["values"]["value"])
        assert newest.step_name == "a"


class TestAllowed:
    def keep(self, url: str) -> None:
        value = {
            "step": Step("t", Point(1, 2.0)),
            "frozen": Frozen("f"),
            "colour": Colour.RED,
            "profile": Profile(name="ada", age=36),
            "message": AIMessage("hi", id="m"),
        }
        with HoldfastSaver.open(url) as saver:
            line("a").compile(checkpointer=saver).invoke({"log": [], "value": value}, ONE)

    def load(self, url: str, allowed: Any) -> dict[str, Any]:
        serde = JsonPlusSerializer(allowed_msgpack_modules=allowed)
        with HoldfastSaver.open(url, serde=serde) as saver:
            return line("a").compile(checkpointer=saver).get_state(ONE).values["value"]

    @pytest.mark.parametrize("store", PERSISTENT)
    def test_what_is_not_on_the_list_comes_back_as_its_fields(
        self, store: str, tmp_path: Path
    ) -> None:
        url = url_of(store, tmp_path)
        self.keep(url)

        value = self.load(url, [("tests.graphs", "Step"), ("tests.graphs", "Point")])

        assert type(value["step"]) is Step
        assert type(value["step"].at) is Point
        assert isinstance(value["frozen"], dict)
        assert value["frozen"]["name"] == "f"
        assert not isinstance(value["colour"], Colour)
        assert isinstance(value["profile"], dict)
        assert value["message"] == AIMessage("hi", id="m")

    def test_with_an_empty_list_only_safe_types_are_revived(self, tmp_path: Path) -> None:
        url = url_of("sqlite", tmp_path)
        self.keep(url)

        value = self.load(url, None)

        assert {name for name, part in value.items() if isinstance(part, dict)} >= {
            "step",
            "frozen",
            "profile",
        }
        assert value["message"] == AIMessage("hi", id="m")

    def test_what_was_not_revived_is_itself_again_once_it_is_allowed(self, tmp_path: Path) -> None:
        url = url_of("sqlite", tmp_path)
        self.keep(url)
        with HoldfastSaver.open(
            url, serde=JsonPlusSerializer(allowed_msgpack_modules=None)
        ) as saver:
            line("a").compile(checkpointer=saver).invoke({"log": ["again"]}, ONE)

        value = self.load(url, True)

        assert value["step"] == Step("t", Point(1, 2.0))
        assert value["profile"] == Profile(name="ada", age=36)

    def test_a_saver_with_a_list_of_its_own_leaves_the_first_alone(self, tmp_path: Path) -> None:
        url = url_of("sqlite", tmp_path)
        self.keep(url)
        strict = JsonPlusSerializer(allowed_msgpack_modules=None)
        with HoldfastSaver.open(url, serde=strict) as saver:
            wider = saver.with_allowlist([("tests.graphs", "Frozen")])
            values = [
                line("a").compile(checkpointer=each).get_state(ONE).values["value"]["frozen"]
                for each in (saver, wider)
            ]

        assert isinstance(values[0], dict)
        assert values[1] == Frozen("f")

    def test_writes_follow_the_list_too(self, tmp_path: Path) -> None:
        url = url_of("sqlite", tmp_path)
        with HoldfastSaver.open(url) as saver:
            builder = new_graph(Log).add_node("a", lambda state: {"value": Frozen("f")})
            builder.add_node("b", lambda state: 1 / 0)
            builder.add_edge(START, "a").add_edge("a", "b")
            with pytest.raises(ZeroDivisionError):
                builder.compile(checkpointer=saver).invoke({"log": []}, ONE)
        with HoldfastSaver.open(
            url, serde=JsonPlusSerializer(allowed_msgpack_modules=None)
        ) as saver:
            wrote = [w for f in saver.list(ONE) for w in f.pending_writes or () if w[1] == "value"]

        assert [dict(value) for _, _, value in wrote] == [{"name": "f", "tags": frozenset()}]


class Json:
    """A serializer of one's own: readable text, and no types."""

    def dumps_typed(self, value: Any) -> tuple[str, bytes]:
        return "own", json.dumps(value).encode()

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        assert data[0] == "own"
        return json.loads(data[1])


class Untyped:
    """A serializer as they were before there were types."""

    def dumps(self, value: Any) -> bytes:
        return json.dumps(value).encode()

    def loads(self, data: bytes) -> Any:
        return json.loads(data)


@pytest.mark.parametrize("serde", [Json(), Untyped()])
@pytest.mark.parametrize("store", PERSISTENT)
def test_a_serializer_of_ones_own_writes_and_reads_every_value(
    store: str, serde: Any, tmp_path: Path
) -> None:
    result: dict[str, Any] = {}
    for run in range(3):
        with HoldfastSaver.open(url_of(store, tmp_path), serde=serde) as saver:
            graph = line("a", "b").compile(checkpointer=saver)
            result = graph.invoke({"log": [str(run)], "value": {"list": [1, 2], "n": None}}, ONE)

    assert result["log"] == ["0", "a", "b", "1", "a", "b", "2", "a", "b"]
    assert result["value"] == {"list": [1, 2], "n": None}


class Faulty(Json):
    """One that fails in a way of its own."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def dumps_typed(self, value: Any) -> tuple[str, bytes]:
        raise self.error


def test_what_goes_wrong_in_a_serializer_of_ones_own_comes_out_as_it_is() -> None:
    with HoldfastSaver.open("memory://", serde=Faulty(ValueError("no key today"))) as saver:
        graph = line("a").compile(checkpointer=saver)
        with pytest.raises(ValueError, match=r"^no key today$"):
            graph.invoke({"log": ["x"]}, ONE)


def test_a_value_that_it_does_not_take_is_named_by_its_path() -> None:
    with HoldfastSaver.open("memory://", serde=Json()) as saver:
        graph = line("a").compile(checkpointer=saver)
        with pytest.raises(SerializationError, match=r"^\$\.channel_values\.\w+: Json cannot keep"):
            graph.invoke({"log": ["x"], "value": {1, 2}}, ONE)


class Odd:
    """What only pickle can keep."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.made = iter(part for part in name)

    def __reduce__(self) -> Any:
        return Odd, (self.name,)


@pytest.mark.parametrize("store", PERSISTENT)
def test_what_only_pickle_can_keep_is_kept_where_pickle_is_allowed(
    store: str, tmp_path: Path
) -> None:
    url, allowed = url_of(store, tmp_path), JsonPlusSerializer(pickle_fallback=True)
    with HoldfastSaver.open(url, serde=allowed) as saver:
        graph = line("a").compile(checkpointer=saver)
        graph.invoke({"log": ["x"], "value": Odd("odd")}, ONE)
    with HoldfastSaver.open(url, serde=allowed) as saver:
        values = line("a").compile(checkpointer=saver).get_state(ONE).values
        newest = saver.client.timeline("langgraph", "1", with_state=True)[0]

    assert (type(values["value"]), values["value"].name) == (Odd, "odd")
    # What Holdfast can keep itself stays readable beside it.
    assert newest.execution_state["values"]["log"] == ["x", "a"]


def test_without_pickle_it_is_refused_by_its_path(tmp_path: Path) -> None:
    with HoldfastSaver.open(url_of("sqlite", tmp_path)) as saver:
        graph = line("a").compile(checkpointer=saver)
        with pytest.raises(SerializationError, match=r"value") as caught:
            graph.invoke({"log": ["x"], "value": Odd("odd")}, ONE)

    assert "generator" in str(caught.value)


def test_the_serializer_is_that_of_the_base_class_by_default() -> None:
    with HoldfastSaver.open("memory://") as saver:
        assert isinstance(saver, BaseCheckpointSaver)
        assert type(saver.serde) is JsonPlusSerializer
