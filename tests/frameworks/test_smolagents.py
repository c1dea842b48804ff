"""Agents of smolagents are kept step by step, with their variables, and go on from there."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from smolagents import (
    ActionStep,
    ChatMessage,
    CodeAgent,
    LogLevel,
    Model,
    TaskStep,
    Tool,
    ToolCallingAgent,
)
from smolagents.agent_types import PIL
from smolagents.models import MessageRole
from smolagents.utils import AgentExecutionError, AgentGenerationError

from holdfast import Framework, SyncClient
from holdfast.adapters.smolagents import Checkpoints
from holdfast.adapters.smolagents.messages import loaded
from holdfast.core.conversation.reading import conversation_in
from holdfast.errors import (
    AdapterError,
    InvalidArgumentError,
    SerializationError,
    SessionBusyError,
    StoreClosedError,
    UnknownEffectError,
)
from tests.frameworks.jobs.smolagents import calls


class PowerCut(BaseException):
    """Ends a run as a kill would."""


class Broken(Exception):
    """What a model raises that is told to fail."""


class Scripted(Model):
    """A model that answers with the next of its answers; what is an exception is raised."""

    def __init__(self, *answers: Any) -> None:
        super().__init__(model_id="scripted")
        self.answers = list(answers)
        self.seen: list[Any] = []

    def generate(self, messages: Any, **options: Any) -> ChatMessage:
        self.seen.append(messages)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, str):
            return ChatMessage(role=MessageRole.ASSISTANT, content=answer)
        assert isinstance(answer, ChatMessage)
        return answer


class Echo(Tool):
    name = "echo"
    description = "Say it again."
    inputs = {"text": {"type": "string", "description": "what"}}  # noqa: RUF012
    output_type = "string"

    def __init__(self, then: Any = None) -> None:
        super().__init__()
        self.made: list[str] = []
        self.then = then

    def forward(self, text: str) -> str:
        self.made.append(text)
        if self.then is not None:
            self.then()
        return text


def echo(text: str, number: int = 1) -> ChatMessage:
    return calls({"id": f"call_{number}", "name": "echo", "arguments": {"text": text}})


def final(answer: str) -> ChatMessage:
    return calls({"id": "call_end", "name": "final_answer", "arguments": {"answer": answer}})


def code(*lines: str) -> str:
    written = "\n".join(lines)
    return f"Thought: now\n<code>\n{written}\n</code>"


def caller(*answers: Any, tool: Tool | None = None, **options: Any) -> ToolCallingAgent:
    own = {"tools": [tool or Echo()], "verbosity_level": LogLevel.OFF}
    return ToolCallingAgent(model=Scripted(*answers), **{**own, **options})


def coder(*answers: Any, **options: Any) -> CodeAgent:
    own = {"tools": [], "verbosity_level": LogLevel.OFF}
    return CodeAgent(model=Scripted(*answers), **{**own, **options})


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture
def checkpoints(url: str) -> Iterator[Checkpoints]:
    with Checkpoints(session_id="s", url=url) as made:
        yield made


def names(checkpoints: Checkpoints) -> list[str | None]:
    return [info.step_name for info in reversed(checkpoints.client.timeline("smolagents", "s"))]


def state_of(checkpoints: Checkpoints) -> Any:
    head = checkpoints.client.latest("smolagents", "s")
    assert head is not None
    return head.execution_state


def test_every_step_is_kept(checkpoints: Checkpoints) -> None:
    assert checkpoints.run(caller(echo("a"), echo("b"), final("done")), "Say it.") == "done"

    assert names(checkpoints) == ["start", "task", "step 1", "step 2", "step 3", "end"]
    assert checkpoints.client.sessions()[0].head.framework is Framework.SMOLAGENTS


def test_after_an_error_it_goes_on_with_the_step_that_failed(checkpoints: Checkpoints) -> None:
    with pytest.raises(AgentGenerationError):
        checkpoints.run(caller(echo("a"), Broken()), "Say it.")
    second = caller(final("done"))

    assert checkpoints.run(second, "Say it.") == "done"

    kinds = [type(step).__name__ for step in second.memory.steps]
    assert kinds == ["TaskStep", "ActionStep", "ActionStep"]
    assert [step.step_number for step in second.memory.steps[1:]] == [1, 2]


def test_a_model_is_asked_the_same_as_if_nothing_had_happened(checkpoints: Checkpoints) -> None:
    whole = caller(echo("a"), final("done"))
    whole.run("Say it.")
    with pytest.raises(PowerCut):
        checkpoints.run(caller(echo("a"), PowerCut()), "Say it.")
    second = caller(final("done"))
    checkpoints.run(second, "Say it.")

    shown = [[(m.role, m.content) for m in each.model.seen[-1]] for each in (whole, second)]
    assert shown[0] == shown[1]


def test_tools_of_the_step_that_was_cut_are_not_run_again(checkpoints: Checkpoints) -> None:
    both = [
        {"id": "call_1", "name": "echo", "arguments": {"text": "a"}},
        {"id": "call_2", "name": "echo", "arguments": {"text": "b"}},
    ]
    first = Echo()

    def cut() -> None:
        if len(first.made) == 2:
            raise PowerCut

    first.then = cut
    with pytest.raises(PowerCut):
        checkpoints.run(caller(calls(*both), tool=first, max_tool_threads=1), "Say it.")
    again = Echo()
    second = caller(final("done"), tool=again)

    assert checkpoints.run(second, "Say it.") == "done"

    assert again.made == ["b"]
    assert second.memory.steps[1].observations == "a\nb"


def test_model_and_tools_are_what_they_were_after_a_run(checkpoints: Checkpoints) -> None:
    tool = Echo()
    agent = caller(echo("a"), final("done"), tool=tool)
    checkpoints.run(agent, "Say it.")

    assert "forward" not in vars(tool)
    assert "generate" not in vars(agent.model)
    assert type(agent) is ToolCallingAgent


def test_as_a_callback_it_keeps_what_others_run_and_goes_on_from_that(
    checkpoints: Checkpoints,
) -> None:
    agent = caller(echo("a"), Broken(), step_callbacks=[checkpoints])
    with pytest.raises(AgentGenerationError):
        agent.run("Say it.")
    assert names(checkpoints) == ["step 1"]

    assert checkpoints.run(caller(final("done")), "Say it.") == "done"


def test_a_task_that_is_done_gives_its_answer_again(checkpoints: Checkpoints) -> None:
    checkpoints.run(caller(final("done")), "Say it.")
    second = caller()

    assert checkpoints.run(second, "Say it.") == "done"
    assert len(second.memory.steps) == 2


def test_with_another_task_it_goes_on_with_what_it_remembers(checkpoints: Checkpoints) -> None:
    checkpoints.run(caller(echo("a"), final("one")), "First.")
    second = caller(final("two"))

    assert checkpoints.run(second, "Second.") == "two"

    tasks = [step.task for step in second.memory.steps if isinstance(step, TaskStep)]
    assert tasks == ["First.", "Second."]
    assert "First." in str(second.model.seen[0])


def test_the_input_of_a_step_is_not_kept_again_with_each(checkpoints: Checkpoints) -> None:
    agent = caller(*[echo(f"{i}") for i in range(15)], final("done"))
    checkpoints.run(agent, "Say it. " + "x" * 5000)

    assert str(state_of(checkpoints)).count("x" * 5000) == 2  # the task, and what was asked


@dataclass
class Boat:
    """What a tool may give to code."""

    name: str


class Build(Tool):
    name = "build"
    description = "Build a boat."
    inputs = {"name": {"type": "string", "description": "its name"}}  # noqa: RUF012
    output_type = "any"

    def forward(self, name: str) -> Any:
        return Boat(name)


def test_variables_come_back_with_their_types(checkpoints: Checkpoints) -> None:
    first = coder(
        code("import math", "kept = {1, 2}", "pair = (1, 'ü')", "boat = build('Süd')"),
        PowerCut(),
        tools=[Build()],
    )
    with pytest.raises(PowerCut):
        checkpoints.run(first, "Build.")
    last = "final_answer(f'{sorted(kept)} {pair} {boat.name} {math.floor(2.5)}')"
    second = coder(code(last), tools=[Build()])

    assert checkpoints.run(second, "Build.") == "[1, 2] (1, 'ü') Süd 2"
    assert second.python_executor.state["boat"] == Boat("Süd")


def test_a_new_task_begins_with_the_variables_of_the_one_before(
    checkpoints: Checkpoints,
) -> None:
    checkpoints.run(coder(code("found = [1]", "final_answer('x')")), "First.")
    with pytest.raises(PowerCut):
        checkpoints.run(coder(PowerCut()), "Second.")

    assert state_of(checkpoints)["variables"] == {"found": [1]}
    assert checkpoints.run(coder(code("final_answer(found)")), "Second.") == [1]


def test_an_argument_that_code_gave_another_value_keeps_that(checkpoints: Checkpoints) -> None:
    first = coder(code("numbers = [7]"), PowerCut())
    with pytest.raises(PowerCut):
        checkpoints.run(first, "Sum.", additional_args={"numbers": [1, 2]})

    assert checkpoints.run(coder(code("final_answer(sum(numbers))")), "Sum.") == 7


def test_code_changes_variables_that_it_shares_with_no_checkpoint(checkpoints: Checkpoints) -> None:
    first = coder(code("found = [1]"), code("found.append(2)", "stop()"), tools=[])
    first.python_executor.additional_functions["stop"] = _cut
    with pytest.raises(PowerCut):
        checkpoints.run(first, "Count.")
    second = coder(code("final_answer(found)"))
    second.python_executor.additional_functions["stop"] = lambda: None

    assert checkpoints.run(second, "Count.") == [1, 2]


def _cut() -> None:
    raise PowerCut


def test_functions_that_the_agent_wrote_are_left_out_and_named(
    checkpoints: Checkpoints, caplog: pytest.LogCaptureFixture
) -> None:
    first = coder(code("def twice(x):", "    return 2 * x", "four = twice(2)"), PowerCut())
    with pytest.raises(PowerCut):
        checkpoints.run(first, "Count.")
    second = coder(code("final_answer(four)"))

    assert checkpoints.run(second, "Count.") == 4
    assert "gone for the agent's code: twice" in caplog.text


CLASS = ("class P:", "    def __init__(self):", "        self.x = 1", "p = P()", "many = [p]")


def go_on_elsewhere(url: str, task: str, line: str) -> str:
    """Go on in another process, which has no class that this one has."""
    program = (
        "import sys; from tests.frameworks.test_smolagents import *\n"
        "with Checkpoints(session_id='s', url=sys.argv[1]) as checkpoints:\n"
        "    print(checkpoints.run(coder(code(sys.argv[3])), sys.argv[2]))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, url, task, line],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or done.stderr


@pytest.mark.parametrize("task", ["Count.", "Another."])
def test_instances_of_classes_that_the_agent_wrote_are_left_out_and_named(
    checkpoints: Checkpoints, url: str, task: str
) -> None:
    with pytest.raises(PowerCut):
        checkpoints.run(coder(code(*CLASS, "two = 2", "p"), PowerCut()), "Count.")

    kept = state_of(checkpoints)
    assert kept["variables"] == {"two": 2}
    assert kept["left_out"] == ["$.steps[1].output", "P", "__init__", "many", "p"]
    assert "P object at" in kept["steps"][1]["output"]
    assert go_on_elsewhere(url, task, "final_answer(two)") == "2"


def test_an_answer_of_a_class_that_the_agent_wrote_stops_no_other_task(
    checkpoints: Checkpoints, url: str
) -> None:
    assert checkpoints.run(coder(code(*CLASS, "final_answer(p)")), "Make one.").x == 1

    assert "its answer was of a kind" in go_on_elsewhere(url, "Make one.", "final_answer(2)")
    assert go_on_elsewhere(url, "Another.", "final_answer(2)") == "2"


def test_a_tool_may_be_given_an_instance_of_a_class_that_the_agent_wrote(
    checkpoints: Checkpoints, url: str
) -> None:
    class Look(Tool):
        name = "look"
        description = "Look."
        inputs = {"at": {"type": "any", "description": "at what"}}  # noqa: RUF012
        output_type = "any"

        def forward(self, at: Any) -> Any:
            return at.x

    first = coder(code(*CLASS, "seen.append(look(p) + look(at=p))", "stop()"), tools=[Look()])
    seen: list[int] = []
    first.python_executor.additional_functions["stop"] = _cut
    with pytest.raises(PowerCut):
        checkpoints.run(first, "Look.", additional_args={"seen": seen})

    assert seen == [2]

    assert go_on_elsewhere(url, "Look.", "final_answer(2)") == "2"


def test_a_variable_that_cannot_be_kept_is_named(url: str) -> None:
    def build() -> CodeAgent:
        agent = coder(code("stream = open_stream()"), code("final_answer('x')"))
        agent.python_executor.additional_functions["open_stream"] = lambda: iter([1])
        return agent

    with (
        Checkpoints(session_id="s", url=url) as checkpoints,
        pytest.raises(SerializationError, match=r"\$\.variables\.stream.*exclude"),
    ):
        checkpoints.run(build(), "Open.")
    with Checkpoints(session_id="other", url=url, exclude=["stream"]) as checkpoints:
        assert checkpoints.run(build(), "Open.") == "x"
        head = checkpoints.client.latest("smolagents", "other")
        assert head is not None
        assert head.execution_state["left_out"] == ["$.steps[1].output", "stream"]


def test_an_answer_that_cannot_be_kept_is_given_once(checkpoints: Checkpoints) -> None:
    agent = coder(code("final_answer(open_stream())"))
    agent.python_executor.additional_functions["open_stream"] = lambda: iter([1, 2])

    assert list(checkpoints.run(agent, "Open.")) == [1, 2]
    with pytest.raises(AdapterError, match="its answer was of a kind that cannot be kept"):
        checkpoints.run(coder(), "Open.")


def test_a_module_is_imported_again_only_where_the_agent_may(checkpoints: Checkpoints) -> None:
    first = coder(code("import json"), PowerCut(), additional_authorized_imports=["json"])
    with pytest.raises(PowerCut):
        checkpoints.run(first, "Read.")

    with pytest.raises(AdapterError, match=r"variables\.json.*additional_authorized_imports"):
        checkpoints.run(coder(code("final_answer(1)")), "Read.")


def test_images_of_the_task_come_back(checkpoints: Checkpoints) -> None:
    image = PIL.Image.new("RGB", (2, 2), (255, 0, 128))
    with pytest.raises(PowerCut):
        checkpoints.run(caller(echo("a"), PowerCut()), "Look.", images=[image])
    second = caller(final("seen"))
    checkpoints.run(second, "Look.")

    (back,) = second.memory.steps[0].task_images
    assert back.tobytes() == image.tobytes()


def test_additional_arguments_come_back(checkpoints: Checkpoints) -> None:
    with pytest.raises(PowerCut):
        checkpoints.run(coder(PowerCut()), "Sum.", additional_args={"numbers": [1, 2]})

    assert checkpoints.run(coder(code("final_answer(sum(numbers))")), "Sum.") == 3


def test_errors_of_steps_come_back_as_what_they_are(checkpoints: Checkpoints) -> None:
    with pytest.raises(PowerCut):
        checkpoints.run(coder(code("x = nothing"), PowerCut()), "Try.")
    second = coder(code("final_answer('x')"))
    checkpoints.run(second, "Try.")

    error = second.memory.steps[1].error
    assert type(error) is AgentExecutionError
    assert "nothing" in error.message


def test_the_number_of_steps_is_counted_over_all_starts(checkpoints: Checkpoints) -> None:
    with pytest.raises(PowerCut):
        checkpoints.run(caller(echo("a"), echo("b"), PowerCut()), "Say it.", max_steps=3)
    second = caller(echo("c"), "I give up.")

    assert checkpoints.run(second, "Say it.", max_steps=3) == "I give up."
    assert [s.step_number for s in second.memory.steps[1:]] == [1, 2, 3, 4]


def test_a_kill_after_the_last_step_asks_for_the_answer_alone(checkpoints: Checkpoints) -> None:
    with pytest.raises(PowerCut):
        checkpoints.run(caller(echo("a"), PowerCut()), "Say it.", max_steps=1)
    second = caller("I give up.")

    assert checkpoints.run(second, "Say it.", max_steps=1) == "I give up."
    assert checkpoints.run(caller(), "Say it.") == "I give up."


def test_a_plan_is_made_once(checkpoints: Checkpoints) -> None:
    with pytest.raises(PowerCut):
        checkpoints.run(caller("the plan", PowerCut(), planning_interval=2), "Say it.")
    second = caller(echo("a"), echo("b"), "another plan", final("done"), planning_interval=2)

    assert checkpoints.run(second, "Say it.") == "done"
    assert second.planning_interval == 2
    assert names(checkpoints)[2:] == ["plan", "step 1", "step 2", "plan", "step 3", "end"]


def test_a_step_that_was_interrupted_is_not_kept(checkpoints: Checkpoints) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        checkpoints.run(caller(echo("a"), tool=Echo(interrupt)), "Say it.")

    assert names(checkpoints) == ["start", "task"]


def test_it_may_be_run_where_an_error_is_being_handled(checkpoints: Checkpoints) -> None:
    try:
        raise Broken
    except Broken:
        checkpoints.run(caller(echo("a"), final("done")), "Say it.")

    assert "step 1" in names(checkpoints)


def test_after_a_rollback_the_step_is_made_anew(checkpoints: Checkpoints) -> None:
    checkpoints.run(caller(echo("a"), echo("b"), final("done")), "Say it.")
    with checkpoints.client.session("smolagents", "s") as run:
        run.rollback(to="step 1")
    tool = Echo()
    second = caller(echo("c"), final("otherwise"), tool=tool)

    assert checkpoints.run(second, "Say it.") == "otherwise"
    assert tool.made == ["c"]


def test_a_rollback_on_the_command_line_takes_files_along(url: str, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    book = place / "book.txt"
    tool = Echo()
    tool.then = lambda: book.write_text(tool.made[-1])
    with Checkpoints(session_id="s", url=url, workspace=place) as checkpoints:
        checkpoints.run(caller(echo("one"), echo("two"), final("done"), tool=tool), "Write.")
        (first,) = [
            info.checkpoint_id
            for info in checkpoints.client.timeline("smolagents", "s")
            if info.step_name == "step 1"
        ]
    assert book.read_text() == "two"

    subprocess.run(
        [sys.executable, "-m", "holdfast", "--store", url, "rollback", first, "--yes"],
        cwd=place,
        check=True,
        capture_output=True,
    )

    assert book.read_text() == "one"
    with Checkpoints(session_id="s", url=url, workspace=place) as checkpoints:
        assert checkpoints.run(caller(final("back")), "Write.") == "back"


def test_a_fork_goes_on_by_itself(url: str, checkpoints: Checkpoints) -> None:
    checkpoints.run(caller(echo("a"), final("done")), "Say it.")
    timeline = checkpoints.client.timeline("smolagents", "s")
    (first,) = [info.checkpoint_id for info in timeline if info.step_name == "step 1"]
    checkpoints.client.fork(first, "other")

    with Checkpoints(session_id="other", url=url) as other:
        assert other.run(caller(final("another way")), "Say it.") == "another way"
    assert checkpoints.run(caller(), "Say it.") == "done"


def test_a_diff_tells_the_step(checkpoints: Checkpoints) -> None:
    checkpoints.run(caller(echo("a"), echo("b"), final("done")), "Say it.")
    by_name = {
        info.step_name: info.checkpoint_id
        for info in checkpoints.client.timeline("smolagents", "s")
    }

    diff = str(checkpoints.client.diff(by_name["step 1"], by_name["step 2"]))

    assert "+ $.steps[2]" in diff


def test_a_checkpoint_that_cannot_be_written_ends_the_run(url: str) -> None:
    client = SyncClient.open(url)
    checkpoints = Checkpoints(session_id="s", client=client)
    agent = caller(echo("a"), final("never"), tool=Echo(client.close))

    with pytest.raises(StoreClosedError):
        checkpoints.run(agent, "Say it.")
    assert len(agent.model.seen) == 1


def test_an_answer_of_the_model_that_cannot_be_recorded_ends_the_run(url: str) -> None:
    client = SyncClient.open(url)

    class Closing(Scripted):
        def generate(self, messages: Any, **options: Any) -> ChatMessage:
            client.close()
            return super().generate(messages, **options)

    agent = ToolCallingAgent(
        tools=[Echo()], model=Closing(final("never")), verbosity_level=LogLevel.OFF
    )

    with pytest.raises(StoreClosedError):
        Checkpoints(session_id="s", client=client).run(agent, "Say it.")


def test_a_call_that_a_user_says_has_failed_is_shown_to_the_model_as_that(url: str) -> None:
    both = [
        {"id": "call_1", "name": "echo", "arguments": {"text": "a"}},
        {"id": "call_2", "name": "send", "arguments": {"text": "b"}},
    ]
    with Checkpoints(session_id="s", url=url, effects={"send": "irreversible"}) as checkpoints:

        def build(*answers: Any, then: Any = None) -> tuple[ToolCallingAgent, Echo, Echo]:
            said, sent = Echo(), Echo(then)
            sent.name = "send"
            tools = [said, sent]
            return caller(*answers, tools=tools, max_tool_threads=1), said, sent

        with pytest.raises(PowerCut):
            checkpoints.run(build(calls(*both), then=_cut)[0], "Say it.")
        (unknown,) = checkpoints.client.unknown_effects()
        checkpoints.client.resolve(unknown.effect_id, failed="the post was shut")
        agent, said, sent = build(final("done"))

        assert checkpoints.run(agent, "Say it.") == "done"
        assert said.made == sent.made == []
        assert "the post was shut" in str(agent.model.seen[0])


def test_a_tool_whose_end_is_unknown_is_not_run_again_if_it_cannot_be_undone(url: str) -> None:
    with Checkpoints(session_id="s", url=url, effects={"echo": "irreversible"}) as checkpoints:
        with pytest.raises(PowerCut):
            checkpoints.run(caller(echo("a"), tool=Echo(_cut)), "Say it.")
        again = Echo()
        with pytest.raises(UnknownEffectError):
            checkpoints.run(caller(final("never"), tool=again), "Say it.")

    assert again.made == []


def test_a_session_is_worked_on_by_one_at_a_time(url: str, checkpoints: Checkpoints) -> None:
    raised: list[BaseException] = []

    def run_too() -> None:
        def other() -> None:
            with Checkpoints(session_id="s", url=url) as second:
                try:
                    second.run(caller(final("x")), "Say it.")
                except SessionBusyError as error:
                    raised.append(error)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        try:
            checkpoints.run(caller(final("x")), "Say it.")
        except InvalidArgumentError as error:
            raised.append(error)

    checkpoints.run(caller(echo("a"), final("done"), tool=Echo(run_too)), "Say it.")

    assert [type(each) for each in raised] == [SessionBusyError, InvalidArgumentError]


def test_an_agent_that_the_agent_asks_is_a_part_of_its_step(checkpoints: Checkpoints) -> None:
    helper = caller(
        echo("inside"), final("helped"), name="helper", description="Helps.", step_callbacks=[]
    )
    ask = calls({"id": "call_1", "name": "helper", "arguments": {"task": "Help."}})
    agent = caller(ask, final("done"), managed_agents=[helper])

    assert checkpoints.run(agent, "Say it.") == "done"
    assert names(checkpoints)[2:] == ["step 1", "step 2", "end"]


def test_it_is_read_without_smolagents(checkpoints: Checkpoints) -> None:
    checkpoints.run(caller(echo("a ü"), final("done")), "Say it.")

    found = conversation_in("smolagents", state_of(checkpoints))

    assert found is not None
    assert [message["role"] for message in found.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert found.messages[2]["parts"][0]["response"] == "a ü"
    assert found.messages[3]["parts"] == [{"type": "text", "content": "done"}]
    assert found.lost == []


def test_steps_are_loaded_as_smolagents_has_them(checkpoints: Checkpoints) -> None:
    agent = caller(echo("a"), final("done"))
    checkpoints.run(agent, "Say it.")

    steps = loaded(state_of(checkpoints)["steps"])

    assert [type(step) for step in steps] == [TaskStep, ActionStep, ActionStep]
    own = agent.memory.steps
    assert [step.to_messages() for step in steps] == [step.to_messages() for step in own]


def test_a_conversation_of_another_framework_goes_on_as_text(
    url: str, checkpoints: Checkpoints
) -> None:
    messages = [
        {"role": "user", "content": "How deep is it?"},
        {"role": "assistant", "content": "12 m"},
    ]
    kept = checkpoints.client.save("own", execution_state={"messages": messages}, session_id="own")
    checkpoints.client.continue_in(kept, "smolagents", session_id="here")
    agent = caller(final("deeper"))

    with Checkpoints(session_id="here", url=url) as here:
        assert here.run(agent, "And now?") == "deeper"
    shown = str([message.content for message in agent.model.seen[0]])
    assert "How deep is it?" in shown
    assert "12 m" in shown


def test_what_an_agent_did_goes_on_in_another_framework(checkpoints: Checkpoints) -> None:
    checkpoints.run(caller(echo("a"), final("done")), "Say it.")
    head = checkpoints.client.sessions()[0].head.checkpoint_id

    continued = checkpoints.client.continue_in(head, "crewai", session_id="there")
    there = checkpoints.client.restore(continued.checkpoint_id).execution_state["messages"]

    assert [message["role"] for message in there] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


@pytest.mark.parametrize("damage", [{"type": "dance"}, {"type": "action"}, 7, {}])
def test_a_damaged_step_is_named(url: str, checkpoints: Checkpoints, damage: Any) -> None:
    checkpoints.run(caller(echo("a"), final("done")), "Say it.")
    state = state_of(checkpoints)
    state["steps"][1] = damage
    head = checkpoints.client.sessions()[0].head.checkpoint_id
    checkpoints.client.fork(head, "bad", execution_state=state)

    with (
        Checkpoints(session_id="bad", url=url) as bad,
        pytest.raises(AdapterError, match=r"\$\.steps\[1\]"),
    ):
        bad.run(caller(final("x")), "More.")


def test_damaged_variables_are_told_of(url: str, checkpoints: Checkpoints) -> None:
    checkpoints.run(caller(final("done")), "Say it.")
    state = {**state_of(checkpoints), "variables": [1]}
    head = checkpoints.client.sessions()[0].head.checkpoint_id
    checkpoints.client.fork(head, "bad", execution_state=state)

    with (
        Checkpoints(session_id="bad", url=url) as bad,
        pytest.raises(AdapterError, match="or is damaged"),
    ):
        bad.run(caller(final("x")), "More.")


def test_a_session_of_something_else_is_refused(checkpoints: Checkpoints) -> None:
    checkpoints.client.save("smolagents", execution_state={}, session_id="s")
    with pytest.raises(AdapterError, match="is of custom, not of smolagents"):
        checkpoints.run(caller(), "Say it.")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"session_id": ""}, "session_id"),
        ({"session_id": None}, "session_id"),
        ({"session_id": "s", "url": "memory://", "client": SyncClient.memory()}, "not both"),
        ({"session_id": "s", "url": "memory://", "effects": {"echo": "magic"}}, "magic"),
    ],
)
def test_what_is_no_session_store_or_effect_is_refused(options: Any, told: str) -> None:
    with pytest.raises(InvalidArgumentError, match=told):
        Checkpoints(**options)


@pytest.mark.parametrize("task", ["", "  ", None, 7])
def test_what_is_no_task_is_refused(checkpoints: Checkpoints, task: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="a task as text"):
        checkpoints.run(caller(), task)
    with pytest.raises(InvalidArgumentError, match="an agent, not str"):
        checkpoints.run("agent", "Say it.")
    assert checkpoints.client.sessions() == []
