"""What is said of records that an index would not find, by itself; stores are asked elsewhere."""

import pytest

from holdfast import CheckpointIntegrityError
from holdfast.stores.shared.misfiled import asked_for, reasons
from holdfast.testing.samples import make_commit


def test_a_record_that_an_index_gives_in_place_of_another_is_damage() -> None:
    info = make_commit().info
    known = {info.checkpoint_id: info}

    assert asked_for(known, info.checkpoint_id) is info
    with pytest.raises(CheckpointIntegrityError, match="the index of ids leads to 'other'"):
        asked_for(known, "other")


def test_a_session_that_is_filed_as_touched_before_its_record_is_told() -> None:
    info, place = make_commit().info, 5 << 30

    assert list(reasons(info, place, 5, frozenset())) == []
    for touched in (4, None, "5"):
        ((checkpoint_id, why),) = reasons(info, place, touched, frozenset())
        assert checkpoint_id == info.checkpoint_id
        assert "listings miss it" in why
