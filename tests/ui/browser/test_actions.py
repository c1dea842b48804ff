"""What a person does on the page is done in the store, after a preview, and can be undone."""

import os
from pathlib import Path
from typing import Any

import pytest

from holdfast import ApprovalDeniedError, SyncClient
from tests.ui import stories
from tests.ui.browser.kit import Server, Viewer, expect


@pytest.fixture
def walked(client: SyncClient, server: Server, look) -> Viewer:
    """A session of five steps, at its second."""
    ids = stories.steps(client, "walker", "walk", 5)
    viewer = look(server).session("walker", "walk", at=ids[1])
    expect(viewer.find("message", "message 1")).to_be_visible()
    return viewer


def count_of(client: SyncClient) -> Any:
    latest = client.latest("walker", "walk")
    assert latest is not None
    return latest.execution_state["count"]


def confirm(viewer: Viewer) -> None:
    """Say yes in the dialog, and wait until it is done."""
    viewer.find("dialog-confirm").click()
    expect(viewer.find("dialog")).to_have_count(0)


def test_a_rollback_is_previewed_done_and_undone(walked: Viewer, client: SyncClient) -> None:
    walked.find("action-rollback").click()
    expect(walked.find("dialog")).to_contain_text("step 1")
    expect(walked.find("preview")).to_contain_text("would change")
    assert count_of(client) == 4
    confirm(walked)
    assert count_of(client) == 1

    walked.find("undo").first.click()
    confirm(walked)

    assert count_of(client) == 4


def test_a_rollback_that_is_not_confirmed_changes_nothing(
    walked: Viewer, client: SyncClient
) -> None:
    walked.press("r")
    expect(walked.find("dialog")).to_be_visible()
    walked.find("dialog-cancel").click()
    expect(walked.find("dialog")).to_have_count(0)

    assert count_of(client) == 4


def test_a_fork_is_made_where_one_stands(walked: Viewer, client: SyncClient) -> None:
    walked.find("action-fork").click()
    walked.find("dialog").locator("input[type=text], input:not([type])").first.fill("walk.side")
    confirm(walked)

    forked = client.latest("walker", "walk.side")
    assert forked is not None
    assert forked.execution_state["count"] == 1


def test_what_cannot_be_undone_is_said_before_a_rollback(
    client: SyncClient, server: Server, look, tmp_path: Path
) -> None:
    with client.session("mailer", "sent", state={"n": 0}) as run:
        run.checkpoint("before")
        run.call(stories.mail, "ann", effect="irreversible")
    viewer = look(server).session(
        "mailer", "sent", at=stories.named(client, "mailer", "sent", "before")
    )

    viewer.find("action-rollback").click()

    expect(viewer.find("dialog")).to_contain_text("mail")
    expect(viewer.find("dialog-confirm")).to_be_disabled()
    viewer.find("field-accept_irreversible").check()
    expect(viewer.find("preview")).to_contain_text("Cannot be undone")
    confirm(viewer)
    head = client.latest("mailer", "sent")
    assert head is not None
    assert head.execution_state == {"n": 0}
    assert head.metadata["rolled_back_from"]
    viewer.forgive("409")


def test_a_session_in_use_says_who_holds_it(client: SyncClient, server: Server, look) -> None:
    with client.session("walker", "busy", state={"n": 0}) as run:
        first = run.checkpoint("first")
        run.state["n"] = 1
        last = run.checkpoint("second")
        viewer = look(server).session("walker", "busy", at=str(first))
        viewer.find("action-rollback").click()
        expect(viewer.find("dialog")).to_contain_text(f"process {os.getpid()}")
        viewer.find("dialog-confirm").click()
        expect(viewer.find("dialog").get_by_role("alert")).to_contain_text("is worked on by")
        head = client.latest("walker", "busy")
        assert head is not None
        assert head.checkpoint_id == last
    viewer.forgive("409")


def test_a_read_only_page_has_no_control_that_writes(store: str, client: SyncClient, look) -> None:
    stories.steps(client, "walker", "walk", 2)
    stories.ask(client, "news")
    stories.lose(client, "order-7")
    with Server(store, "--read-only") as server:
        viewer = look(server).session("walker", "walk")
        expect(viewer.find("message").first).to_be_visible()
        for name in ("rollback", "fork", "undo", "restore", "adopt", "expire"):
            expect(viewer.find(f"action-{name}")).to_have_count(0)
        viewer.press("r")
        expect(viewer.find("dialog")).to_have_count(0)
        viewer.go("inbox").shows("everybody")
        for name in ("approve", "deny", "done", "failed", "retry"):
            expect(viewer.find(f"inbox-{name}")).to_have_count(0)
        answer = viewer.context.request.post(
            f"{server.origin}/api/v1/gc", data={}, headers={"Origin": server.origin}
        )
        assert answer.status == 403
    viewer.forgive("ERR_CONNECTION_REFUSED")  # the server has ended before the page


def test_an_approval_is_given(client: SyncClient, server: Server, look) -> None:
    stories.ask(client, "news")
    viewer = look(server).go("inbox")

    viewer.find("inbox-approve").click()

    expect(viewer.find("inbox-approve")).to_have_count(0)
    assert not client.pending()
    with client.session("mailer", "news", approval="wait", approval_timeout=0.05) as run:
        assert run.call(stories.mail, "everybody", effect="irreversible") == "sent to everybody"


def test_an_approval_is_denied_with_a_reason(client: SyncClient, server: Server, look) -> None:
    stories.ask(client, "news")
    viewer = look(server).go("inbox")
    viewer.find("inbox-deny").click()
    expect(viewer.find("dialog-confirm")).to_be_disabled()
    viewer.find("inbox-reason").fill("too many")

    viewer.find("dialog-confirm").click()

    expect(viewer.find("inbox-deny")).to_have_count(0)
    assert not client.pending()
    with (
        client.session("mailer", "news", approval="wait", approval_timeout=0.05) as run,
        pytest.raises(ApprovalDeniedError, match="too many"),
    ):
        run.call(stories.mail, "everybody", effect="irreversible")


def test_the_arguments_of_a_call_are_edited(client: SyncClient, server: Server, look) -> None:
    stories.ask(client, "news")
    viewer = look(server).go("inbox")
    viewer.find("inbox-edit").click()
    viewer.find("inbox-args").fill('["ann"]')

    viewer.find("dialog-confirm").click()

    expect(viewer.find("inbox-approve")).to_have_count(0)
    with client.session("mailer", "news", approval="wait", approval_timeout=0.05) as run:
        assert run.call(stories.mail, "everybody", effect="irreversible") == "sent to ann"


@pytest.mark.parametrize("outcome", ["done", "failed", "retry"])
def test_a_call_of_unknown_end_is_resolved(
    client: SyncClient, server: Server, look, outcome: str
) -> None:
    stories.lose(client, "order-7")
    viewer = look(server).go("inbox")

    viewer.find(f"inbox-{outcome}").click()
    if outcome == "failed":
        viewer.find("inbox-reason").fill("the bank said so")
    confirm(viewer)

    assert not client.unknown_effects()
    expect(viewer.find(f"inbox-{outcome}")).to_have_count(0)
