"""The page is right at every moment, without a reload, whatever other processes do."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from holdfast import SyncClient
from tests.ui import stories
from tests.ui.browser.kit import Server, Viewer, expect, wait_for


def test_a_save_of_another_process_appears(client: SyncClient, server: Server, look) -> None:
    viewer = look(server).go()
    viewer.rest()

    stories.steps(client, "walker", "walk", 1)

    expect(viewer.find("session-row", "walk")).to_be_visible()


def test_a_step_of_another_process_appears_in_an_open_session(
    client: SyncClient, server: Server, look
) -> None:
    stories.steps(client, "walker", "walk", 1)
    viewer = look(server).session("walker", "walk")

    stories.steps(client, "walker", "walk", 3)

    expect(viewer.find("checkpoint-row", "step 2")).to_be_visible()
    expect(viewer.find("message", "message 2")).to_be_visible()


def test_a_question_of_another_process_appears(client: SyncClient, server: Server, look) -> None:
    viewer = look(server).go("inbox")
    viewer.rest()

    stories.ask(client, "news")

    expect(viewer.find("inbox-approve")).to_be_visible()
    viewer.shows("everybody")


def test_a_lost_server_says_so_and_comes_back(client: SyncClient, server: Server, look) -> None:
    stories.steps(client, "walker", "walk", 1)
    viewer = look(server).go()
    expect(viewer.find("session-row", "walk")).to_be_visible()

    server.stop()
    expect(viewer.page.locator("#banner")).to_contain_text("does not answer")
    expect(viewer.find("session-row", "walk")).to_be_visible()
    server.start()
    viewer.page.goto(server.address)

    expect(viewer.find("session-row", "walk")).to_be_visible()
    expect(viewer.page.locator("#banner")).to_be_hidden()
    viewer.forgive("ERR_", "401")


class Agent:
    """The agent of the stories, in a process of its own."""

    def __init__(self, store: str, directory: Path) -> None:
        self._arguments = (store, str(directory))
        self.start()

    def start(self) -> None:
        root = Path(__file__).parents[3]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.ui.stories", *self._arguments],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root)},
            start_new_session=True,
        )

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def test_an_agent_is_killed_resumed_approved_and_rolled_back_with_the_page_open(
    store: str, client: SyncClient, server: Server, look, tmp_path: Path
) -> None:
    files = tmp_path / "files"
    files.mkdir()
    viewer: Viewer = look(server).go()
    agent = Agent(store, files)
    try:
        expect(viewer.find("session-row", "job")).to_contain_text("running")
        viewer.find("session-row", "job").click()
        expect(viewer.find("checkpoint-row", "one: completed")).to_be_visible()

        agent.kill()
        viewer.press("g", "s")
        expect(viewer.find("session-row", "job")).not_to_contain_text("running")
        agent.start()
        expect(viewer.find("session-row", "job")).to_contain_text("running")

        (tmp_path / "go").touch()
        expect(viewer.find("session-row", "job")).to_contain_text("waiting")
        viewer.press("g", "i")
        viewer.find("inbox-approve").click()
        expect(viewer.find("inbox-approve")).to_have_count(0)
        wait_for(lambda: agent.process.poll() == 0, "the agent to end")
    finally:
        if agent.process.poll() is None:
            agent.kill()

    viewer.session("worker", "job")
    expect(viewer.find("message", "did three")).to_be_visible()
    viewer.find("checkpoint-row", "one: completed").click()
    expect(viewer.find("message", "did two")).to_have_count(0)
    viewer.find("action-rollback").click()
    expect(viewer.find("dialog")).to_contain_text("mail")  # which was sent, and stays so
    viewer.find("field-accept_irreversible").check()
    viewer.find("dialog-confirm").click()
    expect(viewer.find("dialog")).to_have_count(0)
    expect(viewer.find("checkpoint-row").first).to_contain_text("rolled back to one: completed")
    viewer.press("g", "s")
    expect(viewer.find("session-row", "job")).to_contain_text("rolled back")
    viewer.forgive("409")
    latest = client.latest("worker", "job")
    assert latest is not None
    assert [each["content"] for each in latest.execution_state["messages"]] == ["did one"]


def test_a_page_that_nobody_sees_holds_no_connection_and_catches_up(
    client: SyncClient, server: Server, look
) -> None:
    viewer: Viewer = look(server)
    viewer.page.goto("about:blank")  # it may have signed in just now, and asked for events
    viewer.page.clock.install()
    with viewer.page.expect_request("**/api/v1/events"):
        viewer.go()
    be_hidden = """hidden => {
      Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }"""

    viewer.page.evaluate(be_hidden, True)
    viewer.page.clock.fast_forward(11_000)
    viewer.quiet()  # what it asked for before is answered
    assert not viewer.follows
    stories.steps(client, "walker", "walk", 1)
    beside = look(server).go()
    expect(beside.find("session-row", "walk")).to_be_visible()  # who looks is told
    expect(viewer.find("session-row", "walk")).to_have_count(0)

    viewer.page.evaluate(be_hidden, False)

    expect(viewer.find("session-row", "walk")).to_be_visible()
