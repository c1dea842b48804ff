"""Which database a name means: a path is a file of SQLite's, a URL is PostgreSQL's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from holdfast.adapters.langgraph.importing.source import LoadValue, Source
from holdfast.adapters.langgraph.importing.sqlite_source import SqliteSource
from holdfast.adapters.langgraph.safe_reading import STRICT
from holdfast.errors import HoldfastError, StoreFormatError
from holdfast.stores.base import checked_path


def open_source(source: str | Path, load_value: LoadValue = STRICT.load) -> Source:
    """Open the database at a path, or that of a PostgreSQL URL."""
    if is_dsn(source):
        from holdfast.adapters.langgraph.importing.postgres_source import PostgresSource

        return PostgresSource(str(source), load_value)
    return SqliteSource(Path(checked_path(source)), load_value)


@contextmanager
def explaining(store: str | Path | None) -> Iterator[None]:
    """Say how a file of LangGraph's comes over, where it was taken for a store of Holdfast's."""
    try:
        yield
    except StoreFormatError as error:
        path = Path(unquote(urlsplit(str(store)).path)[1:] if "://" in str(store) else str(store))
        if not _is_of_langgraph(path):
            raise
        raise StoreFormatError(
            f"{path} is a file of LangGraph's own saver, which stays as it is: bring its threads "
            f"into a store with `holdfast import langgraph-sqlite {path} --store "
            "sqlite:///agent.db` (or move_in), and open that"
        ) from error


def _is_of_langgraph(path: Path) -> bool:
    try:
        SqliteSource(path, STRICT.load).close()
    except HoldfastError:
        return False
    return True


def is_dsn(source: object) -> bool:
    """Return whether a source is named by a PostgreSQL URL."""
    return isinstance(source, str) and source.startswith(("postgres://", "postgresql://"))
