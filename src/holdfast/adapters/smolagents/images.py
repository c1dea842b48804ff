"""Images of Pillow, which smolagents hands around, as bytes that can be kept."""

from __future__ import annotations

import io
from typing import Any

from smolagents.agent_types import PIL  # Pillow, which smolagents brings along

from holdfast.errors import AdapterError, SerializationError


def as_png(image: PIL.Image.Image, path: str) -> bytes:
    """Return an image as a PNG."""
    written = io.BytesIO()
    try:
        image.save(written, format="PNG")
    except (OSError, ValueError) as error:
        problem = f"an image of mode {image.mode} cannot be kept as PNG; convert it first"
        raise SerializationError(path, problem) from error
    return written.getvalue()


def from_png(data: Any, path: str) -> PIL.Image.Image:
    """Return the image of a PNG."""
    try:
        image = PIL.Image.open(io.BytesIO(data), formats=["PNG"])
        image.load()
    except (OSError, TypeError, SyntaxError, ValueError, PIL.Image.DecompressionBombError) as error:
        raise AdapterError(f"{path}: the image is damaged: {error}") from error
    return image
