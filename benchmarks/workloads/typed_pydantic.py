"""Apart from its siblings, because pydantic may be missing."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class PydanticMessage(BaseModel):
    role: str
    content: str
    id: str
    metadata: dict[str, Any]
