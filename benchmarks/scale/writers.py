"""Somebody who saves, again and again, and notes how long each save took."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from holdfast import SyncClient

PAUSE = 0.01
"""Seconds between two saves: who upkeeps a store is not the only one on the machine."""


class SavingThread:
    """A thread that saves in a session of its own until it is told to stop."""

    def __init__(self, client: SyncClient, session: str) -> None:
        self._client = client
        self._session = session
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"saver of {session}")
        self._failed: Exception | None = None
        self._begun = threading.Event()
        self.took: list[float] = []
        """Seconds, for each save."""

    def _work(self) -> None:
        try:
            step = 0
            while not self._over.is_set():
                step += 1
                state = {"step": step, "said": f"what was said in step {step} " * 20}
                began = time.perf_counter()
                self._client.save("saver", execution_state=state, session_id=self._session)
                self.took.append(time.perf_counter() - began)
                self._begun.set()
                self._over.wait(PAUSE)
        except Exception as error:
            self._failed = error
            self._begun.set()

    def __enter__(self) -> Self:
        self._thread.start()
        self._begun.wait()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
        if self._failed is not None and error is None:
            raise self._failed
