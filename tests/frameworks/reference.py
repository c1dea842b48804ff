"""The conversation that every framework has in tests: what is said, called and answered."""

import struct
import zlib
from typing import Any

SYSTEM = "You are a careful harbour clerk. Answer in German where asked: Größe, Fluß, ✓."
PROMPT = "Wie tief ist das Wasser im Hafen „Süd“? 水深は？"
SAID = "Ich sehe nach…"
"""What the assistant says beside its two calls."""
CALLS: list[dict[str, Any]] = [
    {"id": "call_depth", "name": "depth", "arguments": {"harbour": "Süd", "unit": "m"}},
    {"id": "call_tide", "name": "tide", "arguments": {"harbour": "Süd"}},
]
RESULTS = {"call_depth": "12.5 m — tief genug ✓", "call_tide": "steigend (潮)"}
ANSWER = "12,5 m, und das Wasser steigt. ✓"


def depth(harbour: str, unit: str = "m") -> str:
    """Tell how deep a harbour is."""
    return RESULTS["call_depth"]


def tide(harbour: str) -> str:
    """Tell whether the water rises."""
    return RESULTS["call_tide"]


def _chunk(kind: bytes, data: bytes) -> bytes:
    whole = kind + data
    return struct.pack(">I", len(data)) + whole + struct.pack(">I", zlib.crc32(whole))


PNG = (
    b"\x89PNG\r\n\x1a\n"
    + _chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 2, 0, 0, 0))
    + _chunk(b"IDAT", zlib.compress(b"\x00\xff\xfb\xfe\x00\x3f\xbe" * 2))
    + _chunk(b"IEND", b"")
)
"""Four pixels, whose base64 differs between the standard and the URL-safe alphabet."""
