"""holdfast bisect: the first bad checkpoint, found by looking at few."""

import pytest

from holdfast import SyncClient
from tests.cli.kit import Holdfast


@pytest.fixture
def account(holdfast: Holdfast) -> Holdfast:
    """Twenty checkpoints; the balance is wrong from the fourteenth on."""
    holdfast.ok("init")
    with SyncClient.sqlite(holdfast.directory / ".holdfast" / "holdfast.db") as client:
        for number in range(20):
            state = {"n": number, "balance": 100 - number if number < 14 else -1}
            client.save("bank", execution_state=state, session_id="year", step_name=f"day {number}")
    return holdfast


def test_an_expression_finds_the_first_bad_one(account: Holdfast) -> None:
    found = account.json("bisect", "--python", "state['balance'] >= 0")

    assert found["first_bad"]["step_name"] == "day 14"
    assert len(found["tested"]) <= 6


def test_a_command_is_given_the_state_and_says_by_its_exit_code(account: Holdfast) -> None:
    command = """python3 -c "import json,sys; sys.exit(json.load(sys.stdin)['balance'] < 0)" """

    assert "day 14" in account.ok("bisect", "year", "--run", command)


def test_what_cannot_be_tested_is_skipped(account: Holdfast) -> None:
    command = """python3 -c "
import json, sys
state = json.load(sys.stdin)
sys.exit(125 if state['n'] == 14 else state['balance'] < 0)" """

    found = account.json("bisect", "--run", command)

    assert found["first_bad"] is None
    assert len(found["suspects"]) == 2


def test_a_good_head_means_that_nothing_is_bad(account: Holdfast) -> None:
    found = account.json("bisect", "--python", "True")

    assert (found["first_bad"], found["suspects"]) == (None, [])


@pytest.mark.parametrize("how", [["--run", "exit 130"], ["--python", "state['nothing']"]])
def test_a_test_that_fails_itself_ends_the_search(account: Holdfast, how: list[str]) -> None:
    done = account("bisect", *how)

    assert (done.code, done.out) == (1, "")
