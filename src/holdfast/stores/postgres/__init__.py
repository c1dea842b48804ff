"""The store in a PostgreSQL database."""

from holdfast.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
