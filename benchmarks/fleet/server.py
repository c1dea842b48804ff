"""What a server does meanwhile: the processors it takes, and what its connections wait for."""

from __future__ import annotations

import os
import threading
from collections import Counter
from pathlib import Path
from time import perf_counter

import psycopg

from tests.servers import PostgresServer

_EVERY = 0.02
_WAITS = """
    SELECT coalesce(wait_event_type, 'running'), coalesce(wait_event, '') FROM pg_stat_activity
    WHERE application_name = 'holdfast' AND state = 'active'
"""
_ON_DISK = {"WALWrite", "WALSync", "WalWrite", "WalSync", "WALInitWrite", "DataFileRead"}


class Watched:
    """Looks at a server, again and again, until it ends."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._over = threading.Event()
        self._seen: Counter[str] = Counter()
        self._thread = threading.Thread(target=self._look)
        self._cpu = 0.0
        self._since = 0.0

    def __enter__(self) -> Watched:
        self._cpu, self._since = computed_by(self._server), perf_counter()
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join()
        self._cpu = computed_by(self._server) - self._cpu
        self._since = perf_counter() - self._since

    @property
    def processors(self) -> float:
        """How many processors the server kept busy."""
        return self._cpu / self._since

    def _look(self) -> None:
        with psycopg.connect(self._server.url(), autocommit=True) as connection:
            while not self._over.wait(_EVERY):
                for kind, event in connection.execute(_WAITS).fetchall():
                    if event in _ON_DISK:
                        kind = "disk"
                    elif kind == "Lock":
                        kind = f"Lock {event}"
                    self._seen[kind] += 1

    @property
    def waits(self) -> str:
        """What they did, the most frequent first."""
        total = max(1, self._seen.total())
        shown = [f"{kind} {n / total:.0%}" for kind, n in self._seen.most_common(4) if n]
        return ", ".join(shown)


def computed_by(server: PostgresServer) -> float:
    """The seconds that all processes of a server have computed."""
    pid, spent = server.process.pid, 0
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for each in (str(pid), *children):
        try:
            text = Path(f"/proc/{each}/stat").read_text()
        except OSError:  # it ended meanwhile
            continue
        spent += sum(map(int, text[text.rindex(")") + 2 :].split()[11:13]))
    return spent / os.sysconf("SC_CLK_TCK")
