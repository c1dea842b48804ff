"""Claude's own program, killed at every moment that matters, and started again the same."""

from pathlib import Path

import pytest

from holdfast import SyncClient
from holdfast.adapters.claude_agent_sdk.transcript import waiting_prompt
from holdfast.core.conversation.reading import conversation_in
from tests.frameworks.kit import SESSION, Job, check_resumed, points_of, whole_run

JOB = "claude_agent_sdk"
AGAIN = frozenset(
    ["model", *(f"tool {each}{end}" for each in ("depth", "tide", "note") for end in ("", " done"))]
)
"""One of these is done again if it was over, and the kill came before that was written down."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Job:
    return whole_run(JOB, tmp_path_factory.mktemp("whole"))


def said_in(job: Job) -> list[tuple[str, str]]:
    """Return who said what, but for the reminders to go on that Claude's program adds."""
    with SyncClient.open(job.url) as client:
        head = client.latest(JOB, SESSION)
        assert head is not None
        assert waiting_prompt(head.execution_state) is None
        found = conversation_in(JOB, head.execution_state)
    assert found is not None
    assert found.problems() == []
    return [(message["role"], str(message["parts"])) for message in found.messages]


def test_killed_anywhere_it_goes_on_where_it_was(whole: Job, tmp_path: Path) -> None:
    output = "12.5 m in Süd, steigend (潮), noted 1"
    said = said_in(whole)
    assert [role for role, _ in said] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]

    for number, kill_at in enumerate(points_of(whole, saves=10)):
        killed = Job(JOB, tmp_path / str(number))
        is_save = kill_at.startswith("sqlite:")
        check_resumed(whole, output, killed, kill_at, again=AGAIN if is_save else frozenset())

        more = killed.happened() - whole.happened()
        assert sum(more[each] for each in AGAIN if not each.endswith(" done")) <= 1, more
        assert said_in(killed) == said, kill_at
        assert (killed.place / "log.txt").read_text() == "12.5 m\n", kill_at
