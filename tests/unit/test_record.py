"""The record: written and read in every form as it was, whatever its version."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Checkpoint, CheckpointBuilder, Framework, SchemaMigrationError
from holdfast.core.codec import pack, unpack
from holdfast.core.json_form import to_json, unrevived
from holdfast.errors import CheckpointIntegrityError, InvalidArgumentError
from holdfast.model import (
    FIELDS,
    CheckpointInfo,
    check_known,
    check_record,
    checksum_fits,
    new_info,
)
from holdfast.model.decoding import (
    info_of_columns,
    info_of_packed,
    info_of_plain,
    info_of_text,
    problem_of,
    revived,
)
from holdfast.model.fields import BY_NAME, FIRST, VERSIONS
from holdfast.model.record import body_of, covered, packed_of, plain_of, text_of
from holdfast.stores.file.document import compose, read_head
from holdfast.stores.redis.records import pack_record, unpack_record
from holdfast.stores.shared.rows import packed_body
from holdfast.testing.samples import make_commit

INFO = CheckpointInfo(
    checkpoint_id="01a1e27a-853b-712c-8901-1030a5b64961",
    agent_id="coder",
    session_id="fix-42",
    parent_id="my-parent",
    framework=Framework.LANGGRAPH,
    step_index=3,
    step_name="after tests",
    metadata={"branch": "main", "at": (1, 2.5)},
    created_at=datetime(2026, 11, 18, 5, 30, 0, 123456, tzinfo=UTC),
    ttl_seconds=3600.5,
    handoff_target="reviewer",
    handoff_schema="review/1",
    content_id="ab" * 20,
    size=12345,
).with_()
SUM = "e7e823b30f02527bd7197fda90ecc5a2e2c0222928a825ffeeea42e216e10909"
METADATA = b"\x82\xa6branch\xa4main\xa2at\xc7\x0b\x04\x92\x01\xcb@\x04" + bytes(6)
BODY = (
    b"\x97\xa9langgraph\xa31.0\x03\xabafter tests" + METADATA + b"\xcb@\xac!" + bytes(5)
) + b"\xa8review/1"
REDIS = (
    b"\xdc\x00\x10\xc4\x0812345678\xa5coder\xa6fix-42\xa9my-parent\xa9langgraph\xa31.0\x03"
    b"\xabafter tests" + METADATA + b"\xcf\x00\x06`\x86M]\x88@\xcb@\xac!" + bytes(5)
) + b"\xa8reviewer\xa8review/1\xc4 %b\xc4\x14%b\xcd09" % (bytes.fromhex(SUM), b"\xab" * 20)
TEXT = (
    '{"checkpoint_id": "01a1e27a-853b-712c-8901-1030a5b64961", "agent_id": "coder", "session_id": '
    '"fix-42", "parent_id": "my-parent", "framework": "langgraph", "schema_version": "1.0", '
    '"step_index": 3, "step_name": "after tests", "metadata": {"branch": "main", "at": {"$type": '
    '"tuple", "value": [1, 2.5]}}, "created_at": "2026-11-18T05:30:00.123456+00:00", '
    '"ttl_seconds": 3600.5, "handoff_target": "reviewer", "handoff_schema": "review/1", '
    f'"checksum": "{SUM}", "content_id": "{"ab" * 20}", "size": 12345}}'
)


def in_every_form(info: CheckpointInfo) -> dict[str, CheckpointInfo]:
    """The record after it was written and read in each form."""
    values = info.__dict__
    packed = unpack(pack(packed_of(values)), "raw")
    body = unpack(pack(body_of(values)), "raw")
    columns = [value for value, f in zip(packed, FIRST, strict=False) if f.column]
    text = to_json(text_of(values))
    return {
        "packed": info_of_packed(packed),
        "columns": info_of_columns(*columns, body),
        "plain": info_of_plain(unpack(pack(plain_of(values)), "raw")),
        "text": revived(
            info_of_text(unrevived(text)), lambda name: unpack(pack(text_of(values)[name]), "raw")
        ),
    }


def test_a_record_is_written_as_every_release_wrote_it() -> None:
    assert INFO.checksum == SUM
    assert packed_body(INFO) == BODY
    assert pack_record(INFO, b"12345678") == REDIS
    assert json.dumps(to_json(text_of(INFO.__dict__))) == TEXT
    plain = {**{f.name: getattr(INFO, f.name) for f in FIRST}, "framework": "langgraph"}
    assert plain_of(INFO.__dict__) == {**plain, "created_at": 1794979800123456}


NAMES = st.text("abc-é", min_size=1, max_size=20)
INFOS = st.builds(
    CheckpointInfo,
    checkpoint_id=NAMES,
    agent_id=NAMES,
    session_id=NAMES,
    parent_id=st.none() | NAMES,
    framework=st.sampled_from(Framework),
    step_index=st.integers(0, 2**70),
    step_name=st.none() | st.text(),
    metadata=st.dictionaries(st.text() | st.integers(), st.text() | st.tuples(st.integers())),
    created_at=st.datetimes(timezones=st.just(UTC)),
    ttl_seconds=st.none() | st.integers(0, 2**60) | st.floats(0, 1e300),
    handoff_target=st.none() | NAMES,
    handoff_schema=st.none() | st.text(),
    content_id=st.binary(min_size=20, max_size=20).map(bytes.hex),
    size=st.integers(0, 2**62),
).map(CheckpointInfo.with_)


@given(INFOS)
def test_what_was_written_is_read_again_in_every_form(info: CheckpointInfo) -> None:
    check_record(info)
    for form, read in in_every_form(info).items():
        assert read == info, form
        assert checksum_fits(read), form


@given(INFOS, st.dictionaries(st.sampled_from(["zone", "cost", "é"]), st.integers(), min_size=1))
def test_fields_that_are_not_known_are_carried_along_and_proven(
    info: CheckpointInfo, later: dict[str, Any]
) -> None:
    newer = replace(info, later=later, schema_version="9.9").with_()

    for form, read in in_every_form(newer).items():
        assert read == newer, form
        assert checksum_fits(read), form
        assert not checksum_fits(replace(read, later={**later, "more": 1})), form
        assert not checksum_fits(replace(read, later=None)), form
        assert read.with_(parent_id="other").later == later, form
        with pytest.raises(SchemaMigrationError, match="upgrade Holdfast"):
            check_known(read)


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        "",
        "x",
        "x" * 1025,
        b"",
        b"x" * 20,
        0,
        1,
        -1,
        2**70,
        True,
        0.5,
        -0.5,
        float("nan"),
        [],
        {},
    ]
) | st.dictionaries(st.text(max_size=2), st.integers(), max_size=1)
UNREADABLE = (AttributeError, KeyError, OverflowError, TypeError, ValueError)


@given(st.sampled_from([f.name for f in FIRST]), ODD)
def test_a_field_that_no_save_writes_is_refused_wherever_it_is_read(name: str, odd: Any) -> None:
    at = [f.name for f in FIRST].index(name)
    packed = packed_of(INFO.__dict__)
    packed[at] = odd
    converts = BY_NAME[name].type.both("packed") is not None

    try:
        read = info_of_packed(packed)
    except UNREADABLE as error:
        said = str(error)
        assert converts or (name in said and said == problem_of({**INFO.__dict__, name: odd}))
    else:
        assert problem_of(read.__dict__) == ""


@pytest.mark.parametrize(
    ("behind", "problem"),
    [
        ([1], "another shape"),
        ([{}, {}], "more than its fields"),
        ([{"agent_id": "other"}], "another shape"),
        ([{7: "seven"}], "no name"),
    ],
)
def test_what_is_no_field_behind_the_fields_is_refused(behind: list[Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        info_of_packed([*packed_of(INFO.__dict__), *behind])
    with pytest.raises(CheckpointIntegrityError, match=problem):
        unpack_record("id", pack([b"token", *packed_of(INFO.__dict__)[1:], *behind]))


@pytest.mark.parametrize(
    "change",
    [
        {"created_at": "2026-11-18T06:30:00.123456+01:00"},
        {"created_at": "2026-11-18 05:30:00.123456+00:00"},
        {"created_at": "2026-11-18T05:30:00.123456"},
        {"created_at": 1794979800123456},
        {"content_id": "AB" * 20},
        {"content_id": "ab " * 20},
        {"framework": "evil"},
    ],
)
def test_a_document_has_one_way_to_write_a_record(change: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        info_of_text({**text_of(INFO.__dict__), **change})


@pytest.mark.parametrize("missing", [f.name for f in FIRST])
def test_a_record_without_one_of_its_fields_is_none(missing: str) -> None:
    plain, text = plain_of(INFO.__dict__), text_of(INFO.__dict__)
    del plain[missing], text[missing]

    for read, stored in ((info_of_plain, plain), (info_of_text, text)):
        with pytest.raises(ValueError, match="fields are others"):
            read(stored)


def test_the_checksum_covers_every_field_but_itself() -> None:
    names = {f.name for f in FIELDS} - {"checksum"}
    others: dict[str, Any] = {
        **dict.fromkeys(names, "other"),
        "framework": Framework.CUSTOM,
        "created_at": datetime(2000, 1, 1, tzinfo=UTC),
        "metadata": {"other": 1},
    }

    for name in names:
        assert not checksum_fits(replace(INFO, **{name: others[name]})), name
    assert len(covered(INFO.__dict__)) == len(FIRST) - 1


def test_records_are_of_the_first_version_while_no_field_was_added() -> None:
    assert VERSIONS == ("1.0",)
    assert new_info(agent_id="coder").schema_version == "1.0"
    assert CheckpointBuilder("coder").build().schema_version == "1.0"


def test_a_field_that_there_is_not_cannot_be_chosen() -> None:
    for name in ("no_such_field", "checkpoint_id", "checksum", "size"):
        with pytest.raises(TypeError, match=name):
            new_info(**{"agent_id": "coder", name: 1})  # type: ignore[arg-type]


def test_every_new_record_has_metadata_of_its_own() -> None:
    first, second = new_info(agent_id="coder"), new_info(agent_id="coder")

    assert first.metadata == {}
    assert first.metadata is not second.metadata


def test_plain_data_of_a_newer_holdfast_is_refused_with_a_word() -> None:
    data = CheckpointBuilder("coder").build().as_dict()

    with pytest.raises(SchemaMigrationError, match=r"'1.7'.*up to '1.0': upgrade Holdfast"):
        Checkpoint.from_dict({**data, "schema_version": "1.7", "priority": 3})
    with pytest.raises(InvalidArgumentError, match="no such fields in a checkpoint: priority"):
        Checkpoint.from_dict({**data, "priority": 3})


def test_plain_data_without_what_has_a_default_is_a_checkpoint() -> None:
    data = CheckpointBuilder("coder").build().as_dict()
    some = {f.name: data[f.name] for f in FIELDS if f.is_required or f.name == "checksum"}

    assert Checkpoint.from_dict(some).verify_integrity()
    for name in ("agent_id", "created_at"):
        with pytest.raises(InvalidArgumentError, match=f"needs the fields {name}"):
            Checkpoint.from_dict({k: v for k, v in data.items() if k != name})


def test_a_document_of_a_newer_holdfast_is_read_and_proven() -> None:
    commit = make_commit()
    info = replace(commit.info, later={"zone": ("a", 1)}, schema_version="2.0").with_()
    for as_json in (True, False):
        document = compose(replace(commit, info=info), as_json)
        line = document[: document.index(b"\n") + 1]

        assert read_head(line).info == info
        with pytest.raises(CheckpointIntegrityError):
            read_head(line.replace(b'"zone"', b'"none"'))
