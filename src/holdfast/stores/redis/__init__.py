"""The store on a Redis or Valkey server."""

from holdfast.stores.redis.store import RedisStore

__all__ = ["RedisStore"]
