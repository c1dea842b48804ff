"""Real coding agents against a scripted model on loopback.

Which reply comes is a function of the request alone: the last prompt in it that the script knows,
and how many of the model's turns stand behind it. So a conversation that was rewound, resumed or
handed to a subagent is answered as it should be, and nothing is used up.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 120
"""How long a program may take for one prompt before it counts as stuck."""


@dataclass(frozen=True)
class Write:
    """Writes a file with the program's own tool for it."""

    path: str
    text: str


@dataclass(frozen=True)
class Edit:
    """Changes a file with the program's own tool for it."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class Shell:
    """Runs a command."""

    command: str


@dataclass(frozen=True)
class Subagent:
    """Has a subagent do something."""

    prompt: str


@dataclass(frozen=True)
class Tool:
    """Calls any tool by its name, such as one served over MCP."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


Action = Write | Edit | Shell | Subagent | Tool


@dataclass(frozen=True)
class Reply:
    """One turn of the model."""

    text: str = ""
    calls: Sequence[Action] = ()


Script = Mapping[str, Sequence[Reply]]
"""For what a prompt contains, the model's turns from there on."""

Said = list[tuple[Any, ...]]
"""What a model is told: ("user", text), ("agent", text), ("call", tool, arguments) and
("result", text), without ids, system prompts and the program's own reminders."""

Files = dict[str, bytes | None]
"""What is in a project: the bytes of each file, None for a directory."""

ANY_OTHER = Reply("All right.")
"""What the model says where the script knows no answer."""


def reply_to(script: Script, said: Said) -> Reply:
    """Return the model's next turn in a conversation."""
    begun: tuple[int, Sequence[Reply]] | None = None
    for at, each in enumerate(said):
        if each[0] == "user":
            known = next((turns for words, turns in script.items() if words in each[1]), None)
            if known is not None or at == len(said) - 1:
                begun = (at, known or ())
    if begun is None:
        return ANY_OTHER
    rest = [each[0] in ("agent", "call") for each in said[begun[0] :]]
    turns = sum(now and not before for before, now in pairwise(rest))
    return begun[1][turns] if turns < len(begun[1]) else ANY_OTHER


@dataclass(frozen=True)
class Asked:
    """What became of a prompt."""

    code: int
    out: str
    err: str
    requests: list[Request]
    """What the model was sent meanwhile, subagents' requests among it."""


@dataclass(frozen=True)
class Request:
    """One request to the model, and the files at that moment."""

    body: Any
    said: Said
    files: Files
    path: str = ""


class RealProgram(ABC):
    """A coding agent as its users have it, with a home, a project and a model of its own."""

    name: ClassVar[str]
    """As ``holdfast hook install`` takes it."""
    command: ClassVar[str]

    def __init__(self, directory: Path, script: Script) -> None:
        self.home = directory / "home"
        self.project = directory / "project"
        self.script = script
        self.requests: list[Request] = []
        self._lock = threading.Lock()
        for each in (self.home, self.project):
            each.mkdir(parents=True, exist_ok=True)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.configure()

    @abstractmethod
    def configure(self) -> None:
        """Write what the program needs to run against ``self.url``, in ``self.home``."""

    @abstractmethod
    def arguments(self, prompt: str, resume: Sequence[str] | None) -> list[str]:
        """Return the command that gives a prompt without a terminal.

        ``resume`` is the command that a rewind printed, or None for a new conversation.
        """

    @abstractmethod
    def said(self, path: str, body: Any) -> Said | None:
        """Return what a request tells the model; None if it is not about the conversation."""

    @abstractmethod
    def answer(self, path: str, body: Any, reply: Reply) -> tuple[str, bytes]:
        """Return the content type and the bytes of a reply, in the API that the program speaks."""

    def unfinished(self, said: Said, what: str) -> Said:
        """Return what is told where the call that names something had not ended: nothing of it."""
        return [each for each in said if what not in str(each)]

    def beside(self, method: str, path: str, body: Any) -> tuple[int, str, bytes]:
        """Return the answer to a request that is not about the conversation."""
        return 404, "application/json", b"{}"

    def variables(self) -> dict[str, str]:
        """Return what the program needs in its environment besides the usual."""
        return {}

    @property
    def program(self) -> str:
        """The executable."""
        return str(Path(os.environ["HOLDFAST_CODING_AGENTS"]).resolve() / self.command)

    @property
    def environment(self) -> dict[str, str]:
        """What the program, its hooks and ``holdfast`` beside it run with."""
        kept = ("LANG", "LC_ALL", "TMPDIR")
        folders = [Path(sys.executable).parent, Path(self.program).parent]
        return {
            **{name: os.environ[name] for name in kept if name in os.environ},
            "PATH": os.pathsep.join([*map(str, folders), os.environ["PATH"]]),
            "HOME": str(self.home),
            "PWD": str(self.project),
            "PYTHONPATH": str(ROOT / "src"),
            "NO_COLOR": "1",
            **self.variables(),
        }

    def ask(
        self,
        prompt: str,
        resume: Sequence[str] | None = None,
        folder: Path | None = None,
        **variables: str,
    ) -> Asked:
        """Give the program a prompt and wait until it has done what it was asked."""
        before = len(self.requests)
        folder = folder or self.project
        done = subprocess.run(
            self.arguments(prompt, resume),
            cwd=folder,
            env={**self.environment, "PWD": str(folder), **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        return Asked(done.returncode, done.stdout, done.stderr, self.requests[before:])

    def holdfast(self, *words: str, folder: Path | None = None) -> Any:
        """Run ``holdfast`` in the project with ``--json``, and return what it says."""
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", *words, "--json"],
            cwd=folder or self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert done.returncode == 0, (shlex.join(words), done.stdout, done.stderr)
        return json.loads(done.stdout)

    def files(self, folder: Path | None = None) -> Files:
        """Return what is in the project, but for what is Holdfast's and the program's own."""
        folder = folder or self.project
        found: Files = {}
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(folder))
            if not name.split("/")[0].startswith("."):
                found[name] = path.read_bytes() if path.is_file() else None
        return found

    def close(self) -> None:
        """Let the model go."""
        self._server.shutdown()
        self._server.server_close()

    def _take(self, method: str, path: str, body: Any) -> tuple[int, str, bytes]:
        with self._lock:
            said = self.said(path, body) if method == "POST" else None
            if said is None:
                return self.beside(method, path, body)
            self.requests.append(Request(body, said, self.files(), path))
            kind, answer = self.answer(path, body, reply_to(self.script, said))
        return 200, kind, answer

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        take = self._take

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: Any) -> None:
                """Say nothing."""

            def do_GET(self) -> None:
                self._answer("GET")

            def do_POST(self) -> None:
                self._answer("POST")

            def _answer(self, method: str) -> None:
                text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                body = json.loads(text) if text.strip() else None
                code, kind, answer = take(method, self.path, body)
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

        return Handler


def sse(events: Sequence[Any], *, named: bool = False, end: str = "") -> bytes:
    """Return events as a server sends them; with their ``type`` as their names, if that is used."""
    lines = [
        (f"event: {each['type']}\n" if named else "") + f"data: {json.dumps(each)}\n\n"
        for each in events
    ]
    return ("".join(lines) + (f"data: {end}\n\n" if end else "")).encode()
