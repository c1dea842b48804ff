"""``holdfast demo``: an agent is killed, resumed, rolled back, forked and compared."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from holdfast.cli.commands.demo_agent import AGENT, SESSION, STEPS
from holdfast.cli.exits import OK
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.parsing import Parser
from holdfast.client import SyncClient
from holdfast.errors import InvalidArgumentError
from holdfast.model import CheckpointInfo

KILLED_AFTER = 3


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain("An agent is killed, resumed, rolled back, forked and compared.")
    parser.add_argument(
        "--store", type=Path, metavar="FILE", help="keep the demo's checkpoints in this SQLite file"
    )
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Play the demo."""
    if not terminal.json:
        show(options.store)
        return OK
    said = StringIO()
    with redirect_stdout(said):
        show(options.store)
    terminal.emit({"said": said.getvalue().splitlines()})
    return OK


def show(store: Path | None = None) -> None:
    """Show it, on a store of its own."""
    if store is not None:
        if store.exists():
            raise InvalidArgumentError(f"{store} exists already: the demo wants a new file")
        _show(store)
        return
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as directory:
        _show(Path(directory) / "holdfast.db")


def _show(path: Path) -> None:
    print("An agent writes a report in six steps and saves a checkpoint after each.")
    _heading("1. It is killed in mid-run (SIGKILL: no chance to clean up)")
    _agent(path, kill_after=KILLED_AFTER)

    _heading("2. The same program is started again: it goes on where it stopped")
    _agent(path)

    with SyncClient.sqlite(path) as client:
        history = client.timeline(AGENT, SESSION)
        by_step = {info.step_index: info for info in history}

        _heading("3. Every step is there, newest first")
        for info in history:
            print(f"   {_label(info)}")

        _heading("4. What did the last step change?")
        print(_indented(client.diff(by_step[5].checkpoint_id, by_step[6].checkpoint_id)))

        _heading("5. Roll back to 'read' (step 3): a new checkpoint, nothing is overwritten")
        target = client.restore(by_step[3].checkpoint_id)
        client.save(
            AGENT,
            execution_state=target.execution_state,
            session_id=SESSION,
            parent_id=target.checkpoint_id,
            step_index=target.step_index,
            step_name="rollback",
        )
        head = client.latest(AGENT, SESSION)
        assert head is not None
        print(f"   the head has {len(head.execution_state['messages'])} messages again")

        _heading("6. Fork step 4 and try another way, beside the original")
        fork = client.restore(client.fork(by_step[4].checkpoint_id, session_id="bolder"))
        other = fork.execution_state
        other["messages"].append(
            {"role": "assistant", "step": "write", "content": "Kelp knows best."}
        )
        bolder = client.save(
            AGENT, execution_state=other, session_id="bolder", step_index=5, step_name="write"
        )
        print(_indented(client.tree(AGENT, SESSION)))
        print("   and compared with the original's last step:")
        print(_indented(client.diff(by_step[6].checkpoint_id, bolder)))

        stats = client.stats()
        _heading("7. What it costs")
        started = time.perf_counter()
        client.save(AGENT, execution_state=other, session_id="bolder", step_index=6)
        took = (time.perf_counter() - started) * 1000
        print(f"   {stats.checkpoints} checkpoints: {stats.logical_bytes:,} bytes of state")
        print(f"   kept in {stats.stored_bytes:,} bytes, because they share what is the same")
        print(f"   one save, safe on disk: {took:.1f} ms")
        print(f"   every checkpoint verified: {client.verify().ok}")


def _agent(path: Path, kill_after: int | None = None) -> None:
    command = [sys.executable, "-m", "holdfast.cli.commands.demo_agent", str(path)]
    with subprocess.Popen(  # noqa: S603  (this very program)
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as agent:
        assert agent.stdout is not None
        assert agent.stdin is not None
        for line in agent.stdout:
            print(f"   agent {agent.pid}: {line.rstrip()}")
            if line.startswith("saved"):
                if line.split()[1] == str(kill_after):
                    agent.kill()
                    break
                agent.stdin.write("\n")
                agent.stdin.flush()
        code = agent.wait()
    if code == -signal.SIGKILL:
        print(f"   agent {agent.pid}: killed after step {kill_after} of {len(STEPS)}")


def _heading(text: str) -> None:
    print(f"\n{text}")


def _indented(text: object) -> str:
    return "\n".join(f"   {line}" for line in str(text).splitlines())


def _label(info: CheckpointInfo) -> str:
    return f"{info.checkpoint_id}  step {info.step_index}  {info.step_name}"
