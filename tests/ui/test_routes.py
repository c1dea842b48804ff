"""What a request gives is checked when it is read."""

import pytest

from holdfast.cli.exits import UsageError
from holdfast.ui.routes import Parameters


def given(**parameters: object) -> Parameters:
    return Parameters(parameters, {})


def test_a_text_that_is_empty_is_none() -> None:
    assert given(search="").text("search") is None


def test_what_is_needed_and_not_given_is_refused_by_its_name() -> None:
    with pytest.raises(UsageError, match="session has to be given"):
        given().needed("session")


@pytest.mark.parametrize("limit", ["0", "501", "-1", "1e3", "٣", "9" * 40, 1.5, True])
def test_a_limit_out_of_its_bounds_is_refused(limit: object) -> None:
    with pytest.raises(UsageError, match="limit is a number from 1 to 500"):
        _ = given(limit=limit).limit


def test_a_flag_is_true_or_false_and_nothing_else() -> None:
    assert given(all="1").flag("all")
    assert not given(all="0").flag("all")
    with pytest.raises(UsageError, match="all is true or false"):
        given(all="maybe").flag("all")


def test_a_time_without_a_zone_is_utc() -> None:
    moment = given(since="2026-11-18T10:00").moment("since")

    assert moment is not None
    assert moment.isoformat() == "2026-11-18T10:00:00+00:00"
