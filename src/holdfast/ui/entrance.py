"""The links that let somebody in, each of them once."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from typing import Any

from holdfast.system.connections import can_tell_users, user_of


class Entrance:
    """Tokens, each of which lets in whoever shows it first.

    One that a browser is started with can be seen by every user of the machine, in the list of
    processes. It counts only over a connection that the user of this very process has made.
    """

    def __init__(self, token: str | None) -> None:
        self._tokens = [] if token is None else [(token.encode(), False)]

    def own_token(self) -> str:
        """Return one more token, for this user of this machine alone."""
        token = secrets.token_urlsafe(32)
        self._tokens.append((token.encode(), True))
        return token

    def admits(self, token: str, scope: Mapping[str, Any]) -> bool:
        """Return whether a token counts, which none does afterwards; called on the event loop."""
        given = token.encode("utf-8", "replace")
        for each in self._tokens:
            wanted, is_own = each
            if secrets.compare_digest(given, wanted) and (not is_own or _is_ours(scope)):
                self._tokens.remove(each)
                return True
        return False


def asking_user(scope: Mapping[str, Any]) -> int | None:
    """Return which user of this machine sends a request; None if it came from elsewhere."""
    return user_of(scope.get("client"), scope.get("server"))


def _is_ours(scope: Mapping[str, Any]) -> bool:
    """Return whether this user sends a request from this machine; True if nobody can say."""
    return not can_tell_users() or asking_user(scope) == os.getuid()
