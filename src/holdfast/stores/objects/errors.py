"""What goes wrong with object storage, in Holdfast's own words.

What the library says may hold signed addresses, so nothing of it is shown but codes and reasons.
"""

from __future__ import annotations

import errno
import re

from holdfast.errors import (
    HoldfastError,
    StoreConnectionError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
)

_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound", "bucket does not exist")
_NO_CREDENTIALS = ("169.254.169.254", "metadata.google.internal", "CredentialsNotLoaded")
_BAD_CREDENTIALS = (
    *("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"),
    *("AuthenticationFailed", "TokenRefreshRequired", "InvalidClientTokenId"),
)
_OTHER_REGION = (
    *("PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"),
    *("redirect without LOCATION", "301 Moved"),
)
_FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NOT_ALLOWED = (errno.EROFS, errno.EACCES, errno.EPERM)
_READ_ONLY_DISK = ("os error 30)", "os error 13)", "os error 1)")
_FULL = ("os error 28)", "os error 122)", "QuotaExceeded", "StorageFull", "507 Insufficient")
_PAST_THE_END = (
    *("InvalidRange", "Invalid range", "Requested range was invalid"),
    *("status code: 416", "416 R"),
)
_REASONS = {
    "Connection refused": "the connection was refused",
    "ConnectionRefused": "the connection was refused",
    "dns error": "no such host",
    "certificate": "its certificate is not trusted",
    "Connection reset": "the connection was cut",
    "ConnectionReset": "the connection was cut",
    "IncompleteMessage": "the connection was cut",
}
_CODE = re.compile(r"<Code>(\w+)</Code>")
_STATUS = re.compile(r"status code: (\d{3})|status: (\d{3})")


def is_about_bucket(text: str) -> bool:
    """Return whether it is not an object that is missing, but the place of them all."""
    return _holds(text, _NO_BUCKET)


def is_past_the_end(text: str) -> bool:
    """Return whether a part was asked for that begins behind the end of its object."""
    return _holds(text, _PAST_THE_END)


def explained(error: Exception, name: str, timeout: float, writing: bool) -> HoldfastError:
    """Return the error of ours that says what happened and what to do."""
    text = str(error)
    code = _CODE.search(text)
    said = code[1] if code else ""
    number = error.errno if isinstance(error, OSError) else None
    if number in _FULL_DISK or _holds(text, _FULL):
        return StoreFullError(f"{name} has no space left: make room, or remove checkpoints")
    if number in _NOT_ALLOWED or _holds(text, _READ_ONLY_DISK):
        return StoreReadOnlyError(f"{name} may not be written to: check its permissions")
    if is_about_bucket(text) or (isinstance(error, FileNotFoundError) and writing):
        return StoreConnectionError(f"{name} is not there: create the bucket, or check the URL")
    if _holds(text, _NO_CREDENTIALS):
        return StoreConnectionError(
            f"{name} needs credentials and none were found: set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or what your provider has in their stead"
        )
    if _holds(text, _OTHER_REGION):
        return StoreConnectionError(f"{name} is in another region: set AWS_REGION to it")
    if _holds(text, _BAD_CREDENTIALS) or _is(error, "UnauthenticatedError"):
        return StoreConnectionError(
            f"{name} refuses the credentials{f' ({said})' if said else ''}: check "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or what your provider has in their stead"
        )
    status = _status(text)
    if _is(error, "PermissionDeniedError") or status == 403:
        return _forbidden(name, writing)
    return _unreachable(text, name, timeout, status, said)


def _forbidden(name: str, writing: bool) -> HoldfastError:
    if writing:
        return StoreReadOnlyError(
            f"{name} may not be written to with these credentials: let them put and delete "
            "objects (s3:PutObject, s3:DeleteObject)"
        )
    return StoreConnectionError(
        f"{name} may not be read with these credentials: let them get and list objects "
        "(s3:GetObject, s3:ListBucket)"
    )


def _unreachable(
    text: str, name: str, timeout: float, status: int | None, said: str
) -> HoldfastError:
    if "builder error" in text and "http://" in text:
        return StoreConnectionError(
            f"{name} has an address without TLS: set AWS_ALLOW_HTTP=true if that is meant"
        )
    if "TimedOut" in text or "timed out" in text:
        return StoreConnectionError(
            f"{name} did not answer within {timeout:g} s: check that it runs and can be reached"
        )
    if status is not None and (status >= 500 or status == 429):
        return StoreConnectionError(f"{name} answers {status} {said}".rstrip() + ": try later")
    for sign, reason in _REASONS.items():
        if sign in text:
            return StoreConnectionError(
                f"{name} cannot be reached ({reason}): check that it runs, and its address"
            )
    if status is None and "HTTP error" in text:
        return StoreConnectionError(
            f"{name} cannot be reached: check that it runs, and its address"
        )
    what = f"it answers {status} {said}".rstrip() if status is not None else _plain(text)
    return StoreError(f"{name} failed: {what}")


def _plain(text: str) -> str:
    """Return the first line, without the addresses that are in it."""
    return re.sub(r"\w+://\S+", "…", text.strip().split("\n", 1)[0])


def _status(text: str) -> int | None:
    found = _STATUS.search(text)
    return int(found[1] or found[2]) if found else None


def _is(error: Exception, name: str) -> bool:
    from obstore import exceptions

    return isinstance(error, getattr(exceptions, name))


def _holds(text: str, signs: tuple[str, ...]) -> bool:
    return any(sign in text for sign in signs)
