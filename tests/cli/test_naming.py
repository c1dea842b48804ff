"""How checkpoints and sessions are named on the command line."""

from pathlib import Path

import pytest

from holdfast import Framework, SyncClient
from holdfast.model import CheckpointBuilder
from tests.cli.kit import Holdfast


@pytest.fixture
def chain(tmp_path: Path) -> tuple[Holdfast, list[str]]:
    """Four checkpoints of one session, and one of an older session."""
    holdfast = Holdfast(tmp_path)
    holdfast.ok("init")
    with SyncClient.sqlite(tmp_path / ".holdfast" / "holdfast.db") as client:
        old = client.save("coder", execution_state={}, session_id="old", step_name="alone")
        names = ("plan", "work", "work", None)
        ids = [
            client.save("coder", session_id="new", step_index=index, step_name=name)
            for index, name in enumerate(names)
        ]
    return holdfast, [*ids, old]


@pytest.mark.parametrize(
    ("named", "index"),
    [
        ("@", 3),
        ("@-", 2),
        ("@--", 1),
        ("@~3", 0),
        ("@~1~1", 1),
        ("new@", 3),
        ("coder/new@~2", 1),
        ("new", 3),
        ("old@", 4),
        ("alone", 4),
        ("work", 2),
        ("work~1", 1),
        ("plan", 0),
    ],
)
def test_a_checkpoint_is_named_by_head_ancestor_step_or_session(
    chain: tuple[Holdfast, list[str]], named: str, index: int
) -> None:
    holdfast, ids = chain

    assert holdfast.json("tasks", named)["checkpoint_id"] == ids[index]


def test_a_checkpoint_is_named_by_the_beginning_or_the_end_of_its_id(
    chain: tuple[Holdfast, list[str]],
) -> None:
    holdfast, ids = chain

    for given in (ids[1], ids[1][:30], ids[1][-6:], ids[1][-12:]):
        assert holdfast.json("tasks", given)["checkpoint_id"] == ids[1]


def test_a_session_option_says_where_names_are_looked_for(
    chain: tuple[Holdfast, list[str]],
) -> None:
    holdfast, ids = chain

    assert holdfast.json("tasks", "@", "--session", "old")["checkpoint_id"] == ids[4]
    assert holdfast("tasks", "plan", "--session", "old").code == 3


def test_what_fits_several_is_refused_with_what_it_fits(chain: tuple[Holdfast, list[str]]) -> None:
    holdfast, ids = chain

    done = holdfast("show", ids[0][:6])

    assert done.code == 4
    assert ids[0] in done.err


def test_an_ancestor_that_is_not_there_is_not_found(chain: tuple[Holdfast, list[str]]) -> None:
    done = chain[0]("show", "@~9")

    assert done.code == 3
    assert "there are 3 checkpoints before" in done.err


def test_a_step_name_that_was_mistyped_gets_a_suggestion(
    chain: tuple[Holdfast, list[str]],
) -> None:
    assert "did you mean alone?" in chain[0]("show", "alnoe").err


def test_a_session_is_named_by_the_beginning_of_its_name(project: Holdfast) -> None:
    assert project.json("effects", "fix")["session_id"] == "fix-42"
    assert project.json("effects", "coder/fix-42")["session_id"] == "fix-42"


def test_a_session_that_two_agents_have_is_named_with_its_agent(holdfast: Holdfast) -> None:
    holdfast.ok("init")
    with SyncClient.sqlite(holdfast.directory / ".holdfast" / "holdfast.db") as client:
        for agent in ("a", "b"):
            client.save(agent, execution_state={}, session_id="same")

    done = holdfast("log", "same")

    assert done.code == 4
    assert "a/same" in done.err
    assert "b/same" in done.err
    assert holdfast.json("log", "b/same")["checkpoints"][0]["agent_id"] == "b"


def test_the_id_that_langgraph_gave_names_a_checkpoint(holdfast: Holdfast) -> None:
    holdfast.ok("init")
    theirs = "1ef5a3b2-0000-6abc-8001-aabbccddeeff"
    with SyncClient.sqlite(holdfast.directory / ".holdfast" / "holdfast.db") as client:
        built = CheckpointBuilder("graph", Framework.LANGGRAPH).session("thread")
        ours = client.put(built.tag(checkpoint_id=theirs).build())

    assert holdfast.json("tasks", theirs)["checkpoint_id"] == ours
