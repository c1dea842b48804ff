"""In notebooks: what a client gives is shown as a table, and is otherwise what it was."""

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import SyncClient


@pytest.fixture
def memory() -> Iterator[SyncClient]:
    """A client with a session of three checkpoints and a fork."""
    with SyncClient.memory() as client:
        for step in range(3):
            client.save(
                "coder",
                execution_state={"step": step, "note": "<b>bold</b>"},
                session_id="fix-42",
                step_index=step,
                step_name=f"step {step}",
                branch="main",
            )
        client.fork(client.timeline("coder", "fix-42")[1].checkpoint_id, session_id="bolder")
        yield client


def html(value: Any) -> str:
    page = value._repr_html_()
    assert page.startswith("<table")
    assert page.endswith("</table>")
    assert "<b>bold" not in page
    return str(page)


def test_a_checkpoint_shows_its_state(memory: SyncClient) -> None:
    head = memory.latest("coder", "fix-42")
    page = html(head)

    assert head is not None
    assert head.checkpoint_id in page
    assert "$.note" in page
    assert "&lt;b&gt;bold&lt;/b&gt;" in page


def test_listings_are_shown_newest_first(memory: SyncClient) -> None:
    for listed in (memory.timeline("coder", "fix-42"), memory.find(session_id="fix-42")):
        page = html(listed)
        assert page.index("step 2") < page.index("step 1") < page.index("step 0")
    assert "bolder" in html(memory.find())
    assert "step 2" in html(memory.timeline("coder", "fix-42", with_state=True))
    assert "0 checkpoints" in html(memory.find(agent_id="nobody"))


def test_the_history_of_a_run_is_shown(memory: SyncClient) -> None:
    with memory.session("coder", session_id="fix-42") as run:
        assert "step 2" in html(run.history())


def test_a_listing_is_a_list_in_every_other_way(memory: SyncClient) -> None:
    listed = memory.timeline("coder", "fix-42")
    plain = list(listed)

    assert isinstance(listed, list)
    assert listed == plain
    assert plain == listed
    assert repr(listed) == repr(plain)
    assert listed[1:] == plain[1:]
    assert listed[::-1] + listed == plain[::-1] + plain
    assert listed[0] is plain[0]
    assert copy.deepcopy(listed) == pickle.loads(pickle.dumps(listed)) == plain
    assert memory.find(agent_id="nobody") == []


def test_a_part_of_a_listing_is_shown_too(memory: SyncClient) -> None:
    assert "step 0" not in html(memory.timeline("coder", "fix-42")[:2])


def test_a_listing_in_a_state_comes_back_equal(memory: SyncClient) -> None:
    listed = memory.timeline("coder", "fix-42")
    saved = memory.save("coder", execution_state={"listed": listed})

    assert memory.restore(saved).execution_state["listed"] == listed


def test_a_diff_a_tree_and_an_exploration_are_shown(memory: SyncClient) -> None:
    newest, *_, oldest = memory.timeline("coder", "fix-42")

    def change(run: Any) -> None:
        run.state["way"] = "<b>bold</b>"

    def fail(run: Any) -> None:
        raise OSError("<b>bold</b>")

    explored = memory.explore(
        newest.checkpoint_id, {"good": change, "bad": fail}, score=lambda run: 1.0
    )

    assert "$.step" in html(memory.diff(oldest.checkpoint_id, newest.checkpoint_id))
    assert "none" in html(memory.diff(newest.checkpoint_id, newest.checkpoint_id))
    assert "bolder" in html(memory.tree("coder", "fix-42"))
    assert "best: good" in html(explored)


def test_showing_reads_nothing(memory: SyncClient) -> None:
    newest, *_, oldest = listed = memory.timeline("coder", "fix-42")
    shown = [
        memory.latest("coder", "fix-42"),
        newest,
        listed,
        memory.diff(oldest.checkpoint_id, newest.checkpoint_id),
        memory.tree("coder", "fix-42"),
    ]
    memory.close()

    assert all(map(html, shown))
