"""What hooks keep that Claude's program would lose: results, prompts, files, subagents' work."""

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeSDKClient, HookMatcher, query

from holdfast import InvalidArgumentError, SyncClient, Workspace
from holdfast.adapters.claude_agent_sdk import HoldfastSessionStore, transcript, workspace_hooks
from holdfast.core.conversation.frameworks.claude_entries import made_uuid, result_content
from tests.frameworks.claude_server import Blocks, ClaudeServer, call, results_in, said_in, text
from tests.frameworks.kit import Job

SESSION = "5b0c2f6e-6a53-4a5e-8a43-0f7d3a4a1c11"
CALL = transcript.Call("toolu_a", "depth", {"harbour": "Süd"})


def asks(*call_ids: str) -> list[dict[str, Any]]:
    """Return what a transcript holds when the model has asked for calls."""
    entries: list[dict[str, Any]] = [
        {"type": "user", "uuid": "u", "parentUuid": None, "message": {"content": "hello"}}
    ]
    for call_id in call_ids:
        content = [{"type": "tool_use", "id": call_id, "name": "depth", "input": {}}]
        message = {"id": "m", "content": content, "stop_reason": "tool_use"}
        before = entries[-1]["uuid"]
        entries.append(
            {"type": "assistant", "uuid": call_id, "parentUuid": before, "message": message}
        )
    return entries


def result(call_id: str, said: str, own: str = "own") -> dict[str, Any]:
    content = [{"type": "tool_result", "tool_use_id": call_id, "content": said}]
    return {"type": "user", "uuid": own, "parentUuid": call_id, "message": {"content": content}}


def state_of(entries: list[dict[str, Any]]) -> Any:
    return {"project_key": "p", "entries": entries}


def test_a_result_that_a_hook_tells_gives_way_to_claudes_own() -> None:
    told = transcript.with_result(state_of(asks("toolu_a")), "p", CALL, "12 m", False, "now")
    assert told is not None
    assert told["entries"][-1]["uuid"] == made_uuid("result", "toolu_a")

    own = transcript.added(told, "p", [result("toolu_a", "12 m")])

    assert own is not None
    assert own["entries"] == [*asks("toolu_a"), result("toolu_a", "12 m")]
    assert transcript.with_result(own, "p", CALL, "12 m", False, "now") is None


def test_a_result_that_others_follow_stays() -> None:
    told = transcript.with_result(state_of(asks("toolu_a")), "p", CALL, "12 m", True, "now")
    assert told is not None
    last = told["entries"][-1]
    assert last["message"]["content"][0]["is_error"] is True
    follows = {"type": "user", "uuid": "z", "parentUuid": last["uuid"], "isMeta": True}

    later = transcript.added(told, "p", [follows])

    assert later is not None
    assert later["entries"][-2:] == [last, follows]


def test_a_prompt_that_waits_is_not_said_twice() -> None:
    said = transcript.with_prompt(None, "p", SESSION, "hello", "p1", "now")
    assert said is not None
    assert transcript.waiting_prompt(said) == "hello"
    assert transcript.with_prompt(said, "p", SESSION, "hello", "p2", "now") is None
    assert transcript.with_prompt(said, "p", SESSION, transcript.GO_ON, "p3", "now") is None

    own = {"type": "user", "uuid": "u", "promptId": "p1", "message": {"content": "hello"}}
    kept = transcript.added(said, "p", [own])

    assert kept is not None
    assert kept["entries"] == [own]


def test_calls_that_nothing_answers_wait() -> None:
    state = state_of([*asks("toolu_a", "toolu_b"), result("toolu_a", "12 m")])

    assert [each.id for each in transcript.pending(state)] == ["toolu_b"]
    assert transcript.waiting_prompt(state) == "hello"


@pytest.mark.parametrize(
    ("response", "content"),
    [
        ("plain", "plain"),
        ([text("a")], [text("a")]),
        ({"stdout": "out", "stderr": "err", "interrupted": False}, "out\nerr"),
        ({"filePath": "ä"}, '{"filePath": "ä"}'),
        (None, "null"),
    ],
)
def test_what_a_tool_gave_is_told_as_its_result(response: Any, content: Any) -> None:
    assert result_content(response) == content


@pytest.mark.parametrize("kill_at", ["tool depth#1", "tool tide#1"])
async def test_who_resumes_with_options_of_their_own_finds_finished_calls_answered(
    kill_at: str, tmp_path: Path
) -> None:
    job = Job("claude_agent_sdk", tmp_path)
    assert job.start(kill_at).was_killed

    def script(messages: list[dict[str, Any]]) -> Blocks:
        return [text("so be it")]

    with ClaudeServer(script) as server, SyncClient.open(job.url) as client:
        store = HoldfastSessionStore(client)
        given = server.options(
            tmp_path / "home",
            session_store=store,
            hooks=store.hooks(),
            resume=store.claude_id("job-1"),
        )
        async for _ in query(prompt="go on", options=given):
            pass

    (request,) = server.requests
    found = results_in(request)
    is_finished = kill_at == "tool tide#1"
    assert ("12.5 m in Süd" in found["toolu_depth"]) is is_finished
    assert "interrupted" in found["toolu_tide"]
    assert said_in(request)[-1] == "go on"


async def test_a_client_that_talks_keeps_its_session(tmp_path: Path) -> None:
    def script(messages: list[dict[str, Any]]) -> Blocks:
        return [text(f"answer to {said_in(messages)[-1]}")]

    with ClaudeServer(script) as server:
        async with HoldfastSessionStore(url=f"sqlite:///{tmp_path}/store.db") as store:
            for prompts in (["one", "two"], ["three"]):
                given = await store.options("talk", server.options(tmp_path / "home"))
                async with ClaudeSDKClient(given) as client:
                    for prompt in prompts:
                        await client.query(prompt)
                        async for _ in client.receive_response():
                            pass

    assert said_in(server.requests[-1]) == ["one", "two", "three"]


async def test_a_subagents_transcript_is_a_session_beside_its_own(tmp_path: Path) -> None:
    def script(messages: list[dict[str, Any]]) -> Blocks:
        if "count the ships" in said_in(messages)[0]:
            if not results_in(messages):
                return [call("toolu_count", "Bash", command="echo 7 ships")]
            return [text("seven")]
        if not results_in(messages):
            given = {"description": "count", "prompt": "count the ships"}
            more = {"subagent_type": "general-purpose", "run_in_background": False}
            return [call("toolu_task", "Task", **given, **more)]
        return [text("done")]

    with ClaudeServer(script) as server:
        async with HoldfastSessionStore(url=f"sqlite:///{tmp_path}/store.db") as store:
            given = server.options(tmp_path / "home")
            async for _ in store.query(prompt="hello", session_id=SESSION, options=given):
                pass
            names = [session.session_id for session in store.client.sessions()]

    assert SESSION in names
    (beside,) = [name for name in names if name != SESSION]
    assert beside.startswith(f"{SESSION}|subagents/agent-")


# Files alone


async def test_files_are_kept_around_tools_where_the_transcript_is_not(
    tmp_path: Path, repo: Path
) -> None:
    def script(messages: list[dict[str, Any]]) -> Blocks:
        found = results_in(messages)
        if "toolu_bash" not in found:
            return [call("toolu_bash", "Bash", command=f"echo two > {repo}/main.py")]
        return [text("done")]

    seen: list[str] = []

    async def own(given: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        seen.append(given["hook_event_name"])
        return {}

    with (
        SyncClient.open(f"sqlite:///{tmp_path}/store.db") as client,
        Workspace(repo, client) as workspace,
        ClaudeServer(script) as server,
    ):
        mine = {"UserPromptSubmit": [HookMatcher(hooks=[own])]}
        hooks = workspace_hooks(workspace, existing=mine)
        given = server.options(tmp_path / "home", hooks=hooks)
        async for _ in query(prompt="hello", options=given):
            pass
        messages = {each.message: each for each in workspace.snapshots()}
        assert (repo / "main.py").read_text() == "two\n"
        await asyncio.to_thread(workspace.restore, messages["prompt: hello"])

    assert seen == ["UserPromptSubmit"]
    assert set(messages) >= {"prompt: hello", "Bash toolu_bash"}
    assert (repo / "main.py").read_text() == "print('one')"


def test_files_are_those_of_a_workspace() -> None:
    with pytest.raises(InvalidArgumentError, match="takes a Workspace"):
        workspace_hooks("repo")  # type: ignore[arg-type]


# When the process is gone


def test_claude_runs_no_tool_when_nobody_is_there_to_record_it(tmp_path: Path) -> None:
    started: list[subprocess.Popen[bytes]] = []
    answers: list[str] = []
    is_told = threading.Event()

    def script(messages: list[dict[str, Any]]) -> Blocks:
        found = results_in(messages)
        if not found:
            started[0].kill()
            started[0].wait()
            return [call("toolu_1", "Bash", command=f"echo > {tmp_path}/ran")]
        answers.append(found["toolu_1"])
        is_told.set()
        return [text("done")]

    with ClaudeServer(script) as server:
        given = server.options(tmp_path / "home")
        program = (
            "import asyncio, json, sys\n"
            "from claude_agent_sdk import ClaudeAgentOptions\n"
            "from holdfast.adapters.claude_agent_sdk import HoldfastSessionStore\n"
            "async def main():\n"
            "    options = ClaudeAgentOptions(**json.loads(sys.argv[1]))\n"
            "    store = HoldfastSessionStore(url=sys.argv[2])\n"
            "    asked = store.query(prompt='x', session_id='s', options=options)\n"
            "    async for message in asked:\n"
            "        pass\n"
            "asyncio.run(main())\n"
        )
        names = ("env", "permission_mode", "setting_sources", "model")
        chosen = {name: getattr(given, name) for name in names} | {"cwd": str(given.cwd)}
        url = f"sqlite:///{tmp_path}/store.db"
        command = [sys.executable, "-c", program, json.dumps(chosen), url]
        started.append(subprocess.Popen(command))
        assert is_told.wait(60)

    assert "doesn't want to take this action" in answers[0]
    assert not (tmp_path / "ran").exists()
