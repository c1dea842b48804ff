"""Large chunks in object storage, all else in another store.

URLs
    Any store's URL takes ``?blobs=…``, percent-encoded: ``s3://bucket/prefix``, ``gs://``,
    ``az://``, or ``file:///directory``. ``blobs_above=…`` is the size in bytes from which on a
    chunk goes there, ``blobs_endpoint=…`` the address of a server that speaks as S3 does,
    ``blobs_timeout=…`` how many seconds an answer may take.
    Credentials come from the environment, as ``AWS_ACCESS_KEY_ID``, never from the URL.

Layout
    The large chunks of a save are packed into one object, or into several of some 4 MB, named
    ``owner/packs/upload-count``: the owner is an id of the store within, so that several stores may
    share a bucket; an upload is an id that is used once. The store within keeps a stub of 45 bytes
    in the chunk's stead, which says where it is, and for each pack a note of what is in it.
    Holdfast 0.3 and older kept each chunk in an object of its own, ``owner/ab/chunk-upload``; these
    are read, and packed where a save has them once more. They know no packs, and leave them alone.

Safety
    Objects are uploaded first and then committed, so a record never leads to what is not there.
    Whoever commits a save or removes an object has to be the first to claim its upload, by a note
    in the store within. A save that relies on what is stored tells of itself before it reads the
    stubs, and claims itself with its commit; gc claims all such saves after the last stub of an
    object is gone, and then looks for stubs once more. So gc never takes what a save in flight
    needs, however long that lasts; a save that is cut short leaves objects that gc takes.
    Packs of which half is not needed, and many small ones, are made anew: uploaded, led to, no
    longer led to, removed. What is read is checked against the name of the chunk, as everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import parse_qsl, unquote_plus

from holdfast.errors import InvalidArgumentError
from holdfast.stores.async_base import AsyncStore
from holdfast.stores.base import Store
from holdfast.stores.capabilities import FindsNewest, OnDisk, files_of
from holdfast.stores.objects.connection import Bucket
from holdfast.stores.objects.requests import BucketStep, Within
from holdfast.stores.objects.writes import BlobWrites
from holdfast.stores.shared.planned import PlannedStore
from holdfast.stores.wrapper import WrappedStore
from holdfast.system.drive import drive, drive_async
from holdfast.system.threads import Threads

if TYPE_CHECKING:
    from obstore.store import ObjectStore

C = TypeVar("C")

DEFAULT_ABOVE = 8192
"""States are cut into pages of 16 KiB on average: most of their bytes are in chunks above this."""
DEFAULT_TIMEOUT = 30.0


class LargeBlobs(PlannedStore, WrappedStore):
    """Keeps chunks of more than ``above`` bytes in object storage, and all else in another store.

    >>> from holdfast import SyncClient
    >>> from holdfast.stores.memory import MemoryStore
    >>> from holdfast.stores.objects.store import LargeBlobs
    >>> with SyncClient(LargeBlobs(MemoryStore(), "memory://")) as client:
    ...     saved = client.save("painter", execution_state={"picture": bytes(100_000)})
    ...     len(client.restore(saved).execution_state["picture"])
    100000
    """

    hidden = (FindsNewest,)  # the store within knows stubs where the chunks should be

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
        super().__init__(inner)
        self._plans = BlobWrites(above)

    @property
    def files(self) -> tuple[str, ...]:
        return files_of(self.inner)

    @property
    def files_apart(self) -> tuple[str, ...]:
        within = self.inner.capability(OnDisk)
        return (*(() if within is None else within.files_apart), *self._bucket.directories)

    @property
    def name(self) -> str:
        return f"{self.inner.name} with blobs in {self._bucket.name}"

    def _carry_out(self, plan: Callable[..., Any], *args: Any) -> Any:
        return drive(plan(*args), self._answer)

    def _answer(self, step: Within | BucketStep) -> Any:
        return step.ask(self.inner) if isinstance(step, Within) else self._bucket.do(step)

    def async_store(self, threads: Threads) -> AsyncStore:
        return _AsyncLargeBlobs(self.inner.async_store(threads), self._plans, self._bucket)

    def close(self) -> None:
        self._bucket.close()
        self.inner.close()


class _AsyncLargeBlobs(PlannedStore):
    """The same, as event loops ask it."""

    def __init__(self, inner: AsyncStore, plans: BlobWrites, bucket: Bucket) -> None:
        self._inner = inner
        self._plans = plans
        self._bucket = bucket

    def _carry_out(self, plan: Callable[..., Any], *args: Any) -> Awaitable[Any]:
        return drive_async(plan(*args), self._answer)

    def _answer(self, step: Within | BucketStep) -> Awaitable[Any]:
        if isinstance(step, Within):
            return step.ask(cast(Store, self._inner))  # type: ignore[no-any-return]
        return self._bucket.ado(step)

    def capability(self, kind: type[C]) -> C | None:
        return None if kind in LargeBlobs.hidden else self._inner.capability(kind)

    def release(self) -> None:
        self._inner.release()

    async def close(self) -> None:
        self._bucket.close()
        await self._inner.close()


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
