"""Tools of Claude's that do what cannot be undone: never twice by mistake, and a person decides."""

from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import HookMatcher, create_sdk_mcp_server, tool

from holdfast import Decision, RollbackRefusedError, SyncClient
from holdfast.adapters.claude_agent_sdk import HoldfastSessionStore
from tests.frameworks.claude_server import Blocks, ClaudeServer, call, results_in, text
from tests.frameworks.kit import SESSION, Job

AGENT = "claude_agent_sdk"


def killed_while_charging(directory: Path) -> Job:
    job = Job("claude_charge", directory)
    assert job.start("charged#1").was_killed
    return job


def test_a_charge_of_unknown_end_is_not_made_again_until_somebody_decides(tmp_path: Path) -> None:
    job = killed_while_charging(tmp_path)
    with SyncClient.open(job.url) as client:
        (unknown,) = client.unknown_effects()
        assert (unknown.tool, unknown.kwargs) == ("mcp__pay__charge", {"amount": 9})

    told = job.start()

    assert told.returncode == 0, told.errors
    assert "its end is not recorded" in told.output
    assert job.happened()["charged"] == 1


def test_a_charge_that_took_place_is_told_to_the_model_instead_of_made(tmp_path: Path) -> None:
    job = killed_while_charging(tmp_path)
    with SyncClient.open(job.url) as client:
        (unknown,) = client.unknown_effects()
        client.resolve(unknown.effect_id, done="charged 9, receipt 4711")

    told = job.start()

    assert told.returncode == 0, told.errors
    assert "receipt 4711" in told.output
    assert job.happened()["charged"] == 1
    with SyncClient.open(job.url) as client:
        assert client.unknown_effects() == []


def test_a_charge_that_is_to_be_retried_is_made(tmp_path: Path) -> None:
    job = killed_while_charging(tmp_path)
    with SyncClient.open(job.url) as client:
        (unknown,) = client.unknown_effects()
        client.resolve(unknown.effect_id, retry=True)

    told = job.start()

    assert told.output == "charged 9", told.errors
    assert job.happened()["charged"] == 2


def test_going_back_past_a_charge_is_refused(tmp_path: Path) -> None:
    job = Job("claude_charge", tmp_path)
    assert job.start().output == "charged 9"
    with SyncClient.open(job.url) as client:
        first = client.timeline(AGENT, SESSION)[-1]
        with client.session(AGENT, SESSION) as run, pytest.raises(RollbackRefusedError):
            run.rollback(to=first.checkpoint_id)


class Till:
    """A tool that charges, and an agent that uses it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.charged: list[int] = []

    async def run(self, store: HoldfastSessionStore, **declared: Any) -> str:
        @tool("charge", "Charge a card.", {"amount": int})
        async def charge(arguments: dict[str, Any]) -> dict[str, Any]:
            self.charged.append(arguments["amount"])
            return {"content": [text(f"charged {arguments['amount']}")]}

        def script(messages: list[dict[str, Any]]) -> Blocks:
            found = results_in(messages)
            if not found:
                return [call("toolu_1", "mcp__pay__charge", amount=9)]
            return [text(found["toolu_1"])]

        hooks = declared.pop("hooks", None)
        with ClaudeServer(script) as server:
            servers = {"pay": create_sdk_mcp_server("pay", tools=[charge])}
            options = server.options(self.home, mcp_servers=servers, hooks=hooks)
            messages = store.query(
                prompt="charge",
                session_id="till",
                options=options,
                effects={"mcp__pay__charge": "irreversible"},
                **declared,
            )
            said = [message async for message in messages]
        return str(getattr(said[-1], "result", None))


async def test_a_charge_waits_for_who_approves_and_may_be_changed(tmp_path: Path) -> None:
    till = Till(tmp_path)
    async with HoldfastSessionStore(url="memory://") as store:
        allowed = Decision(True, kwargs={"amount": 5})
        assert await till.run(store, approval=lambda effect: allowed) == "charged 5"
    assert till.charged == [5]


async def test_a_charge_that_was_denied_is_not_made(tmp_path: Path) -> None:
    till = Till(tmp_path)
    async with HoldfastSessionStore(url="memory://") as store:
        assert "was not allowed" in await till.run(store, approval=lambda effect: False)
        assert store.client.unknown_effects() == []
    assert till.charged == []


async def test_a_charge_that_the_users_own_hook_denies_is_not_of_unknown_end(
    tmp_path: Path,
) -> None:
    async def never(given: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        decision = {"permissionDecision": "deny", "permissionDecisionReason": "not today"}
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}

    till = Till(tmp_path)
    async with HoldfastSessionStore(url="memory://") as store:
        mine = {"PreToolUse": [HookMatcher(hooks=[never])]}
        assert "not today" in await till.run(store, hooks=mine)
        assert store.client.unknown_effects() == []
    assert till.charged == []
