"""Reads hostile stores with every verb, each store in a process of its own that can do no harm.

Run as a program: takes cases as lines of JSON, and answers each with a line of JSON that says what
every verb met. A case is forked off with limits on memory, processor time and time as such, so
that what hangs or grows is ended and named.
"""

import json
import os
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from holdfast import HoldfastError, SyncClient

MEMORY = 3 * 2**30
PROCESSOR = 60
PATIENCE = 150
RUNS_SOMETHING = {
    *("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.startfile", "pty.spawn"),
    "subprocess.Popen",
}
AGENT, SESSION = "coder", "main"


def main() -> None:
    for line in sys.stdin:
        case = json.loads(line)
        answer = in_a_child(partial(read_all, case))
        print(json.dumps(answer), flush=True)


def in_a_child(work: Callable[[], dict[str, str]]) -> dict[str, str]:
    """What the work says, or how the process that did it ended."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        try:
            limit()
            with os.fdopen(write, "w") as answer:
                json.dump(work(), answer)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(99)
    os.close(write)
    with os.fdopen(read) as answers:
        text = answers.read()
    _, status = os.waitpid(child, 0)
    if status == 0:
        return dict(json.loads(text))
    ended = os.waitstatus_to_exitcode(status)
    how = {-signal.SIGALRM: "it hangs", -signal.SIGXCPU: "it goes on for ever"}.get(ended)
    return {"process": f"CRASH: {how or f'it ended with {ended}'}"}


def limit() -> None:
    signal.alarm(PATIENCE)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR, PROCESSOR))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.addaudithook(refuse_to_run)


def refuse_to_run(event: str, _: tuple[Any, ...]) -> None:
    if event in RUNS_SOMETHING:
        os.write(2, f"stored data ran {event}\n".encode())
        os._exit(98)


def read_all(case: dict[str, str]) -> dict[str, str]:
    """What each verb met: ``ok``, an error of Holdfast's, or a CRASH."""
    said: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as directory:
        if "bundle" in case:
            url = f"sqlite:///{directory}/imported.db"
            with SyncClient.open(url) as client:
                said["import"] = saying(lambda: client.import_(case["bundle"]))
        else:
            url = case["url"]
        opened: list[SyncClient] = []
        said["open"] = saying(lambda: opened.append(SyncClient.open(url)))
        for client in opened:
            for name, verb in verbs(client, Path(directory)):
                said[name] = saying(verb)
            said["close"] = saying(client.close)
    return said


def verbs(client: SyncClient, directory: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Everything that reads, and what opens a session."""
    found: list[str] = []

    def find() -> None:
        found.extend(info.checkpoint_id for info in client.find(limit=None))
        for info in client.find(limit=None):
            str(info.as_dict())

    def session() -> None:
        with client.session(AGENT, session_id=SESSION) as run:
            run.history()
            run.unknown_effects()

    yield "stats", client.stats
    yield "sessions", client.sessions
    yield "find", find
    yield "find a tag", partial(client.find, tags={"x": 1})
    yield "a page of sessions", partial(client.sessions, limit=1)
    yield "timeline", lambda: client.timeline(AGENT, SESSION, with_state=True)
    yield "latest", lambda: client.latest(AGENT, SESSION)
    yield "tree", lambda: str(client.tree(AGENT, SESSION))
    yield "replay", lambda: [str(step) for step in client.replay(SESSION, agent_id=AGENT)]
    for checkpoint_id in [*found[:3], *found[3:][-3:]]:
        yield f"restore {checkpoint_id}", partial(client.restore, checkpoint_id)
        yield f"ancestors {checkpoint_id}", partial(client.ancestors, checkpoint_id)
    if found:
        yield "diff", lambda: str(client.diff(found[-1], found[0]))
    yield "inbox", lambda: client.inbox(AGENT)
    yield "pending", client.pending
    yield "verify", client.verify
    yield "gc", lambda: client.gc(dry_run=True)
    yield "export", lambda: client.export(directory / "out.bundle")
    yield "session", session


def saying(verb: Callable[[], Any]) -> str:
    try:
        answer = verb()
    except HoldfastError as error:
        return f"{type(error).__name__}: {error}"[:500]
    except BaseException as error:
        return f"CRASH: {type(error).__name__}: {''.join(traceback.format_exception(error)[-3:])}"
    return f"ok: {answer}"[:300]


if __name__ == "__main__":
    main()
