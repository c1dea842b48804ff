"""The readable form of values: JSON in which all that JSON has no word for says what it is.

Plain values stay themselves. Anything else is ``{"$type": <kind>, "value": <plain data>}``, from
the same table of kinds as the packed form. Four words are JSON's own: ``bytes`` (base64), ``utf8``
(bytes that read as text), ``float`` (nan, inf) and ``escaped`` (a dict that has a ``"$type"``).
"""

from __future__ import annotations

import base64
import json
import math
import struct
from typing import Any, NoReturn

from holdfast.core.chunk_decoder import DEFAULT_LIMITS, Chunks
from holdfast.core.chunk_encoder import Apart, Encoded, encode, together
from holdfast.core.chunk_format import PAGED_BYTES, PAGED_DICT, PAGED_STR, REF_LEAF, REF_NODE
from holdfast.core.codec import OnUnknown, Packer
from holdfast.core.json_form_reader import MAX_LEVELS, TAG, JsonFormReader, UnrevivingReader
from holdfast.core.kinds import Unkeepable, by_code
from holdfast.core.packed_size import is_plain_dict
from holdfast.core.rewrite import rewrite
from holdfast.core.shallow_reader import Hole, page_entries, shallow
from holdfast.errors import CheckpointIntegrityError, SerializationError


def to_json(value: Any, allow_pickle: bool = False) -> Any:
    """Return a value as data that JSON can say, types kept exactly.

    >>> from holdfast.core.json_form import to_json
    >>> to_json({"at": (1, 2.5), "raw": b"hi"})
    {'at': {'$type': 'tuple', 'value': [1, 2.5]}, 'raw': {'$type': 'utf8', 'value': 'hi'}}
    """
    packer = Packer(allow_pickle)
    try:
        return _JsonFormWriter(packer).value(value, 0)
    except (RecursionError, SerializationError, Unkeepable):
        rewrite(value, packer)  # it knows the path and the words for what cannot be kept
        raise SerializationError("$", "is nested too deep to be written as JSON") from None


def from_json(data: Any, on_unknown: OnUnknown = "raise", allow_pickle: bool = False) -> Any:
    """Return the value that ``to_json`` gave as data; revives under the rules of ``unpack``.

    >>> from holdfast.core.json_form import from_json
    >>> from_json({"$type": "tuple", "value": [1, 2.5]})
    (1, 2.5)
    """
    return JsonFormReader(on_unknown, allow_pickle).read(data)


def unrevived(data: Any) -> Any:
    """Return what packs as the value that ``to_json`` was given: Ready for all that is not plain.

    No class is looked for and nothing is unpickled.
    """
    return UnrevivingReader().read(data)


def state_to_json(root: bytes, chunks: Chunks) -> Any:
    """Return a state in chunks as ``to_json`` gives it, without reviving any of it."""
    return part_to_json(Hole(REF_NODE, root), chunks)


def part_to_json(value: Any, chunks: Chunks) -> Any:
    """Return a part of a state that ``shallow`` read, with what it refers to, in the same way."""
    try:
        return _JsonFormWriter(Packer(), chunks).value(value, 0)
    except RecursionError:
        raise SerializationError("$", "is nested too deep to be written as JSON") from None


def state_from_json(data: Any, apart: Apart = together) -> Encoded:
    """Return the chunks of a state that ``state_to_json`` gave; many of them ``apart``."""
    try:
        value = unrevived(data)
        del data  # it may be the state once more
        return encode(value, apart=apart)
    except SerializationError as error:
        raise CheckpointIntegrityError(None, str(error)) from None


def dumps(data: Any, levels: int = 6, width: int = 100) -> str:
    """Return JSON text for people: what fits stands on one line, what does not is indented.

    >>> from holdfast.core.json_form import dumps
    >>> print(dumps({"a": [1, 2]}))
    {"a": [1, 2]}
    """
    if not levels or not data or type(data) not in (dict, list):
        return json.dumps(data, ensure_ascii=False, allow_nan=False)
    if type(data) is dict:
        start, end = "{}"
        parts = [f"{dumps(key)}: {dumps(part, levels - 1)}" for key, part in data.items()]
    else:
        start, end = "[]"
        parts = [dumps(part, levels - 1) for part in data]
    if sum(map(len, parts)) + 2 * len(parts) <= width and not any("\n" in part for part in parts):
        return start + ", ".join(parts) + end
    # No line end is inside a string, where JSON writes it as \n.
    body = ",\n".join(parts)
    del parts  # of a large state each is as large as the whole
    body = body.replace("\n", "\n  ")
    return f"{start}\n  {body}\n{end}"


def loads(text: str | bytes) -> Any:
    """Return the data of JSON text; whatever is wrong with it is CheckpointIntegrityError."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise CheckpointIntegrityError(None, "values nest too deep") from None
    except ValueError as error:
        raise CheckpointIntegrityError(None, f"it is not JSON ({error})") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _tagged(kind: str, plain: Any) -> dict[str, Any]:
    return {TAG: kind, "value": plain}


class _JsonFormWriter:
    """Values to JSON data. Recursion is one call a level, so that deep values have room."""

    def __init__(self, packer: Packer, chunks: Chunks | None = None) -> None:
        self.packer = packer
        self.chunks = {} if chunks is None else chunks
        self.bytes_left = DEFAULT_LIMITS.bytes
        self.chunks_left = DEFAULT_LIMITS.chunks

    def value(self, value: Any, depth: int) -> Any:
        cls = type(value)
        if cls is str:
            return value if _is_utf8(value) else self._object(value, depth)
        if value is None or cls is bool:
            return value
        if cls is int:
            small = -(2**63) <= value < 2**64
            return value if small else self._object(value, depth)
        if cls is float:
            return value if math.isfinite(value) else _tagged("float", _special(value))
        if cls is bytes:
            return _bytes_data(value)
        if depth > MAX_LEVELS:
            raise RecursionError
        if cls is list:
            parts = []
            for part in value:
                parts.append(self.value(part, depth + 1))  # noqa: PERF401  (a frame less)
            return parts
        if cls is dict and is_plain_dict(value):
            items = {}
            for key, part in value.items():
                items[key] = self.value(part, depth + 1)
            return _tagged("escaped", items) if TAG in items else items
        if cls is Hole:
            return self.value(self._opened(value), depth)
        return self._object(value, depth)

    def _object(self, value: Any, depth: int) -> Any:
        code, plain = self.packer.reduce(value)
        if type(plain) is Hole:
            plain = self._opened(plain)
        kind = by_code[code]
        said = kind.shape.json_value(plain)
        if said is not None:
            return said
        return _tagged(kind.name, self.value(kind.shape.as_json(plain), depth + 1))

    def _opened(self, hole: Hole) -> Any:
        """Return what a hole stands for, one level deep."""
        if hole.code in (REF_LEAF, REF_NODE):
            return shallow(self._chunk(hole.data))
        pages = [self._chunk(name) for name, *_ in page_entries(hole.data, self.chunks)]
        if hole.code == PAGED_BYTES:
            return b"".join(pages)
        if hole.code == PAGED_STR:
            try:
                return b"".join(pages).decode()
            except UnicodeDecodeError as error:
                raise CheckpointIntegrityError(None, f"text that is not UTF-8 ({error})") from None
        cls = dict if hole.code == PAGED_DICT else list
        whole: Any = cls()
        add = whole.update if cls is dict else whole.extend
        for page in map(shallow, pages):
            if type(page) is not cls:
                raise CheckpointIntegrityError(None, f"a page that is no {cls.__name__}")
            add(page)
        return whole

    def _chunk(self, name: bytes) -> bytes:
        raw = self.chunks.get(name)
        if raw is None:
            raise CheckpointIntegrityError(None, f"chunk {name.hex()} is missing")
        self.bytes_left -= len(raw)
        self.chunks_left -= 1
        if self.bytes_left < 0 or self.chunks_left < 0:
            raise CheckpointIntegrityError(None, "it holds more data than the limits allow")
        return raw


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _bytes_data(value: bytes) -> dict[str, Any]:
    try:
        return _tagged("utf8", value.decode())
    except UnicodeDecodeError:
        return _tagged("bytes", base64.b64encode(value).decode())


_NAN = struct.pack(">d", math.nan)


def _special(value: float) -> str:
    bits = struct.pack(">d", value)
    # There are many nans; one that is not the usual one is given by its bits.
    return bits.hex() if math.isnan(value) and bits != _NAN else str(value)
