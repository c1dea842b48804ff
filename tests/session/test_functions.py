"""Only functions that the program gave undo effects; a name in stored data is never looked up."""

# ruff: noqa: SIM117  (a run is a block, and some raise as it ends)

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from holdfast import SyncClient, register_tool
from holdfast.errors import CheckpointIntegrityError, InvalidArgumentError, RunError
from holdfast.session import calls, functions
from holdfast.session.effects import Effect
from holdfast.session.functions import Functions, defined_in, named, path_of
from holdfast.verbs import notes
from tests.session.conftest import Open
from tests.session.kit import AGENT, SESSION, PowerCut, Tools, cut_at, power_cut

undone: list[Any] = []
HOSTILE: tuple[str, ...] = (
    "os:system",
    "posix:system",
    "subprocess:call",
    "builtins:exec",
    "builtins:eval",
)
HOSTILE += (f"{__name__}:not_given", f"{__name__}:Tools.cancel()", "sys:exit", "no such: thing", "")


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the code is the same for all, two stores are enough."""
    from tests.clients import url_of

    return url_of(request.param, tmp_path)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    undone.clear()
    monkeypatch.setattr(functions, "_registered", {})


def not_given(output: Any, *args: Any) -> None:
    undone.append(("not given", output))


def cancel(output: Any, *args: Any) -> None:
    undone.append(("cancel", output))


def effect(compensate: Any, effect_id: str = "e") -> Any:
    return SimpleNamespace(id=effect_id, compensate=compensate)


# What others wrote


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a bundle whose effect is undone by a function that its author chose."""

    def made(name: Any, pending: bool) -> Path:
        command = f"touch {tmp_path / 'ran'}"
        path = tmp_path / "hostile.bundle"
        with monkeypatch.context() as patched, SyncClient.memory() as author:
            patched.setattr(calls, "path_of", lambda function: name)
            with power_cut(), author.session(AGENT, session_id=SESSION) as run:
                run.call(lambda: command, effect="reversible", compensate=cancel)
                run.checkpoint("booked")
                if pending:
                    with cut_at("run:before_compensation"):
                        run.rollback(to="start")
                raise PowerCut
            author.export(path)
        return path

    return made


@pytest.mark.parametrize("name", HOSTILE)
def test_a_bundle_that_names_a_function_has_nothing_called(
    client: Any, session: Open, bundle: Any, tmp_path: Path, name: str
) -> None:
    client.import_(bundle(name, pending=False))
    assert client.verify().ok

    with session(tools=[cancel]) as run:
        with pytest.raises(RunError, match=r"is undone by .*has not given.*tools=.*register_tool"):
            run.rollback(to="start")
        assert run.history(limit=1)[0].step_name == "booked"
    assert not (tmp_path / "ran").exists()
    assert undone == []


@pytest.mark.parametrize("name", HOSTILE)
def test_a_bundle_with_a_rollback_that_was_cut_off_has_nothing_called_when_it_is_opened(
    client: Any, session: Open, bundle: Any, tmp_path: Path, name: str
) -> None:
    client.import_(bundle(name, pending=True))
    before = [info.checkpoint_id for info in client.find(session_id=SESSION)]

    for _ in range(2):  # and no lease is left behind
        with pytest.raises(RunError, match=r"--import MODULE"):
            with session(tools=[cancel]):
                pass
    assert not (tmp_path / "ran").exists()
    assert undone == []
    assert [info.checkpoint_id for info in client.find(session_id=SESSION)] == before
    with session(tools={name: cancel}) as run:  # who means it can say so
        assert run.history(limit=1)[0].step_name == "rolled back to start"
    assert undone == [("cancel", f"touch {tmp_path / 'ran'}")]


@pytest.mark.parametrize("name", [7, ["os:system"], b"os:system", {"os": "system"}])
def test_a_name_that_is_no_text_is_told_as_missing(name: Any) -> None:
    with pytest.raises(RunError, match="has not given"):
        Functions(named([cancel])).find(effect(name))


def test_a_pending_rollback_without_its_function_changes_no_files(
    session: Open, repo: Path, tools: Tools
) -> None:
    with power_cut(), session(workspace=repo) as run:
        run.call(tools.book, effect="reversible", compensate=not_given)
        with cut_at("run:before_compensation"):
            run.rollback(to="start")
        raise PowerCut
    (repo / "main.py").write_text("edited since")

    with pytest.raises(RunError, match="has not given"):
        with session(workspace=repo):
            pass
    assert (repo / "main.py").read_text() == "edited since"
    with session(workspace=repo, tools=[not_given]):
        assert (repo / "main.py").read_text() == "print('one')"


@pytest.mark.parametrize(
    "intent",
    [
        *(7, [], {}, {"target": 7, "scope": ["state"], "name": "x"}),
        {"target": "own", "scope": "state", "name": "x"},
        {"target": "own", "scope": ["everything"], "name": "x"},
        {"target": "own", "scope": [["state"]], "name": "x"},
        {"target": "other", "scope": ["state"], "name": "x"},
    ],
)
def test_a_note_of_a_rollback_that_is_none_is_told_and_changes_nothing(intent: Any) -> None:
    with SyncClient.memory() as client:
        with client.session(AGENT, session_id="other") as run:
            other = run.head
        with client.session(AGENT, session_id=SESSION) as run:
            own = run.head
        head = run.head
        if isinstance(intent, dict) and isinstance(intent.get("target"), str):
            intent = {**intent, "target": {"own": own, "other": other}[intent["target"]]}
        written = notes.NoteBatch()
        written.add(client.runtime.engine, head, "rollback", intent)
        client.runtime.run(written.write())
        with pytest.raises(CheckpointIntegrityError, match="its note of a rollback"):
            with client.session(AGENT, session_id=SESSION):
                pass
        assert client.timeline(AGENT, SESSION)[0].checkpoint_id == head


# What the program gave


def test_a_registered_function_is_found_after_a_restart(session: Open, tools: Tools) -> None:
    register_tool(cancel)
    with session() as run:
        run.call(tools.book, effect="reversible", compensate=cancel)
    with session() as run:
        run.rollback(to="start")
    assert len(undone) == 1


def test_tools_of_a_run_are_given_also_before_it_is_opened(session: Open, tools: Tools) -> None:
    with power_cut(), session() as run:
        run.call(tools.book, effect="reversible", compensate=not_given)
        with cut_at("run:before_compensation"):
            run.rollback(to="start")
        raise PowerCut
    run = session()
    run.tool(effect="reversible", compensate=not_given)(tools.book)
    with run:
        assert len(undone) == 1


def test_what_is_no_function_is_no_tool(session: Open) -> None:
    for tools in ([7], {"x": 7}, {7: cancel}):
        with pytest.raises(InvalidArgumentError, match="tools are functions"):
            session(tools=tools)
    wrong: list[Any] = [7, partial(cancel, 1), lambda output: None]
    for each in wrong:
        with pytest.raises(InvalidArgumentError):
            register_tool(each)


def test_methods_of_two_objects_are_not_taken_for_each_other() -> None:
    one, two = Tools(), Tools()
    both = Functions(named([one.cancel, two.cancel]))
    with pytest.raises(RunError, match="several that were given are called so"):
        both.find(effect("tests.session.kit:Tools.cancel()"))
    assert Functions(named([one.cancel])).find(effect(path_of(two.cancel))) == one.cancel

    register_tool(one.cancel)
    register_tool(one.cancel)
    with pytest.raises(InvalidArgumentError, match="of another object"):
        register_tool(two.cancel)


def test_a_record_of_an_old_script_is_matched_by_the_qualified_name_if_one_fits() -> None:
    old = effect("__main__:cancel")
    assert Functions(named([cancel])).find(old) is cancel
    other = ModuleType("other")
    exec("def cancel(output): pass", vars(other))
    with pytest.raises(RunError, match=r"other:cancel, .*test_functions:cancel"):
        Functions(named([cancel, other.cancel])).find(old)
    with pytest.raises(RunError, match="has not given"):
        Functions(named([cancel])).find(effect("__main__:not_given"))
    with pytest.raises(RunError, match="has not given"):  # only scripts have had other names
        Functions(named([cancel])).find(effect("elsewhere:cancel"))


MODULE = """
from os import system, path
from shutil import rmtree
import subprocess

def cancel(output): ...
async def release(output): ...
alias = rmtree
ready = cancel
nameless = lambda output: None

class Bank:
    @staticmethod
    def refund(output): ...
    def method(self): ...
    class Inner:
        @staticmethod
        def deep(output): ...
    imported = staticmethod(rmtree)
"""


def test_a_module_gives_what_it_defines_and_nothing_it_imported() -> None:
    module = ModuleType("agent")
    exec(MODULE, vars(module))

    assert [path_of(each) for each in defined_in(module)] == [
        *("agent:cancel", "agent:release", "agent:Bank.refund", "agent:Bank.Inner.deep"),
    ]
    vars(module)["__holdfast_tools__"] = ["cancel", module.Bank.refund]
    assert [path_of(each) for each in defined_in(module)] == ["agent:cancel", "agent:Bank.refund"]
    for wrong in ("system", "Bank", os.system, "nothing"):
        vars(module)["__holdfast_tools__"] = [wrong]
        with pytest.raises(InvalidArgumentError, match="__holdfast_tools__ lists functions"):
            defined_in(module)


# Scripts

SCRIPT = """
import sys
from holdfast import SyncClient

def book(hotel):
    return f"booked {hotel}"

def cancel(output, hotel):
    with open("cancelled.txt", "a") as file:
        file.write(f"{output}\\n")

if __name__ == "__main__":
    with SyncClient.sqlite(".holdfast/holdfast.db") as client:
        with client.session("travel", session_id="rome") as run:
            run.checkpoint("before")
            run.call(book, "hotel", effect="reversible", compensate=cancel)
            print(run.effects[0].compensate)
"""


@pytest.fixture(params=["python agent.py", "python -m trips.agent"])
def script(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """A program that was run as a script, and the name it has when it is imported."""
    as_module = "-m" in request.param
    folder = tmp_path / "trips" if as_module else tmp_path
    folder.mkdir(exist_ok=True)
    (folder / "agent.py").write_text(SCRIPT)
    name = "trips.agent" if as_module else "agent"
    said = _python(tmp_path, *request.param.split()[1:])
    assert said == f"{name}:cancel\n"
    return tmp_path, name


def _python(where: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=where, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_a_script_did_is_undone_by_the_module_it_is(script: tuple[Path, str]) -> None:
    where, name = script
    _python(where, "-m", "holdfast", "rollback", "before", "--import", name, "--yes")
    assert (where / "cancelled.txt").read_text() == "booked hotel\n"


def test_what_a_script_did_is_undone_by_a_program_that_imports_it(
    script: tuple[Path, str],
) -> None:
    where, name = script
    program = (
        f"import {name} as agent\nfrom holdfast import SyncClient\n"
        "client = SyncClient.sqlite('.holdfast/holdfast.db')\n"
        "with client.session('travel', 'rome', tools=[agent.cancel]) as run:\n"
        "    run.rollback('before')\n"
    )
    _python(where, "-c", program)
    assert (where / "cancelled.txt").read_text() == "booked hotel\n"


# A tool that takes a key itself


def test_a_tool_that_takes_a_key_gets_it_and_the_call_has_its_own(session: Open) -> None:
    made: list[Any] = []

    def fetch(table: str, key: str = "none") -> str:
        made.append((table, key))
        return f"{table}/{key}"

    def plain(table: str) -> str:
        made.append(table)
        return table

    with session() as run:
        assert run.call(partial(fetch, key="theirs"), "users") == "users/theirs"
        assert run.call(partial(fetch, key="theirs"), "users", key="ours") == "users/theirs"
        assert run.call(fetch, "users", "third", key="again") == "users/third"
        assert [each.key for each in run.effects] == [None, "ours", "again"]
        assert run.effects[0].kwargs == {"key": "theirs"}
        with pytest.raises(InvalidArgumentError, match=r"functools.partial\(fetch, key=...\)"):
            run.call(fetch, "users", key="whose?")

        tool, other = run.tool(fetch), run.tool(plain)
        assert tool("users", key="mine") == "users/mine"
        assert other("users", key="once") == other("users", key="once") == "users"
    assert len(made) == 5


# What a record may say that it raised


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), "text", 7])
def test_a_record_cannot_end_the_program_with_what_it_calls_an_error(error: Any) -> None:
    recorded = Effect(id="e", index=0, tool="send", kind="local", status="failed", error=error)
    with pytest.raises(RunError, match="with what is no error"):
        calls.outcome(recorded)
