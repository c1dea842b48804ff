"""The store in a PostgreSQL database."""

from holdfast.errors import MissingPackageError

try:
    import psycopg  # noqa: F401
except ImportError:
    raise MissingPackageError("the PostgreSQL store", "psycopg", "postgres") from None

from holdfast.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
