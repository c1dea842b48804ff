"""Moving in from a database that an attacker made: nothing that it names is imported or run."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from holdfast import AdapterError, HoldfastError, InvalidArgumentError, StoreFormatError, SyncClient
from holdfast.adapters.langgraph import HoldfastSaver, move_in
from tests.graphs import line, thread
from tests.integration.langgraph_attacks import UNLOADED, attacks
from tests.integration.moving_kit import KEY, sqlite_saver, write_chat

pytest_plugins = ["tests.integration.moving_fixtures"]

ATTACKS = [name for name, _, _ in attacks("true")]


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is there once anything of an attack has run."""
    mark = tmp_path / "it-ran"
    (tmp_path / f"{UNLOADED}.py").write_text(
        f"import pathlib\npathlib.Path({str(mark)!r}).touch()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return mark


def plant(source: Path, table: str, tag: str, data: bytes) -> None:
    """Put these bytes in place of all values that the file has there."""
    column = {"checkpoints": "checkpoint", "writes": "value"}[table]
    with closing(sqlite3.connect(source)) as db, db:
        db.execute(f"UPDATE {table} SET type = ?, {column} = ?", (tag, data))


@pytest.mark.parametrize("table", ["checkpoints", "writes"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_hostile_file_is_refused_by_thread_checkpoint_and_path_and_runs_nothing(
    source: Path, client: SyncClient, mark: Path, attack: str, table: str
) -> None:
    write_chat(source, thread_id="chat")
    tag, data = {name: each for name, *each in attacks(f"touch {mark}")}[attack]
    plant(source, table, tag, data)  # type: ignore[arg-type]
    encrypted = EncryptedSerializer.from_pycryptodome_aes(
        JsonPlusSerializer(pickle_fallback=True), key=KEY
    )

    for serde in (None, JsonPlusSerializer(), encrypted):
        with pytest.raises(AdapterError, match=r"^checkpoint '[^']+' of thread 'chat' cannot be"):
            move_in(source, client, serde=serde)

    assert not mark.exists()
    assert UNLOADED not in sys.modules
    assert client.stats().checkpoints == 0


@pytest.mark.parametrize("attack", ["one argument", "json", "pickle", "a module to import"])
def test_the_command_line_runs_nothing_of_it_either(
    source: Path, tmp_path: Path, mark: Path, attack: str
) -> None:
    write_chat(source)
    tag, data = {name: each for name, *each in attacks(f"touch {mark}")}[attack]
    plant(source, "checkpoints", tag, data)  # type: ignore[arg-type]

    done = holdfast(tmp_path, "langgraph-sqlite", source.name)

    assert done.returncode == 1
    assert done.stderr.startswith("holdfast: checkpoint '")
    assert "Traceback" not in done.stderr
    assert not mark.exists()


def test_all_that_would_have_to_be_trusted_is_named_at_once_with_its_path(
    source: Path, client: SyncClient
) -> None:
    write_chat(source)
    with sqlite_saver(source) as theirs:
        found = theirs.get_tuple(thread("chat"))
        assert found is not None
    planted = {
        **found.checkpoint,
        "channel_values": {"a": [1, {"k v": Unloaded("shop", "Order")}], "b": Unloaded("x", "Y")},
    }
    data = _with_unloaded(planted)
    plant(source, "checkpoints", "msgpack", data)

    with pytest.raises(AdapterError) as refused:
        move_in(source, client)

    said = str(refused.value)
    assert "$.channel_values.a[1]['k v']: shop:Order is named" in said
    assert "--trust shop:Order --trust x:Y, or move_in(trust=['shop:Order', 'x:Y'])" in said


class Unloaded:
    """Stands for a value of a class that only a file names."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name


def _with_unloaded(value: Any) -> bytes:
    import ormsgpack

    def default(each: Any) -> Any:
        if isinstance(each, Unloaded):
            return ormsgpack.Ext(2, ormsgpack.packb((each.module, each.name, {"n": 1})))
        raise TypeError

    return ormsgpack.packb(value, default=default)


@pytest.mark.parametrize("attack", ["one argument", "json", "pickle", "a module to import"])
@pytest.mark.parametrize("table", ["checkpoint_blobs", "checkpoint_writes"])
def test_a_hostile_postgres_database_is_refused_and_runs_nothing(
    dsn: str, theirs: PostgresSaver, client: SyncClient, mark: Path, table: str, attack: str
) -> None:
    line("one").compile(checkpointer=theirs).invoke({"value": [1]}, thread("line"))
    tag, data = {name: each for name, *each in attacks(f"touch {mark}")}[attack]
    theirs.conn.execute(f"UPDATE {table} SET type = %s, blob = %s", (tag, data))  # type: ignore[union-attr]

    named = r"of thread 'line' cannot be moved: .*\$\.channel_values"
    with pytest.raises(AdapterError, match=named):
        move_in(dsn, client)

    assert not mark.exists()
    assert UNLOADED not in sys.modules


class TestTrust:
    def order(self, tmp_path: Path, source: Path) -> None:
        """A thread that holds a class of a module that only its program has imported."""
        (tmp_path / "shop_module.py").write_text(
            "from dataclasses import dataclass\n\n"
            "@dataclass\nclass Order:\n    number: int\n\n"
            "@dataclass\nclass Other:\n    number: int\n"
        )
        program = (
            "from tests.graphs import line, thread\n"
            "from tests.integration.moving_kit import sqlite_saver\n"
            "from shop_module import Order, Other\n"
            "import pathlib\n"
            f"with sqlite_saver(pathlib.Path({str(source)!r})) as theirs:\n"
            "    graph = line('one').compile(checkpointer=theirs)\n"
            "    graph.invoke({'value': Order(7)}, thread('orders'))\n"
        )
        here = str(Path(__file__).parents[2])
        path = os.pathsep.join([here, str(tmp_path)])
        subprocess.run(
            [sys.executable, "-c", program], check=True, env={**os.environ, "PYTHONPATH": path}
        )

    def test_exactly_the_class_that_is_named_is_allowed(self, tmp_path: Path, source: Path) -> None:
        self.order(tmp_path, source)
        arguments = ("langgraph-sqlite", source.name, "--trust")

        other = holdfast(tmp_path, *arguments, "shop_module:Other")
        right = holdfast(tmp_path, *arguments, "shop_module:Order", "--trust", "shop_module:Other")

        assert (other.returncode, right.returncode) == (1, 0), right.stderr
        assert "$.channel_values.value: shop_module:Order is named" in other.stderr
        assert "--trust shop_module:Order" in other.stderr
        with SyncClient.sqlite(tmp_path / ".holdfast" / "holdfast.db") as client:
            head = client.sessions()[0].head
            kept = client.restore(head.checkpoint_id, on_unknown="raw")
        assert kept.execution_state["values"]["value"]["number"] == 7

    @pytest.mark.parametrize(
        ("named", "problem"),
        [
            ("shop_module", "is named module:Class"),
            ("shop_module:", "is named module:Class"),
            ("no_such_module:Order", "No module named 'no_such_module'"),
            ("os:system", "os has no class system"),
            ("os:nothing", "os has no class nothing"),
        ],
    )
    def test_what_is_no_class_cannot_be_trusted(
        self, tmp_path: Path, source: Path, named: str, problem: str
    ) -> None:
        write_chat(source)

        done = holdfast(tmp_path, "langgraph-sqlite", source.name, "--trust", named)

        assert done.returncode == 1
        assert problem in done.stderr
        assert not (tmp_path / ".holdfast").exists()

    def test_a_serializer_says_itself_what_it_trusts(
        self, source: Path, client: SyncClient
    ) -> None:
        write_chat(source)

        with pytest.raises(InvalidArgumentError, match="not both"):
            move_in(source, client, serde=JsonPlusSerializer(), trust=["collections:Counter"])

    def test_a_bundle_needs_no_trust(self, tmp_path: Path) -> None:
        done = holdfast(tmp_path, "some.holdfast", "--trust", "a:B")

        assert done.returncode == 2
        assert "--trust" in done.stderr


class TestFiles:
    @pytest.mark.parametrize("table", ["checkpoints", "writes"])
    def test_a_view_in_place_of_a_table_is_refused(
        self, source: Path, client: SyncClient, table: str
    ) -> None:
        write_chat(source)
        with closing(sqlite3.connect(source)) as db, db:
            db.execute(f"ALTER TABLE {table} RENAME TO other")
            db.execute(
                f"CREATE VIEW {table} AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 "
                "FROM n) SELECT x AS thread_id, x AS checkpoint, x AS checkpoint_ns, x AS type, "
                "x AS checkpoint_id, x AS parent_checkpoint_id, x AS metadata, x AS task_id, "
                "x AS idx, x AS channel, x AS value, x AS task_path FROM n"
            )

        with pytest.raises(StoreFormatError, match=f"a view in place of the table {table}"):
            move_in(source, client)

    @pytest.mark.parametrize(
        ("table", "column", "value"),
        [
            ("checkpoints", "thread_id", b"\xff"),
            ("checkpoints", "parent_checkpoint_id", 7),
            ("checkpoints", "checkpoint", "text"),
            ("checkpoints", "type", None),
            ("checkpoints", "metadata", b"[" * 100_000),
            ("checkpoints", "metadata", b'{"step": ' + b"9" * 5000 + b"}"),
            ("writes", "channel", b"x"),
            ("writes", "idx", "first"),
            ("writes", "task_id", None),
            ("writes", "value", 3),
        ],
    )
    def test_rows_that_no_saver_wrote_are_refused_without_a_traceback(
        self, source: Path, client: SyncClient, table: str, column: str, value: Any
    ) -> None:
        write_chat(source)
        with closing(sqlite3.connect(source)) as db, db:
            made = db.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,))
            plain = made.fetchone()[0].replace("NOT NULL", "").replace("INTEGER", "BLOB")
            db.execute(f"ALTER TABLE {table} RENAME TO old")
            db.execute(
                plain.replace("TEXT", "BLOB").partition("PRIMARY KEY")[0].rstrip(", \n") + ")"
            )
            db.execute(f"INSERT INTO {table} SELECT * FROM old")
            db.execute("DROP TABLE old")
            db.execute(f"UPDATE {table} SET {column} = ?", (value,))

        with pytest.raises(HoldfastError):
            move_in(source, client)

    def test_a_file_of_langgraphs_is_not_opened_as_a_store_but_the_way_over_is_named(
        self, source: Path
    ) -> None:
        write_chat(source)
        before = source.read_bytes()

        ways: list[tuple[Any, Any]] = [
            (source, HoldfastSaver.from_sqlite),
            (str(source), HoldfastSaver.from_sqlite),
            (str(source), HoldfastSaver.from_conn_string),
            (f"sqlite:///{source}", HoldfastSaver.open),
            (f"sqlite:///{source}", HoldfastSaver.from_conn_string),
        ]
        for name, open_ in ways:
            with pytest.raises(StoreFormatError) as refused:
                open_(name)
            assert f"holdfast import langgraph-sqlite {source} --store" in str(refused.value)

        assert source.read_bytes() == before

    def test_a_file_of_any_other_program_is_still_that(self, source: Path) -> None:
        with closing(sqlite3.connect(source)) as db, db:
            db.execute("CREATE TABLE checkpoints (name TEXT)")

        with pytest.raises(StoreFormatError, match="another program"):
            HoldfastSaver.from_sqlite(source)


def holdfast(directory: Path, *arguments: str) -> Any:
    """Run ``holdfast import``."""
    return subprocess.run(
        [sys.executable, "-m", "holdfast", "import", *arguments],
        cwd=directory,
        env={k: v for k, v in os.environ.items() if k != "HOLDFAST_URL"},
        capture_output=True,
        text=True,
    )
