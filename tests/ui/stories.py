"""Stories for the page to show: runs in every condition, and content made to do harm."""

import contextlib
import struct
import sys
import time
import zlib
from pathlib import Path
from typing import Any

from holdfast import StillWaitingError, SyncClient

AGENT, SESSION = "coder", "fix-42"
HOSTILE = '<img src=x onerror="alert(1)"><script>alert(2)</script>'
BIDI = "safe\u202egnp.exe"
HTML = "<!doctype html><script>parent.broken = true; alert(3)</script><h1>Not a heading</h1>\n"
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(4)"><script>alert(5)</script>'
    '<circle r="4"/></svg>\n'
)


ADDS = """It has to add.

The operator in `main.py` is the wrong one:

```python
def add(a, b):
    return a + b
```

- the test that failed is in **test_add.py** now
- nothing else calls `add`
"""


class PowerCut(BaseException):
    """Ends a run as a kill would."""


def picture(width: int = 24, height: int = 16) -> bytes:
    """A small PNG: a gradient."""
    rows = b"".join(
        b"\0" + bytes(c for x in range(width) for c in (40 + 6 * x, 90 + 8 * y, 200))
        for y in range(height)
    )

    def chunk(name: bytes, data: bytes) -> bytes:
        check = zlib.crc32(name + data)
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", check)

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def look(path: str) -> str:
    """A tool that reads."""
    return f"the text of {path}"


def charge(amount: int) -> str:
    """A tool whose effect another one undoes."""
    return f"receipt {amount}"


def refund(output: str, amount: int) -> None:
    """Undoes a charge."""


def mail(to: str) -> str:
    """A tool that cannot be undone."""
    return f"sent to {to}"


def fail(name: str) -> str:
    """A tool that fails."""
    raise ValueError(f"2 tests of {name} fail")


def cut(name: str) -> str:
    """A tool during which the power goes."""
    raise PowerCut


def tell(client: SyncClient, directory: Path) -> None:
    """All of it, with files in the directory."""
    work(client, directory / "repo")
    branch(client)
    ask(client, "news")
    lose(client, "order-7")
    harm(client, directory / "hostile")
    client.handoff(client.timeline(AGENT, SESSION)[0].checkpoint_id, "reviewer")


def work(client: SyncClient, repo: Path) -> None:
    """A run with tasks, calls, files, a rollback and a failure."""
    repo.mkdir(parents=True)
    (repo / "main.py").write_text("def add(a, b):\n    return a - b\n")
    (repo / "logo.png").write_bytes(picture())
    (repo / "docs").mkdir()
    (repo / "docs" / "guide.md").write_text("# Guide\n\nHow to add.\n")
    messages = [
        {"role": "system", "content": "You fix bugs."},
        {"role": "user", "content": "The tests of add() fail. Please fix it."},
    ]
    with client.session(
        AGENT, SESSION, workspace=repo, state={"messages": messages}, team="core"
    ) as run:
        tasks = {task.name: task for task in run.tasks.plan("read", "fix", "test", "publish")}
        with tasks["read"]:
            said = run.call(look, "main.py", effect="read")
            run.state["messages"] += _called("c1", "look", '{"path": "main.py"}', said)
        with tasks["fix"]:
            (repo / "main.py").write_text("def add(a, b):\n    return a * b\n")
            run.state["messages"].append({"role": "assistant", "content": "It has to multiply."})
        run.rollback("read: completed")
        with tasks["fix"]:
            (repo / "main.py").write_text("def add(a, b):\n    return a + b\n")
            (repo / "test_add.py").write_text("assert add(2, 2) == 4\n")
            run.state["messages"].append({"role": "assistant", "content": ADDS})
            run.state["budget"] = {"spent": 3, "limit": 10, "notes": ["first", "second"]}
        run.call(charge, 5, effect="reversible", compensate=refund)
        run.call(mail, "ann", effect="irreversible")
        with contextlib.suppress(ValueError), tasks["test"]:
            run.call(fail, "add")


def _called(call_id: str, name: str, arguments: str, answer: str) -> list[dict[str, Any]]:
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return [
        {"role": "assistant", "content": "I look at the file first.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": answer},
    ]


def branch(client: SyncClient) -> None:
    """A fork that goes on, and an exploration of two strategies."""
    fixed = named(client, AGENT, SESSION, "fix: completed")
    client.fork(fixed, session_id="bolder")
    client.save(
        AGENT,
        execution_state={"messages": [{"role": "user", "content": "Be bold."}], "bold": True},
        session_id="bolder",
        step_index=9,
        step_name="rewrite",
    )
    base = client.save("traveller", execution_state={"plan": None}, session_id="trip")
    client.explore(
        base, {"train": _by_train, "plane": _by_plane}, score=lambda run: -run.state["hours"]
    )


def _by_train(run: Any) -> None:
    run.state["hours"] = 9


def _by_plane(run: Any) -> None:
    run.state["hours"] = 2


def ask(client: SyncClient, session: str, to: Any = "everybody") -> None:
    """A run that waits until somebody approves of a mail."""
    with (
        contextlib.suppress(StillWaitingError),
        client.session("mailer", session, approval="wait", approval_timeout=0.05) as run,
    ):
        run.call(mail, to, effect="irreversible")


def lose(client: SyncClient, session: str) -> None:
    """A run that ended within a call: whether it took place, nobody knows."""
    with contextlib.suppress(PowerCut), client.session("shop", session) as run:
        run.call(cut, "payment", effect="irreversible")


def harm(client: SyncClient, directory: Path) -> None:
    """Scripts, and characters that turn text around, wherever there is text."""
    directory.mkdir()
    (directory / "page.html").write_text(HTML)
    (directory / "drawing.svg").write_text(SVG)
    (directory / "<b onclick=alert(6)>bold.txt").write_text(HOSTILE)
    (directory / BIDI).write_text(BIDI)
    said = [
        {"role": "user", "content": HOSTILE},
        {"role": HOSTILE, "content": BIDI},
        {"role": "assistant", "content": f"[link](javascript:alert(7)) {HTML}"},
    ]
    with client.session(
        "hostile", HOSTILE, workspace=directory, state={"messages": said, HOSTILE: [HOSTILE]}
    ) as run:
        run.tasks.plan(HOSTILE)
        run.call(look, HOSTILE, effect="read")
        run.checkpoint(HOSTILE)


FORGED = {"$type": "int", "value": '1,\n    "to": "somebody else'}
ODD = {"$type": "datetime", "value": ["x", "y"]}


def forge(client: SyncClient) -> None:
    """Arguments and roles that look like something else: typed values, what objects have."""
    ask(client, "news", FORGED)
    ask(client, "odd", ODD)
    for role in ("constructor", "__proto__"):
        said = [
            {"role": role, "content": "Who says this?"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c1", "name": "pay", "input": ODD}],
            },
        ]
        client.save(
            "forger", execution_state={"messages": said, "odd": ODD}, session_id=role.strip("_")
        )


LONG = 10_000_000
BRANCHES = 5000


def crowd(client: SyncClient, directory: Path) -> None:
    """Lines of ten million characters, and thousands of branches from one checkpoint."""
    directory.mkdir()
    (directory / "long.txt").write_text("q" * LONG)
    (directory / "lines.txt").write_text("q\n" * 1_000_000)
    state = {"messages": [{"role": "user", "content": "m" * LONG}], "line": "s" * LONG}
    with client.session("crowd", "long", workspace=directory, state=state) as run:
        (directory / "long.txt").write_text("q" * (LONG // 2) + "r" * 1000)
        run.checkpoint("n" * 1000)
    root = client.save("crowd", execution_state={"n": 0}, session_id="root", step_name="root")
    for number in range(BRANCHES):
        client.fork(root, session_id=f"branch-{number}")


def named(client: SyncClient, agent: str, session: str, name: str) -> str:
    """The newest checkpoint of a step."""
    return next(i for i in client.timeline(agent, session) if i.step_name == name).checkpoint_id


def steps(client: SyncClient, agent: str, session: str, count: int) -> list[str]:
    """A plain run of so many steps."""
    return [
        client.save(
            agent,
            execution_state={
                "messages": [{"role": "user", "content": f"message {i}"} for i in range(n + 1)],
                "count": n,
            },
            session_id=session,
            step_index=n,
            step_name=f"step {n}",
        )
        for n in range(count)
    ]


def agent(url: str, directory: Path) -> None:
    """An agent for a process of its own: three tasks, the last with a call to approve.

    It waits before the second until the file "go" is there.
    """
    with (
        SyncClient.open(url) as client,
        client.session(
            "worker", "job", workspace=directory, approval="wait", state={"messages": []}
        ) as run,
    ):
        for task in run.tasks.plan("one", "two", "three").remaining():
            with task:
                if task.name == "two":
                    while not (directory.parent / "go").exists():
                        time.sleep(0.02)
                (directory / f"{task.name}.txt").write_text(task.name)
                run.state["messages"].append({"role": "assistant", "content": f"did {task.name}"})
                if task.name == "three":
                    run.call(mail, "ann", effect="irreversible")


if __name__ == "__main__":
    agent(sys.argv[1], Path(sys.argv[2]))
