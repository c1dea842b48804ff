"""Which store is meant where none is named: HOLDFAST_URL, else the nearest upwards: the one that a
directory is linked to, or its ``.holdfast/``.

The library and the command line ask here, so both mean the same store in the same directory.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from holdfast.errors import StoreConnectionError
from holdfast.stores import linked
from holdfast.stores.shared.secrets import masked
from holdfast.system import private_files

VARIABLE = "HOLDFAST_URL"
FOLDER = ".holdfast"
FILE = "holdfast.db"
DEFAULT_PATH = f"./{FOLDER}/{FILE}"


@dataclass(frozen=True)
class StoreLocation:
    """Where a store is, and how that was found out."""

    url: str
    source: str
    """``--store``, ``HOLDFAST_URL``, or the ``.holdfast/`` it was found in."""
    folder: Path | None = None
    """The directory that holds ``.holdfast/`` or is linked to the store, if it was found so."""
    is_linked: bool = False

    @property
    def path(self) -> Path | None:
        """Where it is on this disk; None for a server."""
        parts = urlsplit(self.url)
        if parts.scheme == "sqlite":
            return Path(unquote(parts.path[1:]))
        return Path(unquote(parts.netloc + parts.path)) if parts.scheme == "file" else None

    @property
    def shown(self) -> str:
        """Its URL without what is secret in it."""
        return masked(self.url)

    def make_folder(self) -> None:
        """Make its ``.holdfast/``, which git is told to ignore; nothing for any other store."""
        if self.folder is None or self.is_linked:
            return
        inside = self.folder / FOLDER
        _check_is_no_link(inside)
        private_files.make_directories(str(inside))
        private_files.keep_from_git(str(inside))


def find() -> StoreLocation | None:
    """Return where the store is that is meant here; None if there is none yet."""
    if os.environ.get(VARIABLE):
        return StoreLocation(os.environ[VARIABLE], VARIABLE)
    here = _here()
    has_links = linked.folder() is not None
    for folder in (here, *here.parents):
        if has_links and (link := linked.of(folder)) is not None:
            return _at_end_of(link, folder)
        if os.path.isdir(folder / FOLDER):
            _check_is_ours(folder / FOLDER)
            return in_folder(folder)
    return None


def _at_end_of(link: linked.Link, folder: Path) -> StoreLocation:
    found = StoreLocation(link.url, f"the link of {folder}", folder, is_linked=True)
    if found.path is not None and not found.path.exists():
        raise StoreConnectionError(
            f"{folder} belongs to the store {found.path}, which is not there: bring it back, or "
            f"make one of its own with `holdfast init` in {folder}"
        )
    return found


def find_or_make() -> StoreLocation:
    """Return where the store is that is meant here; a new one is made in this directory, aloud."""
    location = find() or in_folder(_here())
    if location.folder is not None and location.path is not None and not location.path.exists():
        _log("a new store is made, %s: there was none yet", location.path)
    return location


def warn_of_second(path: str | Path) -> None:
    """Say aloud that the default file is made where another store was meant until now."""
    if str(path) != DEFAULT_PATH or os.path.exists(path):
        return
    try:
        known = find()
    except StoreConnectionError:  # that of another user, which is not meant
        return
    if known is not None and known.folder not in (None, _here()):
        _log(
            "a second store is made, %s, below %s: from now on `holdfast` and open() take the new "
            "one here. For the one above, use open() in place of sqlite()",
            os.path.abspath(path),
            known.path,
            is_warning=True,
        )


def in_folder(folder: Path) -> StoreLocation:
    """Return where the store in the ``.holdfast/`` of a directory is."""
    return StoreLocation(url_of(folder / FOLDER / FILE), str(folder / FOLDER), folder)


def url_of(file: Path) -> str:
    """Return the URL of an SQLite file."""
    return f"sqlite:///{quote(os.path.abspath(file))}"


def as_url(given: str) -> str:
    """Return a URL as it is; the path of a store that is there as its URL."""
    path = Path(given)
    if "://" in given or not path.exists():
        return given
    if (path / FOLDER).is_dir():
        return in_folder(path).url
    if path.name == FOLDER and path.is_dir():
        return url_of(path / FILE)
    return f"file://{quote(os.path.abspath(path))}" if path.is_dir() else url_of(path)


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise StoreConnectionError(
            f"the current directory was removed: go to another, or name a store with {VARIABLE}"
        ) from None


def _check_is_no_link(folder: Path) -> None:
    """Refuse a link: it may have come with a repository, and lead wherever this user may write."""
    if os.path.islink(folder):
        raise StoreConnectionError(
            f"{folder} is a link, which may have come with the files around it. If you trust it, "
            f"name where it leads: {VARIABLE}={url_of(folder.resolve() / FILE)}; else remove it"
        )


def _check_is_ours(folder: Path) -> None:
    """Refuse the store of another user: whoever left it there would read all that is saved."""
    _check_is_no_link(folder)
    owner = os.lstat(folder).st_uid
    mine = os.geteuid()
    if owner == mine or (mine == 0 and str(owner) == os.environ.get("SUDO_UID")):
        return
    raise StoreConnectionError(
        f"{folder} is the nearest store, but belongs to another user ({owner}, and this process "
        f"is {mine}). If you trust it, name it: {VARIABLE}={url_of(folder / FILE)}; else make one "
        "of your own with `holdfast init`"
    )


def _log(message: str, *args: object, is_warning: bool = False) -> None:
    import logging

    level = logging.WARNING if is_warning else logging.INFO
    logging.getLogger("holdfast").log(level, message, *args)
