"""Hides what is secret in what an agent said and was told, before it is kept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "***"

# Not within encrypted or encoded text, which must stay as it is to be of use.
_TOKENS = (
    r"(?<![A-Za-z0-9_-])(?:sk-[A-Za-z0-9_-]{20,}"
    r"|(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}"
    r"|gh[opsur]_[A-Za-z0-9]{30,}"
    r"|github_pat_[A-Za-z0-9_]{22,}"
    r"|glpat-[A-Za-z0-9_-]{20,}"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,}"
    r"|AIza[A-Za-z0-9_-]{35}"
    r"|npm_[A-Za-z0-9]{36}"
    r"|pypi-[A-Za-z0-9_-]{50,}"
    r"|hf_[A-Za-z0-9]{30,}"
    r"|dop_v1_[a-f0-9]{32,}"
    r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"
    r"|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})",
    r"(?<![A-Za-z0-9+/_-])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9+/])",
    r"(?<=PRIVATE KEY-----)[^-]{20,}(?=-----END)",
)
_BEHIND_ITS_NAME = (
    # Of a URL, a header, a command's option, and a variable.
    r"(?<=://)[^\s:/@]{0,100}:",
    r"\b[Aa]uthorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:[A-Za-z]{2,12}\s)?",
    r"\b[Bb]earer\s",
    r"\b[Xx]-[Aa][Pp][Ii]-[Kk][Ee][Yy][\"']?\s{0,3}:\s{0,3}[\"']?",
    r"\s(?:-u|--user)[ =][\"']?[^\s:\"']{1,100}:",
    r"(?:SECRET|TOKEN|PASSWORD|API_KEY|ACCESS_KEY)[A-Z0-9_]{0,60}=[\"']?",
    r"(?:secret|token|password|api_?key|access_?key)[\"']?\s{0,3}[=:]\s{0,3}[\"']?"
    # In lower case it may be code: only what looks like chance is hidden.
    r"(?=[A-Za-z0-9/+_.-]{0,100}[0-9])(?=[A-Za-z0-9/+_.-]{16})",
)
_ENDS = (
    r"[^\s/@]{1,200}(?=@)",
    r"[A-Za-z0-9._~+/=-]{8,}",
    r"[A-Za-z0-9._~+/-]{16,}=*",
    r"[^\s\"']{8,}",
    r"[^\s\"']{3,}",
    r"[^\s\"'$`\\;&|]{8,}",
    r"[A-Za-z0-9/+_.=-]{16,}",
)
_SECRETS = re.compile(
    "|".join(
        [
            *_TOKENS,
            *(
                f"(?P<name{n}>{name}){end}"
                for n, (name, end) in enumerate(zip(_BEHIND_ITS_NAME, _ENDS, strict=True))
            ),
        ]
    )
)

_SIGNS = (
    *("sk-", "sk_", "rk_", "gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "xox"),
    *("AKIA", "ASIA", "AIza", "npm_", "pypi-", "hf_", "dop_", "SG.", "eyJ", "PRIVATE KEY", "://"),
    *("earer", "uthorization", "-u", "--user", "SECRET", "TOKEN", "PASSWORD", "_KEY", "-KEY"),
    *("secret", "token", "password", "key", "-Key"),
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
    name = next((each for each in found.groups() if each is not None), "")
    return f"{name}{HIDDEN}"
