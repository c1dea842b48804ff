"""What tests of hostile stores share: who reads one, in a process of its own; a good store."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from holdfast import SyncClient
from tests.hostile.child import AGENT, SESSION

REPOSITORY = Path(__file__).parent.parent.parent
Said = dict[str, str]
"""What each verb said of a case."""


def judged(cases: Mapping[str, Mapping[str, str]]) -> dict[str, Said]:
    """What every verb says of each case: a ``url`` to be opened or a ``bundle`` to be imported."""
    lines = "".join(json.dumps(dict(case)) + "\n" for case in cases.values())
    ran = subprocess.run(
        [sys.executable, "-m", "tests.hostile.child"],
        input=lines,
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        check=False,
    )
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(answers) == len(cases), ran.stderr
    for name, said in zip(cases, answers, strict=True):
        if "process" in said:
            said["process"] += "\n" + ran.stderr[-2000:]
        assert said, name
    return dict(zip(cases, answers, strict=True))


def crashes(said: Mapping[str, Said]) -> str:
    """Every verb that met anything but an answer or an error of Holdfast's."""
    found = [
        f"{case}: {verb}: {what}"
        for case, verbs in said.items()
        for verb, what in verbs.items()
        if what.startswith("CRASH")
    ]
    return "\n".join(found[:5]) + (f"\n… {len(found)} in all" if len(found) > 5 else "")


def judged_one(**case: str) -> Said:
    """What every verb says of one case; nothing may crash."""
    said = judged({"it": case})
    assert not crashes(said), crashes(said)
    return said["it"]


def fill(client: SyncClient, steps: int = 4) -> list[str]:
    """A session with a plan, calls, notes and a fork, as a real agent leaves it."""
    with client.session(AGENT, session_id=SESSION, state={"messages": []}) as run:
        for task in run.tasks.plan("look", "mend").remaining():
            with task:
                out = run.call(_tool, task.name, effect="irreversible")
                run.state["messages"].append(out)
        for step in range(steps):
            run.state["messages"] += [f"{step} {n} " + "word " * 40 for n in range(30)]
            run.checkpoint(f"step {step}")
    chain = client.timeline(AGENT, SESSION)
    client.fork(chain[1].checkpoint_id, session_id="other")
    client.handoff(chain[0].checkpoint_id, "tester")
    return [info.checkpoint_id for info in chain]


def _tool(name: str) -> str:
    return f"did {name}"
