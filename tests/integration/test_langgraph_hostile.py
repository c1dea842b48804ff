"""A store that an attacker has written to: reading a thread runs nothing that is named in it."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from holdfast import (
    Framework,
    HoldfastError,
    SerializationError,
    SyncClient,
    UnknownTypeError,
)
from holdfast.adapters.langgraph import HoldfastSaver, LangGraphAdapter
from holdfast.core.raw import Sealed
from holdfast.verbs.notes import NoteBatch
from tests.graphs import Point, Profile, line, thread
from tests.integration.langgraph_attacks import UNLOADED, attacks, runs_with_langgraph

KEY = b"0123456789abcdef"
HOSTILE = thread("hostile")


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is there once anything of an attack has run."""
    mark = tmp_path / "it-ran"
    module = tmp_path / f"{UNLOADED}.py"
    module.write_text(
        f"import pathlib\npathlib.Path({str(mark)!r}).touch()\n"
        "from dataclasses import dataclass\n@dataclass\nclass Data:\n    n: int\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("HOLDFAST_TEST_SECRET", "from the environment")
    return mark


@pytest.fixture
def client() -> Iterator[SyncClient]:
    with SyncClient.memory() as client:
        line("a").compile(checkpointer=HoldfastSaver(client)).invoke({"log": []}, thread("good"))
        yield client


def craft(client: SyncClient, change: Callable[[dict[str, Any]], Any], **tags: Any) -> str:
    """A thread whose only checkpoint is that of another, changed."""
    good = client.latest("langgraph", "good")
    assert good is not None
    state = good.execution_state
    change(state)
    metadata = {**good.metadata, "thread_id": "hostile", **tags}
    return client.save(
        "langgraph",
        Framework.LANGGRAPH,
        execution_state=state,
        session_id="hostile",
        **metadata,
    )


def as_value(client: SyncClient, sealed: Sealed) -> None:
    def change(state: dict[str, Any]) -> None:
        state["values"]["value"], state["sealed"] = sealed, {"value": "whole"}

    craft(client, change)


def as_page(client: SyncClient, sealed: Sealed) -> None:
    def change(state: dict[str, Any]) -> None:
        state["values"]["value"], state["sealed"] = [sealed], {"value": "list"}

    craft(client, change)


def as_items(client: SyncClient, sealed: Sealed) -> None:
    def change(state: dict[str, Any]) -> None:
        state["values"]["value"], state["sealed"] = [sealed], {"value": "dict"}

    craft(client, change)


def as_write(channel: str) -> Callable[[SyncClient, Sealed], None]:
    def place(client: SyncClient, sealed: Sealed) -> None:
        scope = craft(client, lambda state: None)
        written = NoteBatch()
        row = [0, channel, sealed, True]
        note = {"task_id": "t", "task_path": "~__pregel_pull, a", "writes": [row]}
        written.add(client.runtime.engine, scope, "w", note)
        client.runtime.run(written.write())

    return place


def as_metadata(client: SyncClient, sealed: Sealed) -> None:
    def change(state: dict[str, Any]) -> None:
        state["metadata"] = {"source": "loop", "step": 1, "odd": sealed}
        state["checkpoint"]["pending"] = sealed

    craft(client, change)


PLACES = {
    "value": as_value,
    "page": as_page,
    "items": as_items,
    "write": as_write("value"),
    "error": as_write("__error__"),
    "interrupt": as_write("__interrupt__"),
    "metadata": as_metadata,
}
SERDES: dict[str, Callable[[], SerializerProtocol | None]] = {
    "none": lambda: None,
    "json": JsonPlusSerializer,
    "strict": lambda: JsonPlusSerializer(allowed_msgpack_modules=None),
    "encrypted": lambda: EncryptedSerializer.from_pycryptodome_aes(key=KEY),
    "encrypted, pickles": lambda: EncryptedSerializer.from_pycryptodome_aes(
        JsonPlusSerializer(pickle_fallback=True), key=KEY
    ),
}


def resealed(data: bytes) -> Sealed:
    """Bytes that were encrypted as bytes, marked as something else."""
    _, encrypted = EncryptedSerializer.from_pycryptodome_aes(key=KEY).dumps_typed(data)
    return Sealed("msgpack+aes", encrypted)


def ways_to_read(saver: HoldfastSaver) -> Iterator[Callable[[], Any]]:
    graph = line("a").compile(checkpointer=saver)
    yield lambda: saver.get_tuple(HOSTILE)
    yield lambda: [*saver.list(HOSTILE)]
    yield lambda: graph.get_state(HOSTILE)
    yield lambda: [*graph.get_state_history(HOSTILE)]
    yield lambda: graph.invoke(None, HOSTILE)
    yield lambda: saver.get_delta_channel_history(config=HOSTILE, channels=["value"])
    yield lambda: saver.client.interrupts()

    def by_hand() -> Any:
        kept = saver.client.latest("langgraph", "hostile")
        assert kept is not None
        return LangGraphAdapter.reconstruct(kept)

    yield by_hand


@pytest.mark.parametrize("serde", SERDES)
@pytest.mark.parametrize("place", PLACES)
def test_whatever_a_record_names_nothing_of_it_runs(
    client: SyncClient, place: str, serde: str, mark: Path
) -> None:
    for name, tag, data in attacks(f"touch {mark}"):
        PLACES[place](client, Sealed(tag, data))
        saver = HoldfastSaver(client, serde=SERDES[serde]())
        for read in ways_to_read(saver):
            try:
                found = read()
            except HoldfastError:
                found = None
            assert not mark.exists(), name
            assert "from the environment" not in repr(found)
        saver.delete_thread("hostile")


@pytest.mark.parametrize("serde", SERDES)
async def test_nothing_of_it_runs_under_async_either(
    client: SyncClient, serde: str, mark: Path
) -> None:
    for name, tag, data in attacks(f"touch {mark}"):
        for place in PLACES.values():
            place(client, Sealed(tag, data))
            saver = HoldfastSaver(client, serde=SERDES[serde]())
            with suppress(HoldfastError):
                await saver.aget_tuple(HOSTILE)
            with suppress(HoldfastError):
                [found async for found in saver.alist(HOSTILE)]
            assert not mark.exists(), name
            saver.delete_thread("hostile")


def test_left_to_itself_langgraph_would_run_them(mark: Path) -> None:
    wanted = {"one argument", "named arguments", "eval", "in a set", "in a message"}
    ran = set()
    for name, tag, data in attacks(f"touch {mark}"):
        if name in wanted:
            runs_with_langgraph(tag, data)
            if mark.exists():
                mark.unlink()
                ran.add(name)

    assert ran == wanted


class TestRefusals:
    def refusal(self, client: SyncClient, sealed: Sealed, place: str, **options: Any) -> str:
        PLACES[place](client, sealed)
        with pytest.raises(UnknownTypeError) as caught:
            HoldfastSaver(client, **options).get_tuple(HOSTILE)
        return str(caught.value)

    @pytest.mark.parametrize(
        ("place", "path"),
        [
            ("value", "$.channel_values.value[0]"),
            ("page", "$.channel_values.value[0]"),
            ("write", "$.channel_values.value[0]"),
            ("error", "$.channel_values.__error__[0]"),
        ],
    )
    def test_what_is_named_is_told_with_its_path_and_the_remedy(
        self, client: SyncClient, place: str, path: str
    ) -> None:
        _, tag, data = next(attacks("true"))

        said = self.refusal(client, Sealed(tag, data), place)

        assert said.startswith(f"{path}: os:system is named by what was stored")
        assert "allowed_msgpack_modules=[('os', 'system')]" in said

    def test_a_later_page_counts_on_from_the_one_before(self, client: SyncClient) -> None:
        good = Sealed(*JsonPlusSerializer().dumps_typed([1, 2, HumanMessage("hi")]))
        bad = Sealed(*next(attacks("true"))[1:])

        def change(state: dict[str, Any]) -> None:
            state["values"]["value"], state["sealed"] = [good, bad], {"value": "list"}

        craft(client, change)

        with pytest.raises(UnknownTypeError, match=r"^\$\.channel_values\.value\[3\]: os:system"):
            HoldfastSaver(client).get_tuple(HOSTILE)

    def test_data_without_a_cipher_is_held_to_be_anybodys(self, client: SyncClient) -> None:
        serde = EncryptedSerializer.from_pycryptodome_aes(key=KEY)
        profile = JsonPlusSerializer().dumps_typed(Profile(name="ada", age=36))

        said = self.refusal(client, Sealed(*profile), "value", serde=serde)

        assert "tests.graphs:Profile" in said

    def test_a_mark_that_was_changed_does_not_choose_another_reader(
        self, client: SyncClient, mark: Path
    ) -> None:
        # Bytes that a user may have handed in are encrypted as bytes; the tag beside is not.
        serde = EncryptedSerializer.from_pycryptodome_aes(key=KEY)
        for _, tag, data in attacks(f"touch {mark}"):
            _, sealed = serde.dumps_typed(data)
            as_value(client, Sealed(f"{tag}+aes", sealed))
            with suppress(HoldfastError):
                HoldfastSaver(client, serde=serde).get_tuple(HOSTILE)
            assert not mark.exists()

    @pytest.mark.parametrize(
        "data",
        [
            b"\xc1",
            b"",
            b"\xdd\xff\xff\xff\xff",
            b"\xd4\x00\x01",
            b"\xc7\x00\x05",
            b"\xd4\x63\xc0",
            b"\x91" * 5000,
            b"\xc7\x05\x06\x94\xa1O\x90\xc0\xc0",
        ],
    )
    def test_bytes_that_are_no_value_are_refused(self, client: SyncClient, data: bytes) -> None:
        as_value(client, Sealed("msgpack", data))

        with pytest.raises(SerializationError, match=r"^\$\.channel_values\.value"):
            HoldfastSaver(client).get_tuple(HOSTILE)

    @pytest.mark.parametrize("serde", SERDES)
    @pytest.mark.parametrize(("objects", "lists"), [(2000, 1), (90, 900), (102, 0)])
    def test_values_that_nest_too_deep_are_refused(
        self, client: SyncClient, serde: str, objects: int, lists: int
    ) -> None:
        value: Any = 1
        for _ in range(objects):
            value = ormsgpack.Ext(7, b"\x91" * lists + ormsgpack.packb(value))
        data = ormsgpack.packb(value)

        saver = HoldfastSaver(client, serde=SERDES[serde]())
        for sealed in (Sealed("msgpack", data), resealed(data)):
            as_value(client, sealed)
            if "+" not in sealed.tag or serde.startswith("encrypted"):
                with pytest.raises(SerializationError, match="nested too deep"):
                    saver.get_tuple(HOSTILE)

    def test_json_that_nests_too_deep_is_refused(self, client: SyncClient) -> None:
        as_value(client, Sealed("json", b"[" * 100_000 + b"]" * 100_000))

        with pytest.raises(SerializationError, match="no json that can be read"):
            HoldfastSaver(client).get_tuple(HOSTILE)


class TestStillWork:
    @pytest.mark.parametrize(
        "serde",
        [
            EncryptedSerializer.from_pycryptodome_aes(key=KEY),
            EncryptedSerializer.from_pycryptodome_aes(
                JsonPlusSerializer(
                    allowed_msgpack_modules=[("tests.graphs", "Profile"), ("tests.graphs", "Point")]
                ),
                key=KEY,
            ),
        ],
    )
    def test_classes_of_the_program_come_back_from_an_encrypted_store(
        self, serde: SerializerProtocol
    ) -> None:
        value = {"profile": Profile(name="ada", age=36), "points": [Point(1, 2.0)] * 3}
        with HoldfastSaver.open("memory://", serde=serde) as saver:
            graph = line("a").compile(checkpointer=saver)
            graph.invoke({"log": [], "value": value}, HOSTILE)

            assert graph.get_state(HOSTILE).values["value"] == value

    def test_what_only_langgraph_can_keep_comes_back_without_a_serializer(self) -> None:
        import re

        value = {"pattern": re.compile("a+b", re.IGNORECASE), "n": [1, 2]}
        with HoldfastSaver.open("memory://") as saver:
            graph = line("a").compile(checkpointer=saver)
            graph.invoke({"log": [], "value": value}, HOSTILE)

            assert graph.get_state(HOSTILE).values["value"] == value
