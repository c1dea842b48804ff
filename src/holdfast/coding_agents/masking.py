"""Hides what is secret in what an agent said and was told, before it is kept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "***"

_ALONE = r"(?<![A-Za-z0-9_+/=-])"
"""Not within encrypted or encoded text, which must stay as it is to be of use."""
_TOKENS = (
    r"sk-[A-Za-z0-9_-]{20,}",
    r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}",
    r"gh[opsur]_[A-Za-z0-9]{30,}",
    r"github_pat_[A-Za-z0-9_]{22,}",
    r"glpat-[A-Za-z0-9_-]{20,}",
    r"xox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",
    r"AIza[A-Za-z0-9_-]{35}",
    r"npm_[A-Za-z0-9]{36}",
    r"pypi-[A-Za-z0-9_-]{50,}",
    r"hf_[A-Za-z0-9]{30,}",
    r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
)
_SECRETS = re.compile(
    rf"{_ALONE}(?:{'|'.join(_TOKENS)})"
    r"|(?<=PRIVATE KEY-----)[^-]{20,}(?=-----END)"
    r"|(?<=://)(?P<user>[^\s:/@]{0,100}):[^\s/@]{1,200}(?=@)"
    r"|(?P<bearer>\b[Bb]earer )[A-Za-z0-9._~+/-]{16,}=*"
    r"|(?P<name>\b[A-Z0-9_]{0,60}(?:SECRET|TOKEN|PASSWORD|API_KEY|ACCESS_KEY)[A-Z0-9_]{0,60}=[\"']?)"
    r"[^\s\"'$`\\;&|]{8,}"
)

_SIGNS = (
    *("sk-", "sk_", "rk_", "gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "xox"),
    *("AKIA", "ASIA", "AIza", "npm_", "pypi-", "hf_", "eyJ", "PRIVATE KEY", "://", "earer "),
    *("SECRET", "TOKEN", "PASSWORD", "_KEY"),
)
"""What every secret has one of: most texts have none, and that is found ten times sooner."""


def masked(value: Any) -> Any:
    """Return JSON data with ``***`` for what is secret in its strings.

    >>> from holdfast.coding_agents.masking import masked
    >>> masked({"command": "curl -H 'Authorization: Bearer 0123456789abcdef01'"})
    {'command': "curl -H 'Authorization: Bearer ***'"}
    """
    if isinstance(value, str):
        return masked_text(value)
    if isinstance(value, Mapping):
        return {key: masked(each) for key, each in value.items()}
    if isinstance(value, list):
        return [masked(each) for each in value]
    return value


def masked_text(text: str) -> str:
    """Return a text with ``***`` for what is secret in it."""
    return _SECRETS.sub(_hidden, text) if may_hold_secrets(text) else text


def may_hold_secrets(text: str) -> bool:
    """Return whether a text may have anything to hide; one that may not has nothing."""
    return any(sign in text for sign in _SIGNS)


def _hidden(found: re.Match[str]) -> str:
    if found["user"] is not None:
        return f"{found['user']}:{HIDDEN}"
    return f"{found['bearer'] or found['name'] or ''}{HIDDEN}"
