"""What goes wrong with a Redis server, in Holdfast's own words."""

from __future__ import annotations

from holdfast.errors import (
    HoldfastError,
    StoreConnectionError,
    StoreError,
    StoreFormatError,
    StoreFullError,
    StoreReadOnlyError,
)

_SHOWN = 200


def redis_errors() -> tuple[type[Exception], ...]:
    """Return everything that a Redis client raises."""
    from redis.exceptions import RedisClusterException, RedisError

    return RedisError, RedisClusterException


def is_unknown_script(reply: object) -> bool:
    """Return whether a command was not run because the server has not seen its script."""
    from redis.exceptions import NoScriptError

    return isinstance(reply, NoScriptError)


def cut_connection(cause: Exception) -> Exception:
    """Return what a Redis client raises when a connection was cut."""
    from redis.exceptions import ConnectionError

    error = ConnectionError("the connection was cut")
    error.__cause__ = cause
    return error


def is_passing(error: Exception) -> bool:
    """Return whether the same may go well in a moment."""
    from redis import exceptions as redis

    if _is_about_password(error):
        return False
    passing = (
        redis.ConnectionError,
        redis.TimeoutError,
        redis.ClusterDownError,
        redis.MasterDownError,
        redis.TryAgainError,
        redis.AskError,  # and moved: the cluster changes while it is asked
        redis.RedisClusterException,
    )
    return isinstance(error, passing) or str(error).startswith(("BUSY ", "LOADING"))


def _is_about_password(error: BaseException | None) -> bool:
    """Return whether it is a refusal, or led to by one, as a cluster client tells it."""
    from redis.exceptions import AuthenticationError, AuthorizationError

    while error is not None:
        if isinstance(error, (AuthenticationError, AuthorizationError)):
            return True
        error = error.__cause__
    return False


def translated(error: Exception, name: str, timeout: float) -> HoldfastError:
    """Return the error of ours that says what happened and what to do; none shows a password."""
    from redis import exceptions as redis

    text = str(error)
    if _is_about_password(error):
        return StoreConnectionError(f"{name} refuses the user or password: check those of the URL")
    if isinstance(error, redis.NoPermissionError):
        return StoreConnectionError(
            f"{name} does not let this user do what is needed: allow it the keys prefix:* and "
            "{prefix}:*, and the commands of strings, hashes, sorted sets and scripts"
        )
    if isinstance(error, redis.TimeoutError):
        return StoreConnectionError(
            f"{name} did not answer within {timeout:g} s: check that it runs and can be reached"
        )
    if isinstance(error, redis.OutOfMemoryError) or "No space left" in text:
        return StoreFullError(
            f"{name} has no space left: raise its maxmemory, or remove checkpoints and run gc"
        )
    if isinstance(error, redis.ReadOnlyError):
        return StoreReadOnlyError(
            f"{name} is a read-only replica: give the address of its primary, or use "
            "redis+sentinel:// to have it found"
        )
    if text.startswith("MISCONF"):
        return StoreError(f"{name} cannot write to its disk: see the log of the server")
    if text.startswith("WRONGTYPE"):
        return StoreFormatError(f"{name} holds keys of another program: choose another prefix")
    if isinstance(error, redis.RedisClusterException) and "not enabled" in text:
        return StoreConnectionError(
            f"{name} is no cluster: use redis:// instead of redis+cluster://"
        )
    if is_passing(error):
        return StoreConnectionError(
            f"{name} cannot be reached ({_reason(text)}): check that it runs, and its address"
        )
    return StoreError(f"{name} failed: {_reason(text)}")


def _reason(text: str) -> str:
    """Return what the client says, without the data of the command that it may go on to show."""
    return text.splitlines()[0][:_SHOWN].rstrip(".") if text else "the connection was cut"
