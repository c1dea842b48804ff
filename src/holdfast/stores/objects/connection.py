"""The way to object storage: carries out steps, for threads and for event loops."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from holdfast.errors import (
    InvalidArgumentError,
    MissingPackageError,
    StoreClosedError,
    StoreConnectionError,
)
from holdfast.stores.objects import directory
from holdfast.stores.objects.errors import explained, is_about_bucket, is_past_the_end
from holdfast.stores.objects.ranges import Range
from holdfast.stores.objects.requests import (
    BucketStep,
    DownloadRanges,
    ListObjects,
    LookAtObjects,
    NextPage,
    RemoveDrafts,
    RemoveObjects,
    UploadObjects,
)
from holdfast.system import private_files
from holdfast.system.forks import Locked

if TYPE_CHECKING:
    from obstore import GetOptions
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

_SCHEMES = {
    **dict.fromkeys(("s3", "s3a"), "S3"),
    "gs": "Google Cloud Storage",
    **dict.fromkeys(("az", "azure", "adl", "abfs", "abfss"), "Azure"),
    "file": "a directory",
    "memory": "memory",
}
_FORMS = "s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or file:///directory"
_AT_ONCE = 16
_PAGE = 500
_RETRIES = 5

_in_forked_child = False
_was_used = False


def _after_fork() -> None:
    global _in_forked_child
    _in_forked_child = _was_used


os.register_at_fork(after_in_child=_after_fork)


class Bucket(Locked):
    """A place in object storage, by its URL or as obstore knows it."""

    def __init__(
        self,
        place: str | ObjectStore,
        *,
        endpoint: str | None = None,
        timeout: float = 30.0,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        package()
        self.timeout = _checked_timeout(timeout)
        if isinstance(place, str):
            self.name = f"the object storage {_shown(place)}"
            self._store = _opened(self.name, place, endpoint, self.timeout, dict(options or {}))
        else:
            self.name = f"the object storage {_checked_store(place)!r}"
            self._store = place
            if endpoint is not None or options:
                raise InvalidArgumentError("an endpoint and options go with a URL: give one")
        prefix = _directory_of(self._store)
        self.directories: tuple[str, ...] = () if prefix is None else (prefix,)
        """The directory on this disk that it is, if it is one."""
        self._threads: ThreadPoolExecutor | None = None
        self._closed = False

    def do(self, step: BucketStep) -> Any:
        """Carry out a step in this thread; what it consists of goes on side by side."""
        import obstore as obs

        self._check()
        try:
            if isinstance(step, ListObjects):
                return obs.list(self._store, step.below, chunk_size=_PAGE)
            if isinstance(step, NextPage):
                return _entries(next(step.listing, ()))
            if isinstance(step, UploadObjects):
                return self._all(partial(_put, self._store), step.objects)
            if isinstance(step, RemoveDrafts):
                return self._tidy(step)
            if isinstance(step, DownloadRanges):
                return self._all(partial(_get, self._store), step.ranges)
            if isinstance(step, LookAtObjects):
                return self._all(partial(_head, self._store), step.paths)
            return self._all(partial(_delete, self._store), _deletions(self._store, step.paths))
        except errors() as error:
            raise explained(error, self.name, self.timeout, _writes(step)) from None

    async def ado(self, step: BucketStep) -> Any:
        """Carry out a step on the running loop."""
        import obstore as obs

        self._check()
        try:
            if isinstance(step, ListObjects):
                return obs.list(self._store, step.below, chunk_size=_PAGE)
            if isinstance(step, NextPage):
                return _entries(await _anext(step.listing))
            if isinstance(step, UploadObjects):
                return await _all_async(partial(_aput, self._store), step.objects)
            if isinstance(step, RemoveDrafts):
                return await asyncio.to_thread(self._tidy, step)
            if isinstance(step, DownloadRanges):
                return await _all_async(partial(_aget, self._store), step.ranges)
            if isinstance(step, LookAtObjects):
                return await _all_async(partial(_ahead, self._store), step.paths)
            deletions = _deletions(self._store, step.paths)
            return await _all_async(partial(_adelete, self._store), deletions)
        except errors() as error:
            raise explained(error, self.name, self.timeout, _writes(step)) from None

    def _tidy(self, step: RemoveDrafts) -> None:
        for root in self.directories:
            directory.tidy(root, step.below)

    def _check(self) -> None:
        global _was_used
        if self._closed:
            raise StoreClosedError(self.name)
        if _in_forked_child:
            raise StoreConnectionError(
                f"{self.name} was used before this process was forked, and its threads are not "
                "copied by a fork: start processes with the method spawn or forkserver"
            )
        _was_used = True

    def _all(self, work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """Return what the work makes of each; the first error ends it, once nothing goes on."""
        if len(items) == 1:
            return [work(items[0])]
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="holdfast-objects")
            futures = [self._threads.submit(work, item) for item in items]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            begun = [future for future in futures if not future.cancel()]
        wait(begun)
        # One that was cancelled comes after the one that failed, as they are begun in order.
        return [future.result() for future in futures]

    def close(self) -> None:
        """Let go of everything; a second call does nothing."""
        with self._lock:
            self._closed = True
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown()


async def _all_async(work: Callable[[Any], Awaitable[Any]], items: Sequence[Any]) -> list[Any]:
    """Return what the work makes of each; the first error ends it, once nothing goes on."""
    gate = asyncio.Semaphore(_AT_ONCE)
    failures: list[Exception] = []

    async def one(item: Any) -> Any:
        async with gate:
            if failures:
                return None
            try:
                return await work(item)
            except Exception as error:
                failures.append(error)

    tasks = [asyncio.ensure_future(one(item)) for item in items]
    try:
        results = await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if failures:
        raise failures[0]
    return results


def _put(store: ObjectStore, item: tuple[str, Sequence[bytes]]) -> str | None:
    import obstore as obs

    path, parts = item
    root = _directory_of(store)
    if root is not None:
        # Its library makes files for all, and leaves its drafts.
        return directory.put(root, path, parts)
    # In one request: a part of an upload that was cut short would stay, unseen.
    return obs.put(store, path, b"".join(parts), use_multipart=False)["e_tag"]


async def _aput(store: ObjectStore, item: tuple[str, Sequence[bytes]]) -> str | None:
    import obstore as obs

    if _directory_of(store) is not None:
        return await asyncio.to_thread(_put, store, item)
    path, parts = item
    return (await obs.put_async(store, path, b"".join(parts), use_multipart=False))["e_tag"]


def _directory_of(store: ObjectStore) -> str | None:
    """Return the directory that a store of objects is, if it is one."""
    from obstore.store import LocalStore

    if not isinstance(store, LocalStore) or store.prefix is None:
        return None
    return os.path.abspath(store.prefix)


def _get(store: ObjectStore, part: Range) -> bytes | None:
    import obstore as obs

    try:
        got = obs.get(store, part.object.path, options=_options(part))
        is_whole = got.meta["size"] == part.object.size
        return got.bytes().to_bytes() if is_whole else None
    except errors() as error:
        _check_is_lost(error)
        return None


async def _aget(store: ObjectStore, part: Range) -> bytes | None:
    import obstore as obs

    try:
        got = await obs.get_async(store, part.object.path, options=_options(part))
        is_whole = got.meta["size"] == part.object.size
        return (await got.bytes_async()).to_bytes() if is_whole else None
    except errors() as error:
        _check_is_lost(error)
        return None


def _options(part: Range) -> GetOptions | None:
    return None if part.is_whole else {"range": (part.start, part.end)}


def _head(store: ObjectStore, path: str) -> tuple[int, str | None] | None:
    import obstore as obs

    root = _directory_of(store)
    if root is not None:
        return directory.head(root, path)
    try:
        found = obs.head(store, path)
    except FileNotFoundError as error:
        _check_is_lost(error)
        return None
    return found["size"], found["e_tag"]


async def _ahead(store: ObjectStore, path: str) -> tuple[int, str | None] | None:
    import obstore as obs

    if _directory_of(store) is not None:
        return await asyncio.to_thread(_head, store, path)
    try:
        found = await obs.head_async(store, path)
    except FileNotFoundError as error:
        _check_is_lost(error)
        return None
    return found["size"], found["e_tag"]


def _check_is_lost(error: Exception) -> None:
    """Raise it again if it is not the object that is missing, or cut short, but all of them."""
    is_lost = isinstance(error, FileNotFoundError) or is_past_the_end(str(error))
    if not is_lost or is_about_bucket(str(error)):
        raise error


def _delete(store: ObjectStore, paths: Sequence[str]) -> None:
    import obstore as obs

    try:
        obs.delete(store, paths)
    except FileNotFoundError as error:
        _check_is_lost(error)


async def _adelete(store: ObjectStore, paths: Sequence[str]) -> None:
    import obstore as obs

    try:
        await obs.delete_async(store, paths)
    except FileNotFoundError as error:
        _check_is_lost(error)


def _deletions(store: ObjectStore, paths: Sequence[str]) -> list[Sequence[str]]:
    """Return what to delete by one call each: all at once only where a missing one is no error."""
    from obstore.store import S3Store

    return [paths] if isinstance(store, S3Store) else [[path] for path in paths]


async def _anext(listing: Any) -> Sequence[Any]:
    try:
        return await anext(listing)
    except StopAsyncIteration:
        return ()


def _entries(page: Sequence[Any]) -> list[tuple[str, int, datetime]]:
    return [(entry["path"], entry["size"], entry["last_modified"]) for entry in page]


def _writes(step: object) -> bool:
    return isinstance(step, (UploadObjects, RemoveObjects))


def errors() -> tuple[type[Exception], ...]:
    """Return everything that obstore raises."""
    from obstore.exceptions import BaseError

    return BaseError, OSError


def package() -> None:
    """See that obstore is installed, or say how to get it."""
    try:
        import obstore  # noqa: F401
    except ImportError:
        raise MissingPackageError("object storage", "obstore", "s3") from None


def _checked_timeout(seconds: object) -> float:
    if isinstance(seconds, (int, float)) and 0 < seconds <= 86400:
        return seconds
    raise InvalidArgumentError(f"timeout is a number of seconds, not {seconds!r}")


def _checked_store(store: object) -> object:
    from obstore.store import ObjectStoreMethods

    if isinstance(store, ObjectStoreMethods):
        return store
    raise InvalidArgumentError(
        f"blobs are kept at a URL such as {_FORMS}, or in a store of obstore, "
        f"not in {type(store).__name__}"
    )


def _shown(url: str) -> str:
    """Return the URL, which has no secrets; what is wrong with one is said without showing it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in _SCHEMES:
        raise InvalidArgumentError(f"blobs are kept at a URL such as {_FORMS}")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise InvalidArgumentError(
            "the URL of blobs has no credentials and no options: set those in the environment, "
            "as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    if parts.scheme != "memory" and not (parts.netloc + parts.path).strip("/"):
        raise InvalidArgumentError(f"the URL of blobs names no place: write {_FORMS}")
    return url


def _opened(
    name: str, url: str, endpoint: str | None, timeout: float, options: dict[str, Any]
) -> ObjectStore:
    from obstore.exceptions import BaseError
    from obstore.store import LocalStore, MemoryStore, from_url

    kind = _SCHEMES[urlsplit(url).scheme]
    if endpoint is not None:
        if kind != "S3" or urlsplit(endpoint).scheme not in ("http", "https"):
            raise InvalidArgumentError("an endpoint is the http(s):// address of an S3 server")
        options["endpoint"] = endpoint
    try:
        if kind == "memory":
            return MemoryStore()
        if kind == "a directory":
            private_files.make_directories(unquote(urlsplit(url).path))
            return LocalStore.from_url(url, mkdir=True)
        client, retry = _patience(timeout)
        if endpoint is not None and endpoint.startswith("http://"):
            client["allow_http"] = True
        return from_url(url, config=options or None, client_options=client, retry_config=retry)  # type: ignore[arg-type]
    except (BaseError, OSError) as error:
        raise explained(error, name, timeout, writing=False) from None


def _patience(timeout: float) -> tuple[ClientConfig, RetryConfig]:
    """Return how long to wait for answers, and how often to ask: about twice the time in all."""
    return (
        {
            "timeout": timedelta(seconds=timeout),
            "connect_timeout": timedelta(seconds=min(timeout, 5)),
        },
        {
            "max_retries": _RETRIES,
            "retry_timeout": timedelta(seconds=timeout),
            "backoff": {
                "init_backoff": timedelta(milliseconds=50),
                "max_backoff": timedelta(seconds=1),
                "base": 2,
            },
        },
    )
