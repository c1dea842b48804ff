"""The state of flows, kept by Holdfast where CrewAI's own persistence keeps it in SQLite."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from crewai.flow.async_feedback.types import PendingFeedbackContext
from crewai.flow.flow import Flow, listen, start
from crewai.flow.persistence import SQLiteFlowPersistence, persist
from crewai.flow.persistence.factory import set_flow_persistence_factory
from pydantic import BaseModel, ValidationError

from holdfast.adapters.crewai import HoldfastFlowPersistence
from holdfast.errors import AdapterError, SerializationError


@pytest.fixture
def persistence(tmp_path: Path) -> Iterator[HoldfastFlowPersistence]:
    made = HoldfastFlowPersistence(url=f"sqlite:///{tmp_path / 'store.db'}")
    yield made
    made.close()


@pytest.fixture(params=["ours", "theirs"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """CrewAI's own persistence and ours, of which the same is true."""
    if request.param == "theirs":
        yield SQLiteFlowPersistence(str(tmp_path / "flows.db"))
        return
    made = HoldfastFlowPersistence(url=f"sqlite:///{tmp_path / 'store.db'}")
    yield made
    made.close()


class Found(BaseModel):
    """The state of a flow, as a class."""

    id: str
    count: int = 0
    when: datetime | None = None


def question(flow_id: str) -> PendingFeedbackContext:
    return PendingFeedbackContext(
        flow_id=flow_id,
        flow_class="tests.Flow",
        method_name="review",
        method_output={"text": "draft"},
        message="Good?",
        emit=["yes", "no"],
        default_outcome="no",
    )


def test_the_newest_state_comes_back(either: Any) -> None:
    either.save_state("f", "one", {"id": "f", "count": 1, "list": [1, {"a": None}]})
    either.save_state("f", "two", {"id": "f", "count": 2})
    either.save_state("other", "one", {"id": "other"})

    assert either.load_state("f") == {"id": "f", "count": 2}
    assert either.load_state("nobody") is None


def test_a_state_of_a_class_comes_back_as_data(either: Any) -> None:
    state = Found(id="f", count=3, when=datetime(2026, 11, 18, tzinfo=UTC))
    either.save_state("f", "one", state)

    assert Found.model_validate(either.load_state("f")) == state


def test_models_inside_a_state_are_data(either: Any) -> None:
    either.save_state("f", "one", {"id": "f", "found": Found(id="x", count=1)})

    loaded = either.load_state("f")
    assert Found.model_validate(loaded["found"]) == Found(id="x", count=1)


def test_what_is_no_state_is_refused(either: Any) -> None:
    with pytest.raises(ValueError, match="dict"):
        either.save_state("f", "one", ["no", "state"])


def test_a_question_waits_until_it_is_answered(either: Any) -> None:
    either.save_state("f", "draft", {"id": "f", "text": "draft"})
    either.save_pending_feedback("f", question("f"), {"id": "f", "text": "draft 2"})

    state, context = either.load_pending_feedback("f")
    assert state == {"id": "f", "text": "draft 2"}
    assert (context.method_name, context.message, context.emit) == (
        "review",
        "Good?",
        ["yes", "no"],
    )
    assert either.load_state("f") == {"id": "f", "text": "draft 2"}

    either.save_state("f", "meanwhile", {"id": "f", "text": "draft 3"})
    assert either.load_pending_feedback("f") is not None
    either.clear_pending_feedback("f")
    assert either.load_pending_feedback("f") is None
    assert either.load_state("f") == {"id": "f", "text": "draft 3"}


def test_answering_what_was_never_asked_does_nothing(either: Any) -> None:
    either.clear_pending_feedback("f")
    assert either.load_pending_feedback("f") is None


def test_a_flow_goes_on_with_its_state(persistence: HoldfastFlowPersistence) -> None:
    @persist(persistence)
    class Counting(Flow[Any]):
        @start()
        def count(self) -> None:
            self.state["count"] = self.state.get("count", 0) + 1

        @listen(count)
        def twice(self) -> int:
            self.state["twice"] = self.state["count"] * 2
            return int(self.state["twice"])

    first = Counting()
    first.kickoff()
    flow_id = first.state["id"]

    assert Counting().kickoff(inputs={"id": flow_id}) == 4
    names = [i.step_name for i in persistence.client.timeline("crewai", flow_id)]
    assert names == ["twice", "count", "twice", "count"]


def test_after_a_rollback_a_flow_finds_the_older_state(
    persistence: HoldfastFlowPersistence,
) -> None:
    for count in (1, 2, 3):
        persistence.save_state("f", f"step {count}", {"id": "f", "count": count})
    with persistence.client.session("crewai", "f") as run:
        run.rollback(steps=2)

    assert persistence.load_state("f") == {"id": "f", "count": 1}
    persistence.save_state("f", "on", {"id": "f", "count": 10})
    assert persistence.load_state("f") == {"id": "f", "count": 10}


def test_every_flow_of_a_program_may_be_kept_so(persistence: HoldfastFlowPersistence) -> None:
    set_flow_persistence_factory(lambda: persistence)
    try:

        @persist()
        class Short(Flow[Any]):
            @start()
            def begin(self) -> str:
                self.state["done"] = True
                return "done"

        flow = Short()
        flow.kickoff()
    finally:
        set_flow_persistence_factory(None)

    found = persistence.load_state(flow.state["id"])
    assert found is not None
    assert found["done"] is True


def test_types_are_kept_that_json_has_not(persistence: HoldfastFlowPersistence) -> None:
    state = {"id": "f", "when": datetime(2026, 11, 18, tzinfo=UTC), "seen": {1, 2}, "at": (1, 2)}
    persistence.save_state("f", "one", state)

    assert persistence.load_state("f") == state


def test_what_cannot_be_kept_is_named_and_ends_the_flow(
    persistence: HoldfastFlowPersistence,
) -> None:
    with pytest.raises(SerializationError, match=r"flow_state\.stream"):
        persistence.save_state("f", "one", {"id": "f", "stream": (x for x in "ab")})

    @persist(persistence)
    class Bad(Flow[Any]):
        @start()
        def begin(self) -> None:
            self.state["stream"] = (x for x in "ab")

    with pytest.raises(RuntimeError, match="State persistence failed"):
        Bad().kickoff()


def test_a_password_in_its_url_is_shown_nowhere(tmp_path: Path) -> None:
    made = HoldfastFlowPersistence(url=f"sqlite:///{tmp_path / 's.db'}")
    made.url = "postgresql://me:hunter2@db/flows"

    assert "hunter2" not in repr(made)
    assert "hunter2" not in str(made.model_dump(mode="json"))
    made.close()


def test_a_store_has_to_be_named() -> None:
    with pytest.raises(ValidationError, match="url"):
        HoldfastFlowPersistence()
    with pytest.raises(ValueError, match="no store is called 'nosuch'") as raised:
        HoldfastFlowPersistence(url="nosuch://me:hunter2@place")
    assert "hunter2" not in str(raised.value)


def test_a_session_of_something_else_is_refused(persistence: HoldfastFlowPersistence) -> None:
    persistence.client.save("crewai", "crewai", {"messages": []}, session_id="talk")
    with pytest.raises(AdapterError, match="holds no state of a flow"):
        persistence.load_state("talk")
