"""Progress bars: what they draw, and that they draw where a terminal is and nowhere else."""

import io
from contextlib import redirect_stderr
from threading import Event

import pytest

from holdfast.system import progress_bar
from holdfast.system.terminal_text import width

ERASED = "\r\x1b[K"


class Screen(io.StringIO):
    """A terminal that keeps what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = Event()

    def isatty(self) -> bool:
        return True

    def flush(self) -> None:
        self.seen.set()


def drawn(done: int, total: int | None, label: str = "") -> str:
    with redirect_stderr(Screen()) as screen:
        progress_bar.show(done, total, label)
    return screen.getvalue()


def test_a_bar_says_how_much_of_what_is_done() -> None:
    assert drawn(1, 4, "fix") == f"{ERASED}[######..................] 1/4 fix"


def test_a_bar_that_is_full_ends_its_line() -> None:
    assert drawn(2, 2) == f"{ERASED}[########################] 2/2\n"


def test_only_what_is_done_in_full_looks_full() -> None:
    assert "." in drawn(999, 1000)


def test_where_nobody_knows_the_whole_the_number_is_told() -> None:
    assert drawn(12_345, None, "files") == f"{ERASED}files: 12,345"


@pytest.mark.parametrize("total", [0, 3])
def test_a_plan_without_tasks_is_no_error(total: int) -> None:
    assert f"0/{total}" in drawn(0, total)


def test_nothing_is_drawn_where_no_terminal_is() -> None:
    with redirect_stderr(io.StringIO()) as file:
        progress_bar.show(1, 2, "fix")

    assert file.getvalue() == ""


def test_nothing_is_drawn_where_standard_error_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)

    progress_bar.show(1, 2, "fix")


def test_the_name_of_a_task_cannot_steer_the_terminal() -> None:
    assert drawn(0, 1, "a\x1b[2Jb\nc").removeprefix(ERASED).isprintable()


def test_a_line_is_no_longer_than_the_terminal_is_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")

    shown = drawn(0, 1, "名" * 40).removeprefix(ERASED)

    assert width(shown) <= 49
    assert shown.endswith("名…")


def test_a_bar_of_a_long_command_shows_itself_after_a_moment_and_goes() -> None:
    with redirect_stderr(Screen()) as screen:
        bar = progress_bar.Bar("verifying")
        bar(1, 4)
        assert screen.getvalue() == ""
        bar._started -= 1
        bar(2, 4)
        bar(4, 4)

    assert screen.getvalue() == f"{ERASED}[############............] 2/4 verifying{ERASED}"


def test_work_that_does_not_say_how_far_it_is_says_how_long_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress_bar, "_PATIENCE", 0.01)
    with redirect_stderr(Screen()) as screen, progress_bar.seconds("collecting"):
        assert screen.seen.wait(60)

    assert screen.getvalue().startswith(f"{ERASED}collecting: 0 s")
    assert screen.getvalue().endswith(ERASED)
