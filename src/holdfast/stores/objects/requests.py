"""What a plan of the store with large blobs apart may ask: of the store within, of the bucket."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from holdfast.stores.base import Commit, NotesOnly, Store
from holdfast.stores.objects.ranges import Range

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Within:
    """Ask the store within."""

    ask: Callable[[Store], Any]


@dataclass(frozen=True, slots=True)
class UploadObjects:
    """Put objects, each by its path and in parts; the answer is what is said of each."""

    objects: Sequence[tuple[str, Sequence[bytes]]]


@dataclass(frozen=True, slots=True)
class LookAtObjects:
    """Ask for the size of objects, and what is said of each; None for one that is not there."""

    paths: Sequence[str]


@dataclass(frozen=True, slots=True)
class DownloadRanges:
    """Get parts of objects; the answer is the data of each, None where the object is not whole."""

    ranges: Sequence[Range]


@dataclass(frozen=True, slots=True)
class RemoveObjects:
    """Delete objects, where they are still there."""

    paths: Sequence[str]


@dataclass(frozen=True, slots=True)
class ListObjects:
    """Begin to list the objects below a path; the answer is for ``NextPage``."""

    below: str


@dataclass(frozen=True, slots=True)
class NextPage:
    """Go on with a listing; the answer is a list, empty at its end."""

    listing: Any


@dataclass(frozen=True, slots=True)
class RemoveDrafts:
    """Remove what killed writers left below a path, where the bucket is a directory."""

    below: str


BucketStep = (
    UploadObjects
    | LookAtObjects
    | DownloadRanges
    | RemoveObjects
    | ListObjects
    | NextPage
    | RemoveDrafts
)
BlobPlan = Generator[Within | BucketStep, Any, T]
"""Yields what it wants done and is sent the answer, or thrown the error."""


def commit_within(commit: Commit | NotesOnly) -> Within:
    """Have the store within keep a commit."""
    return Within(lambda store: store.commit(commit))


def fetch_within(names: Collection[bytes]) -> Within:
    """Ask the store within for chunks, or the stubs in their stead."""
    return Within(lambda store: store.fetch(names))


def notes_within(scopes: Collection[str] | None, after: int, limit: int | None) -> Within:
    """Ask the store within for notes."""
    return Within(lambda store: store.notes(scopes, after, limit))
