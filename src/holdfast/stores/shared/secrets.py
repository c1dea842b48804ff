"""URLs and DSNs as they may be shown: without what is secret in them.

What is not known to be harmless is hidden, so that an option nobody has thought of shows nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote, unquote, unquote_plus

HIDDEN = "***"
_HARMLESS = {
    *("durability", "fmt", "schema", "pool_size", "timeout", "prefix", "db", "protocol"),
    *("blobs_above", "blobs_timeout", "host", "hostaddr", "port", "dbname", "user", "sslmode"),
    *("connect_timeout", "application_name", "target_session_attrs", "client_encoding"),
}
_NESTED = {"blobs", "blobs_endpoint"}
"""Options that are URLs themselves."""
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?P<rest>.*)", re.DOTALL)
_PAIR = re.compile(r"(?P<name>\w+)(?P<is>\s*=\s*)(?P<value>'(?:[^'\\]|\\.)*'?|[^\s']*)")


def masked(url: str) -> str:
    """Return a URL, or a DSN as libpq has them, without passwords and the like.

    >>> from holdfast.stores.shared.secrets import masked
    >>> masked("postgresql://me:hunter2@db/agents?sslmode=require&password=hunter2")
    'postgresql://me:***@db/agents?sslmode=require&password=***'
    """
    found = _URL.fullmatch(url)
    if found is None:
        return _PAIR.sub(_pair, url)
    place, mark, options = found["rest"].partition("?")
    # To the last @: a password may hold one that should have been encoded.
    credentials, at, place = place.rpartition("@")
    user, colon, password = credentials.partition(":")
    shown = f"{user}{colon}{HIDDEN if password else ''}{at}{place}"
    return f"{found['scheme']}{shown}{mark}{'&'.join(map(_option, options.split('&')))}"


def _pair(found: re.Match[str]) -> str:
    is_shown = found["name"].lower() in _HARMLESS or not found["value"]
    return found[0] if is_shown else f"{found['name']}{found['is']}{HIDDEN}"


def _option(written: str) -> str:
    name, sign, value = written.partition("=")
    known = unquote_plus(name).lower()
    if known in _HARMLESS or not value:
        return written if known in _HARMLESS or sign or not written else HIDDEN
    if known in _NESTED:
        return f"{name}={quote(masked(unquote_plus(value)), safe=':/*@')}"
    return f"{name}={HIDDEN}"


def secrets_in(url: str) -> set[str]:
    """Return what ``masked`` hides, as it is written and as it is meant."""
    return {form for each in _secrets(url) for form in (each, unquote(each), unquote_plus(each))}


def _secrets(url: str) -> Iterator[str]:
    found = _URL.fullmatch(url)
    if found is None:
        for pair in _PAIR.finditer(url):
            if pair["name"].lower() not in _HARMLESS and pair["value"]:
                yield pair["value"]
                yield re.sub(r"\\(.)", r"\1", pair["value"].strip("'"))
        return
    place, _, options = found["rest"].partition("?")
    _, _, password = place.rpartition("@")[0].partition(":")
    if password:
        yield password
    for written in options.split("&"):
        name, _, value = written.partition("=")
        known = unquote_plus(name).lower()
        if known in _NESTED:
            yield from _secrets(unquote_plus(value))
        elif value and known not in _HARMLESS:
            yield value
