"""What a person does on the page is done in the store, after a preview, and can be undone."""

import os
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import APIResponse, Route

from holdfast import ApprovalDeniedError, SyncClient
from tests.ui import stories
from tests.ui.browser.kit import NARROW, WIDE, Server, Viewer, expect

WINDOWS = {"wide": {"size": WIDE, "scheme": "light"}, "narrow": {"size": NARROW, "scheme": "dark"}}


@pytest.fixture(params=WINDOWS)
def walked(request: Any, client: SyncClient, server: Server, look) -> Viewer:
    """A session of five steps, at its second; in a light window and in a narrow dark one."""
    ids = stories.steps(client, "walker", "walk", 5)
    viewer = look(server, **WINDOWS[request.param]).session("walker", "walk", at=ids[1])
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
    expect(walked.find("checkpoint-row").first).to_have_attribute("aria-current", "true")

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


def test_a_fork_is_adopted_by_where_it_came_from(walked: Viewer, client: SyncClient) -> None:
    second = client.timeline("walker", "walk")[3].checkpoint_id
    client.fork(second, session_id="side")
    client.save("walker", execution_state={"count": 99}, session_id="side")
    walked.session("walker", "side").find("action-adopt").click()
    expect(walked.find("preview")).to_contain_text("would")
    assert count_of(client) == 4

    confirm(walked)

    expect(walked.page.get_by_role("heading", name="walk", exact=True)).to_be_visible()
    assert count_of(client) == 99


def test_a_checkpoint_is_expired_once_it_is_confirmed(walked: Viewer, client: SyncClient) -> None:
    expect(walked.find("checkpoint-row")).to_have_count(5)
    walked.find("action-expire").click()
    expect(walked.find("preview")).to_contain_text("step 1")
    assert len(client.timeline("walker", "walk")) == 5

    confirm(walked)

    expect(walked.find("checkpoint-row")).to_have_count(4)
    expect(walked.page.get_by_role("heading", name="step 0")).to_be_visible()
    kept = [each.step_name for each in client.timeline("walker", "walk")]
    assert kept == ["step 4", "step 3", "step 2", "step 0"]
    walked.forgive("404")  # the removal may be heard of before it is answered


def test_the_parent_is_shown_though_a_removal_is_seen_before_it_is_answered(
    client: SyncClient, server: Server, look
) -> None:
    ids = stories.steps(client, "walker", "walk", 3)
    viewer: Viewer = look(server).session("walker", "walk", at=ids[1])
    late: list[tuple[Route, APIResponse]] = []

    def expire(route: Route) -> None:
        if (route.request.post_data_json or {}).get("dry_run"):
            route.continue_()
        else:
            late.append((route, route.fetch()))

    viewer.page.route("**/api/v1/expire", expire)
    viewer.find("action-expire").click()
    viewer.find("dialog-confirm").click()
    expect(viewer.find("error")).to_be_visible()

    ((route, answer),) = late
    route.fulfill(response=answer)

    expect(viewer.page.get_by_role("heading", name="step 0")).to_be_visible()
    viewer.forgive("404")


def test_files_are_restored_to_a_directory_that_is_named(
    client: SyncClient, server: Server, look, tmp_path: Path
) -> None:
    stories.work(client, tmp_path / "repo")
    at = stories.named(client, stories.AGENT, stories.SESSION, "fix: completed")
    viewer = look(server).session(stories.AGENT, stories.SESSION, at=at)
    viewer.find("action-restore").click()
    expect(viewer.find("dialog-confirm")).to_be_disabled()
    elsewhere = tmp_path / "elsewhere"
    viewer.find("field-directory").fill(str(elsewhere))
    viewer.find("field-directory").blur()
    expect(viewer.find("preview")).to_contain_text("All files would be written")
    assert not elsewhere.exists()

    confirm(viewer)

    assert (elsewhere / "main.py").read_text().endswith("return a + b\n")
    assert (elsewhere / "logo.png").read_bytes() == stories.picture()


def test_what_the_rules_do_not_keep_is_pruned_once_it_is_confirmed(
    walked: Viewer, client: SyncClient
) -> None:
    walked.go("storage").find("prune-last").fill("2")
    walked.find("prune-preview").click()
    expect(walked.find("prune-answer")).to_contain_text("3 checkpoints would be removed")
    walked.find("prune").click()
    expect(walked.find("preview")).to_contain_text("3 checkpoints")
    assert len(client.timeline("walker", "walk")) == 5

    confirm(walked)

    kept = [each.step_name for each in client.timeline("walker", "walk")]
    assert kept == ["step 4", "step 3"]


def test_an_offer_is_accepted(walked: Viewer, client: SyncClient) -> None:
    offered = client.handoff(client.timeline("walker", "walk")[0].checkpoint_id, "reviewer")

    walked.go("inbox").find("inbox-accept").click()
    expect(walked.find("dialog")).to_contain_text("5 minutes")
    assert client.offer(offered).attempts == 0
    confirm(walked)

    expect(walked.find("inbox-accept")).to_have_count(0)
    expect(walked.find("notice").get_by_role("link")).to_be_visible()
    assert client.offer(offered).attempts == 1


def test_an_offer_is_rejected_with_a_reason(walked: Viewer, client: SyncClient) -> None:
    offered = client.handoff(client.timeline("walker", "walk")[0].checkpoint_id, "reviewer")
    walked.go("inbox").find("inbox-reject").click()
    walked.find("inbox-reason").fill("no time")

    confirm(walked)

    expect(walked.find("inbox-reject")).to_have_count(0)
    offer = client.offer(offered)
    assert (offer.outcome, offer.reason) == ("rejected", "no time")


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
