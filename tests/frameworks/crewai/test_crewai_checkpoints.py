"""Crews are kept after each task, exactly, and go on from there."""

import gc
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crewai import Crew, Task
from crewai.agents.agent_builder.base_agent import _LLM_TYPE_REGISTRY
from crewai.flow.flow import Flow, start
from crewai.tasks.conditional_task import ConditionalTask
from pydantic import BaseModel

from holdfast import Framework, SyncClient
from holdfast.adapters.crewai import HoldfastCheckpoints, HoldfastFlowPersistence
from holdfast.errors import (
    AdapterError,
    InvalidArgumentError,
    SessionLostError,
    StoreClosedError,
)
from tests.frameworks.crewai.crews import (
    BROKEN,
    Broken,
    Known,
    Loud,
    agent,
    asked,
    call,
    crew,
    raws,
    used,
)

INPUTS = {"what": "Bergen"}


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture
def checkpoints(url: str) -> Iterator[HoldfastCheckpoints]:
    with HoldfastCheckpoints(session_id="s", url=url) as made:
        yield made


def cut_after_two(checkpoints: HoldfastCheckpoints, **options: Any) -> Crew:
    """Run a crew whose model fails in its third task."""
    made = crew(
        [call("lookup", city="Bergen")],
        "warm",
        "written",
        Broken(),
        callback=checkpoints,
        **options,
    )
    with pytest.raises(Broken):
        made.kickoff(inputs=INPUTS)
    return made


def test_every_task_is_kept_though_its_tools_are_functions(
    checkpoints: HoldfastCheckpoints,
) -> None:
    cut_after_two(checkpoints)

    steps = checkpoints.client.timeline("crewai", "s")
    assert [info.step_name for info in steps] == ["task 2: Write about it.", "task 1: Find Bergen."]
    assert {info.framework for info in steps} == {Framework.CREWAI}


def test_what_is_done_is_not_done_again(checkpoints: HoldfastCheckpoints) -> None:
    cut_after_two(checkpoints)
    used.clear()
    again = crew("signed", callback=checkpoints)

    assert checkpoints.resume(again)
    output = again.kickoff(inputs=INPUTS)

    assert raws(output) == ["warm", "written", "signed"]
    assert len(asked(again)) == 1
    assert used == []
    assert "written" in str(asked(again)[0])  # the task before is its context


def test_a_new_session_has_nothing_to_go_on_from(checkpoints: HoldfastCheckpoints) -> None:
    made = crew("a", "b", "c", callback=checkpoints)

    assert not checkpoints.resume(made)
    assert checkpoints.latest() is None
    assert made.kickoff(inputs=INPUTS, from_checkpoint=checkpoints.latest()).raw == "c"


def test_the_way_of_crewai_goes_on_too_with_the_programs_own_tools_and_models(
    checkpoints: HoldfastCheckpoints,
) -> None:
    cut_after_two(checkpoints)
    again = crew([call("lookup", city="Köln")], "signed", callback=checkpoints)
    used.clear()

    output = again.kickoff(inputs=INPUTS, from_checkpoint=checkpoints.latest())

    assert raws(output) == ["warm", "written", "signed"]
    assert used == ["Köln"]
    assert checkpoints.client.timeline("crewai", "s")[0].step_name == "task 3: Sign it."


def test_a_crew_that_is_all_text_is_made_from_the_checkpoint_alone(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(_LLM_TYPE_REGISTRY, "known", f"{Known.__module__}.Known")
    with HoldfastCheckpoints(session_id="s", url=url) as first:
        made = crew("a", BROKEN, "c", callback=first, tools=[Loud()], kind=Known)
        with pytest.raises(Broken):
            made.kickoff(inputs=INPUTS)
    with HoldfastCheckpoints(session_id="s", url=url) as second:
        latest = second.latest()
        assert latest is not None
        restored = Crew.from_checkpoint(latest)

    assert [task.output and task.output.raw for task in restored.tasks] == ["a", None, None]
    assert restored.agents[0].tools[0].name == "loud"
    assert restored.agents[0].llm.api_key is None


def test_a_crew_that_text_cannot_hold_is_not_made_without_what_it_had(
    url: str, checkpoints: HoldfastCheckpoints
) -> None:
    cut_after_two(checkpoints)
    with (
        HoldfastCheckpoints(session_id="s", url=url) as alone,
        pytest.raises(AdapterError, match=r"tool 'lookup' of agent 'writer'.*resume\(crew\)"),
    ):
        alone.latest()


def test_a_tool_of_a_class_that_the_program_does_not_have_is_not_imported(
    checkpoints: HoldfastCheckpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(_LLM_TYPE_REGISTRY, "known", f"{Known.__module__}.Known")
    made = crew("a", BROKEN, callback=checkpoints, tools=[Loud()], kind=Known)
    with pytest.raises(Broken):
        made.kickoff(inputs=INPUTS)
    head = checkpoints.client.latest("crewai", "s")
    assert head is not None
    state = head.execution_state
    state["entities"][0]["agents"][0]["tools"][0]["tool_type"] = "antigravity.Tool"
    checkpoints.client.fork(head.checkpoint_id, "evil", execution_state=state)

    with (
        HoldfastCheckpoints(session_id="evil", client=checkpoints.client) as evil,
        pytest.raises(AdapterError, match=r"antigravity\.Tool"),
    ):
        evil.latest()
    assert "antigravity" not in sys.modules


def test_the_file_that_crewai_reads_is_private_and_gone_afterwards(
    checkpoints: HoldfastCheckpoints,
) -> None:
    cut_after_two(checkpoints)
    again = crew("signed", callback=checkpoints)
    latest = checkpoints.latest()
    assert latest is not None
    file = Path(str(latest.restore_from))

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    again.kickoff(inputs=INPUTS, from_checkpoint=latest)
    assert not file.parent.exists()


def test_the_file_is_gone_when_nobody_restores_from_it(checkpoints: HoldfastCheckpoints) -> None:
    cut_after_two(checkpoints)
    kept = crew("signed", callback=checkpoints)
    latest = checkpoints.latest()
    assert latest is not None
    file = Path(str(latest.restore_from))
    del latest
    gc.collect()

    assert kept is not None
    assert not file.parent.exists()


def test_after_a_rollback_the_crew_goes_on_from_the_older_checkpoint(
    checkpoints: HoldfastCheckpoints,
) -> None:
    cut_after_two(checkpoints)
    with checkpoints.client.session("crewai", "s") as run:
        run.rollback(steps=1)
    again = crew("written anew", "signed", callback=checkpoints)

    assert checkpoints.resume(again)
    assert raws(again.kickoff(inputs=INPUTS)) == ["warm", "written anew", "signed"]


def test_a_rollback_on_the_command_line_reaches_an_object_that_was_there_before(
    url: str, checkpoints: HoldfastCheckpoints
) -> None:
    cut_after_two(checkpoints)
    first = checkpoints.client.timeline("crewai", "s")[-1].checkpoint_id
    subprocess.run(
        [sys.executable, "-m", "holdfast", "--store", url, "rollback", first, "--yes"],
        check=True,
        capture_output=True,
    )
    again = crew("b", "c", callback=checkpoints)

    output = again.kickoff(inputs=INPUTS, from_checkpoint=checkpoints.latest())

    assert raws(output) == ["warm", "b", "c"]


def test_a_fork_goes_on_by_itself(checkpoints: HoldfastCheckpoints) -> None:
    cut_after_two(checkpoints)
    first = checkpoints.client.timeline("crewai", "s")[-1].checkpoint_id
    checkpoints.client.fork(first, "other")
    with HoldfastCheckpoints(session_id="other", client=checkpoints.client) as other:
        made = crew("another way", "signed", callback=other)
        other.resume(made)
        assert raws(made.kickoff(inputs=INPUTS)) == ["warm", "another way", "signed"]

    assert len(checkpoints.client.timeline("crewai", "s")) == 2


def test_a_diff_tells_what_a_task_gave(checkpoints: HoldfastCheckpoints) -> None:
    cut_after_two(checkpoints)
    second, first = checkpoints.client.timeline("crewai", "s")

    diff = str(checkpoints.client.diff(first.checkpoint_id, second.checkpoint_id))

    assert "$.entities[0].tasks[1].output" in diff


def test_a_checkpoint_that_cannot_be_written_ends_the_kickoff(url: str) -> None:
    client = SyncClient.open(url)
    checkpoints = HoldfastCheckpoints(session_id="s", client=client)
    made = crew("a", "b", "c", callback=checkpoints)
    client.close()

    with pytest.raises(StoreClosedError):
        made.kickoff(inputs=INPUTS)


def test_a_field_that_cannot_be_written_down_does_not_keep_a_crew_from_being_kept(
    checkpoints: HoldfastCheckpoints,
) -> None:
    def build(*answers: Any) -> Crew:
        made = crew(*answers, callback=checkpoints)
        made.embedder = object()
        made.agents[0].embedder = object()
        return made

    with pytest.raises(Broken):
        build("a", Broken()).kickoff(inputs=INPUTS)
    head = checkpoints.client.latest("crewai", "s")
    assert head is not None
    assert {"crew.embedder", "agents[0].embedder"} <= set(head.execution_state["live"])
    again = build("b", "c")

    output = again.kickoff(inputs=INPUTS, from_checkpoint=checkpoints.latest())
    assert raws(output) == ["a", "b", "c"]


def test_keys_of_models_are_in_no_checkpoint(checkpoints: HoldfastCheckpoints) -> None:
    cut_after_two(checkpoints)

    head = checkpoints.client.latest("crewai", "s")

    assert head is not None
    assert "sk-secret" not in str(head.execution_state)


def test_finished_tasks_that_are_others_now_are_refused(checkpoints: HoldfastCheckpoints) -> None:
    cut_after_two(checkpoints)
    other = crew(
        "c", callback=checkpoints, descriptions=("Find {what}.", "Sing of it.", "Sign it.")
    )

    with pytest.raises(AdapterError, match=r"task 2, which is done, was 'Write about it\.'"):
        checkpoints.resume(other)


def test_other_inputs_than_finished_tasks_were_given_are_refused(
    checkpoints: HoldfastCheckpoints,
) -> None:
    cut_after_two(checkpoints)
    again = crew("signed", callback=checkpoints)
    checkpoints.resume(again)

    with pytest.raises(AdapterError, match="given what='Bergen', and kickoff is given 'Oslo'"):
        again.kickoff(inputs={"what": "Oslo"})

    assert asked(again) == []
    assert raws(again.kickoff(inputs=INPUTS)) == ["warm", "written", "signed"]


@pytest.mark.parametrize("inputs", [None, {"what": "Bergen", "who": "Ada"}])
def test_inputs_that_no_finished_task_was_given_may_change(
    checkpoints: HoldfastCheckpoints, inputs: Any
) -> None:
    cut_after_two(checkpoints)
    again = crew("signed", callback=checkpoints)
    checkpoints.resume(again)
    checkpoints.resume(again)

    assert raws(again.kickoff(inputs=inputs)) == ["warm", "written", "signed"]
    assert again.before_kickoff_callbacks == []


def test_tasks_that_are_yet_to_come_may_change(checkpoints: HoldfastCheckpoints) -> None:
    cut_after_two(checkpoints)
    descriptions = ("Find {what}.", "Write about it.", "Seal it.", "Send it.")
    longer = crew("sealed", "sent", callback=checkpoints, descriptions=descriptions)

    checkpoints.resume(longer)

    assert raws(longer.kickoff(inputs=INPUTS)) == ["warm", "written", "sealed", "sent"]


def test_a_crew_that_is_done_gives_its_output_again(checkpoints: HoldfastCheckpoints) -> None:
    crew("a", "b", "c", callback=checkpoints).kickoff(inputs=INPUTS)
    again = crew(callback=checkpoints)

    checkpoints.resume(again)

    assert raws(again.kickoff(inputs=INPUTS)) == ["a", "b", "c"]
    assert asked(again) == []


def test_a_crew_kicked_off_anew_does_not_count_what_it_did_before(
    checkpoints: HoldfastCheckpoints,
) -> None:
    made = crew("a", "b", "c", "a2", Broken(), callback=checkpoints)
    made.kickoff(inputs=INPUTS)
    with pytest.raises(Broken):
        made.kickoff(inputs=INPUTS)
    again = crew("b2", "c2", callback=checkpoints)

    checkpoints.resume(again)

    assert raws(again.kickoff(inputs=INPUTS)) == ["a2", "b2", "c2"]


def test_the_inputs_are_those_of_the_first_kickoff_unless_others_are_given(
    checkpoints: HoldfastCheckpoints,
) -> None:
    descriptions = ("Find {what}.", "Write of {what}.")
    made = crew("a", Broken(), callback=checkpoints, descriptions=descriptions)
    with pytest.raises(Broken):
        made.kickoff(inputs=INPUTS)
    again = crew("b", callback=checkpoints, descriptions=descriptions)

    again.kickoff(from_checkpoint=checkpoints.latest())

    assert "Write of Bergen." in str(asked(again)[0])


def test_a_task_takes_its_context_from_tasks_that_come_after_the_resume(
    checkpoints: HoldfastCheckpoints,
) -> None:
    def build(*answers: Any) -> Crew:
        writer = agent(*answers)
        one = Task(description="one", expected_output="text", agent=writer)
        two = Task(description="two", expected_output="text", agent=writer)
        three = Task(description="three", expected_output="text", agent=writer, context=[two])
        return Crew(agents=[writer], tasks=[one, two, three], task_callback=checkpoints)

    with pytest.raises(Broken):
        build("a", Broken()).kickoff()
    again = build("of the second", "c")

    again.kickoff(from_checkpoint=checkpoints.latest())

    assert "of the second" in str(asked(again)[1])


class Report(BaseModel):
    """What a task may give."""

    title: str


def test_an_output_of_a_class_comes_back_as_one(checkpoints: HoldfastCheckpoints) -> None:
    def build(*answers: Any) -> Crew:
        writer = agent(*answers)
        tasks = [
            Task(description="one", expected_output="text", agent=writer, output_pydantic=Report),
            Task(description="two", expected_output="text", agent=writer),
        ]
        return Crew(agents=[writer], tasks=tasks, task_callback=checkpoints)

    with pytest.raises(Broken):
        build('{"title": "Süd"}', Broken()).kickoff()
    again = build("two")
    checkpoints.resume(again)

    assert again.kickoff().tasks_output[0].pydantic == Report(title="Süd")


def test_a_conditional_task_that_was_passed_over_does_not_have_others_done_again(
    checkpoints: HoldfastCheckpoints,
) -> None:
    def build(*answers: Any) -> Crew:
        writer = agent(*answers)
        options = {"expected_output": "text", "agent": writer}
        tasks = [
            Task(description="one", **options),
            ConditionalTask(description="two", condition=lambda _: False, **options),
            Task(description="three", **options),
            Task(description="four", **options),
        ]
        return Crew(agents=[writer], tasks=tasks, task_callback=checkpoints)

    with pytest.raises(Broken):
        build("a", "c", Broken()).kickoff()
    again = build("d")
    checkpoints.resume(again)

    assert raws(again.kickoff()) == ["a", "", "c", "d"]


def test_tasks_that_run_at_once_are_kept(checkpoints: HoldfastCheckpoints) -> None:
    writers = [agent("a"), agent("b"), agent("c")]
    tasks = [
        Task(
            description=name, expected_output="text", agent=writer, async_execution=name != "three"
        )
        for name, writer in zip(("one", "two", "three"), writers, strict=True)
    ]
    Crew(agents=writers, tasks=tasks, task_callback=checkpoints).kickoff()

    assert len(checkpoints.client.timeline("crewai", "s")) == 3


@pytest.mark.parametrize("way", ["kickoff_async", "akickoff"])
async def test_crews_that_are_kicked_off_on_an_event_loop_are_kept_too(
    way: str, checkpoints: HoldfastCheckpoints
) -> None:
    with pytest.raises(Broken):
        await getattr(crew("a", Broken(), callback=checkpoints), way)(inputs=INPUTS)
    again = crew("b", "c", callback=checkpoints)
    checkpoints.resume(again)

    assert raws(await getattr(again, way)(inputs=INPUTS)) == ["a", "b", "c"]
    assert len(checkpoints.client.timeline("crewai", "s")) == 3


def test_a_crew_in_a_flow_is_kept_as_a_crew(checkpoints: HoldfastCheckpoints) -> None:
    made = crew("a", "b", "c", callback=checkpoints)

    class Working(Flow[Any]):
        @start()
        def work(self) -> str:
            return str(made.kickoff(inputs=INPUTS).raw)

    assert Working().kickoff() == "c"
    head = checkpoints.client.latest("crewai", "s")
    assert head is not None
    assert [each["entity_type"] for each in head.execution_state["entities"]] == ["crew"]


def test_a_task_that_is_done_keeps_when_and_by_whom(checkpoints: HoldfastCheckpoints) -> None:
    first = cut_after_two(checkpoints)
    again = crew("signed", callback=checkpoints)
    checkpoints.resume(again)

    for name in ("start_time", "end_time", "processed_by_agents", "prompt_context"):
        assert getattr(again.tasks[0], name) == getattr(first.tasks[0], name)


def test_the_users_own_callbacks_are_called_and_come_from_the_program_again(
    checkpoints: HoldfastCheckpoints,
) -> None:
    told: list[str] = []

    def build(*answers: Any) -> Crew:
        made = crew(*answers, callback=checkpoints, descriptions=("one", "two"))
        for task in made.tasks:
            task.callback = lambda output: told.append(output.raw)
        return made

    with pytest.raises(Broken):
        build("a", Broken()).kickoff()
    build("b").kickoff(from_checkpoint=checkpoints.latest())

    assert told == ["a", "b"]


def test_two_crews_at_once_in_one_session_are_refused(checkpoints: HoldfastCheckpoints) -> None:
    inner = crew("x", callback=checkpoints, descriptions=("inner",))
    outer = crew("a", "b", callback=checkpoints, descriptions=("one", "two"))
    outer.tasks[1].callback = lambda _: inner.kickoff()

    with pytest.raises(AdapterError, match="two report to it at once"):
        outer.kickoff()


def test_another_process_that_works_on_the_session_is_told_of(
    url: str, checkpoints: HoldfastCheckpoints
) -> None:
    made = crew("a", "b", "c", callback=checkpoints)

    def another(_: Any) -> None:
        with HoldfastCheckpoints(session_id="s", url=url) as other:
            crew("x", callback=other, descriptions=("one",)).kickoff()

    made.tasks[1].callback = another

    with pytest.raises(SessionLostError, match="written by another"):
        made.kickoff(inputs=INPUTS)


def test_files_are_kept_with_each_task_and_go_back_with_it(url: str, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    book = place / "book.txt"
    with HoldfastCheckpoints(session_id="s", url=url, workspace=place) as checkpoints:
        made = crew("a", "b", Broken(), callback=checkpoints)
        for task in made.tasks:
            task.callback = lambda output: book.write_text(output.raw)
        with pytest.raises(Broken):
            made.kickoff(inputs=INPUTS)
        assert book.read_text() == "b"

        with checkpoints.client.session("crewai", "s", workspace=place) as run:
            run.rollback(steps=1)

        assert book.read_text() == "a"
        again = crew("b2", "c2", callback=checkpoints)
        checkpoints.resume(again)
        assert raws(again.kickoff(inputs=INPUTS)) == ["a", "b2", "c2"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"session_id": ""}, "session_id"),
        ({"session_id": 7}, "session_id"),
        ({"session_id": "s", "url": "memory://", "client": SyncClient.memory()}, "not both"),
        ({"session_id": "s", "client": object()}, "not object"),
    ],
)
def test_what_is_no_session_or_store_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidArgumentError, match=told):
        HoldfastCheckpoints(**options)


def test_it_is_called_with_outputs_of_tasks_alone(checkpoints: HoldfastCheckpoints) -> None:
    with pytest.raises(InvalidArgumentError, match="output of a task, not with str"):
        checkpoints("done")
    with pytest.raises(InvalidArgumentError, match="a Crew, not str"):
        checkpoints.resume("crew")


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda entity: entity["tasks"].__setitem__(0, 7), "holds no crew"),
        (lambda entity: entity.pop("agents"), "holds no crew"),
        (lambda entity: entity["tasks"][0].update(output="text"), "output of task 1 is damaged"),
        (lambda entity: entity["tasks"][0]["output"].pop("agent"), "output of task 1 is damaged"),
        (lambda entity: entity["tasks"][0].update(start_time="soon"), "output of task 1"),
    ],
)
def test_a_damaged_crew_is_told_of(
    checkpoints: HoldfastCheckpoints, damage: Any, told: str
) -> None:
    cut_after_two(checkpoints)
    head = checkpoints.client.latest("crewai", "s")
    assert head is not None
    damage(head.execution_state["entities"][0])
    checkpoints.client.fork(head.checkpoint_id, "bad", execution_state=head.execution_state)

    with (
        HoldfastCheckpoints(session_id="bad", client=checkpoints.client) as bad,
        pytest.raises(AdapterError, match=told),
    ):
        bad.resume(crew(callback=bad))


def test_a_session_of_something_else_is_refused(url: str, checkpoints: HoldfastCheckpoints) -> None:
    checkpoints.client.save("crewai", execution_state={}, session_id="s")
    with pytest.raises(AdapterError, match="is of custom, not of crewai"):
        checkpoints.latest()

    flows = HoldfastFlowPersistence(url=url)
    flows.save_state("flow", "begin", {"id": "flow"})
    flows.close()
    with (
        HoldfastCheckpoints(session_id="flow", url=url) as other,
        pytest.raises(AdapterError, match="holds no crew of CrewAI"),
    ):
        other.latest()
