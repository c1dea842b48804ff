"""Claude's own program, killed at every moment that matters, and started again the same."""

from pathlib import Path

import pytest

from holdfast import SyncClient
from holdfast.adapters.claude_agent_sdk.transcript import waiting_prompt
from holdfast.core.conversation.reading import conversation_in
from tests.frameworks.kit import SESSION, Job, check_resumed, points_of, whole_run

JOB = "claude_agent_sdk"
OUTPUT = "12.5 m in Süd, steigend (潮), noted 1"
AGAIN = frozenset(
    ["model", *(f"tool {each}{end}" for each in ("depth", "tide", "note") for end in ("", " done"))]
)
"""One of these is done again if it was over, and the kill came before that was written down."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Job:
    return whole_run(JOB, tmp_path_factory.mktemp("whole"))


def is_over(job: Job) -> bool:
    with SyncClient.open(job.url) as client:
        head = client.latest(JOB, SESSION)
    return head is not None and waiting_prompt(head.execution_state) is None


def said_in(job: Job) -> list[tuple[str, str]]:
    """Return who said what, but for the reminders to go on that Claude's program adds."""
    with SyncClient.open(job.url) as client:
        head = client.latest(JOB, SESSION)
    assert head is not None
    found = conversation_in(JOB, head.execution_state)
    assert found is not None
    assert found.problems() == []
    return [(message["role"], str(message["parts"])) for message in found.messages]


def check_same(killed: Job, whole: Job, kill_at: str) -> None:
    assert said_in(killed) == said_in(whole), kill_at
    assert (killed.place / "log.txt").read_text() == "12.5 m\n", kill_at
    more = killed.happened() - whole.happened()
    assert sum(more[each] for each in AGAIN if not each.endswith(" done")) <= 1, more


def test_a_run_that_nobody_kills_says_each_thing_once(whole: Job) -> None:
    roles = [role for role, _ in said_in(whole)]

    assert roles == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert is_over(whole)


def test_killed_in_the_model_or_in_a_tool_it_goes_on_where_it_was(
    whole: Job, tmp_path: Path
) -> None:
    world = [each for each in points_of(whole) if not each.startswith("sqlite:")]
    assert len(world) == 9

    for number, kill_at in enumerate(world):
        killed = Job(JOB, tmp_path / str(number))
        check_resumed(whole, OUTPUT, killed, kill_at)
        check_same(killed, whole, kill_at)


def test_killed_while_saving_it_does_one_thing_again_at_most(whole: Job, tmp_path: Path) -> None:
    saves = [each for each in points_of(whole, saves=12) if each.startswith("sqlite:")]

    for number, kill_at in enumerate(saves):
        killed = Job(JOB, tmp_path / str(number))
        told = killed.start(kill_at)
        # How many entries come at once is Claude's to say: the last of many saves may not be made.
        assert told.was_killed or told.output == OUTPUT, told.errors
        if not is_over(killed):
            told = killed.start()
            assert told.output == OUTPUT, told.errors
        check_same(killed, whole, kill_at)
