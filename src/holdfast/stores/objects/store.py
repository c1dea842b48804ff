"""Large chunks in object storage, all else in another store.

URLs
    Any store's URL takes ``?blobs=…``, percent-encoded: ``s3://bucket/prefix``, ``gs://``,
    ``az://``, or ``file:///directory``. ``blobs_above=…`` is the size in bytes from which on a
    chunk goes there, ``blobs_endpoint=…`` the address of a server that speaks as S3 does,
    ``blobs_timeout=…`` how many seconds an answer may take.
    Credentials come from the environment, as ``AWS_ACCESS_KEY_ID``, never from the URL.

Layout
    An object is named ``owner/ab/chunk-upload``: the owner is an id of the store within, so that
    several stores may share a bucket; an upload is an id of its own for each save. The store
    within keeps a stub of 25 bytes in the chunk's stead, which says where it is.

Safety
    Objects are uploaded first and then committed, so a record never leads to what is not there.
    A path is used once, and whoever commits a save or removes an object has to be the first to
    claim its upload, by a note in the store within. So gc never takes what a save in flight
    needs, however long that lasts; a save that is cut short leaves objects that gc takes.
    What is read is checked against the name of the chunk, as everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, unquote_plus

from holdfast.errors import InvalidArgumentError
from holdfast.model import CheckpointInfo
from holdfast.stores.base import (
    Collected,
    Commit,
    Note,
    NotesOnly,
    Query,
    Record,
    SessionInfo,
    Stats,
    Store,
)
from holdfast.stores.objects.connection import Bucket
from holdfast.stores.objects.steps import Inner, Methods, Step, Steps

if TYPE_CHECKING:
    from obstore.store import ObjectStore

T = TypeVar("T")

DEFAULT_ABOVE = 8192
"""States are cut into pages of 16 KiB on average: most of their bytes are in chunks above this."""
DEFAULT_TIMEOUT = 30.0
_OWN = {"commit", "load", "fetch", "notes", "collect", "stats"}


class LargeBlobs(Store):
    """Keeps chunks of more than ``above`` bytes in object storage, and all else in another store.

    >>> from holdfast import SyncClient
    >>> from holdfast.stores.memory import MemoryStore
    >>> from holdfast.stores.objects.store import LargeBlobs
    >>> with SyncClient(LargeBlobs(MemoryStore(), "memory://")) as client:
    ...     saved = client.save("painter", execution_state={"picture": bytes(100_000)})
    ...     len(client.restore(saved).execution_state["picture"])
    100000
    """

    groups_commits = False  # what waits in the queue of the store within has uploaded nothing
    blocks = True  # wherever the store within lives, object storage is waited for
    finds_newest = False  # the store within knows stubs where the chunks should be

    def __init__(
        self,
        inner: Store,
        blobs: str | ObjectStore,
        *,
        above: int = DEFAULT_ABOVE,
        endpoint: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(inner, Store) or not inner.shares_chunks:
            raise InvalidArgumentError(
                "blobs go with a store that keeps chunks: memory, sqlite, redis or postgres"
            )
        if isinstance(above, bool) or not isinstance(above, int) or above < 0:
            raise InvalidArgumentError(f"blobs are kept apart above a size in bytes, not {above!r}")
        self._bucket = Bucket(blobs, endpoint=endpoint, timeout=timeout, options=options)
        self._inner = inner
        self._methods = Methods(above)
        self.shares_chunks = inner.shares_chunks
        self.allow_pickle = inner.allow_pickle
        self.waits = inner.waits
        self.lists_lost = inner.lists_lost
        self.concerns = inner.concerns
        self.speaks_async = inner.speaks_async or not inner.blocks
        self.files = inner.files
        self.files_apart = (*inner.files_apart, *self._bucket.directories)

    @property
    def name(self) -> str:
        return f"{self._inner.name} with blobs in {self._bucket.name}"

    def _run(self, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                try:
                    answer = self._do(step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            steps.close()

    def _do(self, step: Step) -> Any:
        if isinstance(step, Inner):
            return getattr(self._inner, step.method)(*step.args)
        return self._bucket.do(step)

    async def _arun(self, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                try:
                    answer = await self._ado(step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            steps.close()

    async def _ado(self, step: Step) -> Any:
        if not isinstance(step, Inner):
            return await self._bucket.ado(step)
        if self._inner.speaks_async:
            return await self._inner.answer(step.method, step.args)
        return getattr(self._inner, step.method)(*step.args)

    async def answer(self, method: str, args: tuple[Any, ...]) -> Any:
        if method in _OWN:
            return await self._arun(getattr(self._methods, method)(*args))
        return await self._ado(Inner(method, args))

    def commit(self, commit: Commit | NotesOnly) -> None:
        self._run(self._methods.commit(commit))

    def load(self, checkpoint_id: str, verify: bool = True) -> Record | None:
        return self._run(self._methods.load(checkpoint_id, verify))

    def fetch(self, names: Collection[bytes]) -> dict[bytes, bytes]:
        return self._run(self._methods.fetch(names))

    def notes(
        self, scopes: Collection[str] | None, after: int = 0, limit: int | None = None
    ) -> list[Note]:
        return self._run(self._methods.notes(scopes, after, limit))

    def match(self, prefix: str, limit: int, after: str = "") -> list[str]:
        return self._inner.match(prefix, limit, after)

    def query(self, query: Query) -> list[CheckpointInfo]:
        return self._inner.query(query)

    def heads(self, agent_id: str | None = None) -> list[SessionInfo]:
        return self._inner.heads(agent_id)

    def delete(self, checkpoint_ids: Collection[str]) -> int:
        return self._inner.delete(checkpoint_ids)

    def sweep(self, now: datetime) -> int:
        return self._inner.sweep(now)

    def collect(self, live: Collection[bytes], before: datetime, dry_run: bool) -> Collected:
        return self._run(self._methods.collect(live, before, dry_run))

    def stats(self) -> Stats:
        return self._run(self._methods.stats())

    def tick(self) -> Any:
        return self._inner.tick()

    def removals(self) -> Any:
        return self._inner.removals()

    def lost(self) -> list[tuple[str, str]]:
        return self._inner.lost()

    def wait(self, scope: str, after: int, timeout: float) -> None:
        self._inner.wait(scope, after, timeout)

    def newest(self, agent_id: str, session_id: str) -> Record | None:
        found = self.query(Query(agent_id=agent_id, session_id=session_id, limit=1))
        return self.load(found[0].checkpoint_id) if found else None

    def close(self) -> None:
        self._bucket.close()
        self._inner.close()

    async def aclose(self) -> None:
        self._bucket.close()
        await self._inner.aclose()


def open_with_blobs(url: str, open_inner: Callable[[str], Store]) -> Store:
    """Open the store of a URL that has options for blobs; the rest of it says which store."""
    base, _, query = url.partition("?")
    fields = [(field, unquote_plus(field.partition("=")[0])) for field in query.split("&")]
    rest = "&".join(field for field, name in fields if not name.startswith("blobs"))
    options = dict(parse_qsl(query, keep_blank_values=True))
    own = {name: value for name, value in options.items() if name.startswith("blobs")}
    above = own.pop("blobs_above", str(DEFAULT_ABOVE))
    seconds = own.pop("blobs_timeout", str(DEFAULT_TIMEOUT))
    blobs, endpoint = own.pop("blobs", ""), own.pop("blobs_endpoint", None)
    if own:
        raise InvalidArgumentError(f"no such option for blobs: {', '.join(sorted(own))}")
    if not above.isdecimal() or not re.fullmatch(r"\d+(\.\d+)?", seconds):
        raise InvalidArgumentError("blobs_above is a number of bytes, blobs_timeout of seconds")
    inner = open_inner(f"{base}?{rest}" if rest else base)
    try:
        return LargeBlobs(inner, blobs, above=int(above), endpoint=endpoint, timeout=float(seconds))
    except BaseException:
        inner.close()
        raise
