"""How the whole name of a session may begin: its own, or its agent's, a slash and its own."""

from __future__ import annotations

from collections.abc import Iterator


def divided(prefix: str) -> Iterator[tuple[str, str]]:
    """Give each agent that may be meant whole, and how the name of its session begins.

    >>> from holdfast.stores.shared.whole_names import divided
    >>> list(divided("team/coder/fix"))
    [('team', 'coder/fix'), ('team/coder', 'fix')]
    """
    for at, letter in enumerate(prefix):
        if letter == "/" and at:
            yield prefix[:at], prefix[at + 1 :]
