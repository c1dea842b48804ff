"""A small process that forks others: cheap to start many, and safe, as it has no threads.

`ForkServer` is its handle in a test. Functions that run in children are named as
`"module:function"` and get plain arguments; they may call `tell` as they go on.
"""

import json
import os
import random
import selectors
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import holdfast

ROOT = Path(__file__).parents[2]
PATH = os.pathsep.join([str(ROOT), str(Path(holdfast.__file__).parents[1])])


@dataclass(frozen=True)
class Ended:
    """How a child ended: what it told, and the signal that killed it, if one did."""

    told: list[Any]
    signal: int
    error: str


class ForkServer:
    """Runs functions in children of a process of its own."""

    def __init__(self, *preload: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.fork_server", *preload],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": PATH},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.communicate()

    def _ask(self, **request: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def at_once(self, *jobs: tuple[Any, ...]) -> list[list[Any]]:
        """Run functions in a child each, begun at one moment; gives what each of them told."""
        ended = [Ended(**ended) for ended in self._ask(jobs=jobs)]
        for child in ended:
            assert not child.error, child.error
            assert not child.signal
        return [child.told for child in ended]

    def killed(self, *job: Any, told: int | None = None, spin: int = 0) -> Ended:
        """Run a function until it dies: by itself, or killed when it has told so many things."""
        (ended,) = self._ask(jobs=[job], kill_after=told, spin=spin)
        return Ended(**ended)


_out = -1


def tell(thing: Any) -> None:
    """In a child: pass something to the test, at once."""
    os.write(_out, json.dumps(thing).encode() + b"\n")


def main() -> None:
    for module in sys.argv[1:]:
        import_module(module)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(_run(**request)), flush=True)


def _run(
    jobs: list[list[Any]], kill_after: int | None = None, spin: int = 0
) -> list[dict[str, Any]]:
    gate, go = os.pipe()
    children = [_fork(job, gate, go) for job in jobs]
    os.close(gate)
    os.close(go)  # they all read the end of this pipe at one moment
    said: dict[int, list[bytes]] = {out: [] for _, out in children}
    told = 0
    with selectors.DefaultSelector() as selector:
        for out in said:
            selector.register(out, selectors.EVENT_READ)
        if kill_after == 0:
            _kill(children[0][0], spin)
        while selector.get_map():
            for key, _ in selector.select():
                data = os.read(key.fd, 65536)
                said[key.fd].append(data)
                told += data.count(b"\n")
                if not data:
                    selector.unregister(key.fd)
                    os.close(key.fd)
                elif kill_after is not None and told >= kill_after:
                    _kill(children[0][0], spin)
                    kill_after = None
    return [_ended(pid, b"".join(said[out])) for pid, out in children]


def _kill(pid: int, spin: int) -> None:
    for _ in range(spin):
        pass
    os.kill(pid, signal.SIGKILL)


def _ended(pid: int, said: bytes) -> dict[str, Any]:
    _, status = os.waitpid(pid, 0)
    told = [json.loads(line) for line in said.splitlines()]
    error = "".join(thing["error"] for thing in told if isinstance(thing, dict))
    told = [thing for thing in told if not isinstance(thing, dict)]
    return {"told": told, "signal": status & 0x7F, "error": error}


def _fork(job: list[Any], gate: int, go: int) -> tuple[int, int]:
    receive, send = os.pipe()
    pid = os.fork()
    if pid:
        os.close(send)
        return pid, receive
    try:
        global _out
        _out = send
        os.close(receive)
        os.close(go)
        # What is told may come from this module under its proper name.
        vars(import_module("tests.integration.fork_server"))["_out"] = send
        random.seed()
        module, _, name = job[0].partition(":")
        function: Callable[..., None] = getattr(import_module(module), name)
        os.read(gate, 1)
        function(*job[1:])
    except BaseException:
        tell({"error": traceback.format_exc()})
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
