"""Pages that agents read, one in every step: text that compresses as prose does."""

from __future__ import annotations

import random

_WORDS = [f"{first}{rest}" for first in "bdfklmprst" for rest in ("ale", "iron", "ump", "otes")]


def page(number: int) -> str:
    """Return a page of 90 words."""
    words = random.Random(number).choices(_WORDS, k=90)
    return f"page {number}: {' '.join(words)}"
