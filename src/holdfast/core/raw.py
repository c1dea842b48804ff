"""Stand-ins: for what is kept elsewhere, what others have written, and whose class is not there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Sealed:
    """A value as another serializer wrote it: that serializer's tag, and its bytes.

    A LangGraph saver with an encrypted serializer keeps channel values so.
    """

    tag: str
    data: bytes

    def __repr__(self) -> str:
        return f"<sealed {self.tag}, {len(self.data)} bytes>"


class Raw(dict[str, Any]):
    """The fields of a value whose class is unknown here (``on_unknown="raw"``) or not trusted.

    Saved again, it is the original value. A value without named fields (a named tuple, an enum
    member) is under the key ``"value"``.
    """

    __slots__ = ("_code", "_named", "_rest", "type_name")

    def __init__(self, code: int, plain: list[Any]) -> None:
        self.type_name: str
        self.type_name, main, *self._rest = plain
        self._code = code
        self._named = type(main) is dict
        super().__init__(main if self._named else {"value": main})

    # By identity, so that it can stand for a key or an element of a set.
    __hash__ = object.__hash__  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Raw({self.type_name}, {dict.__repr__(self)})"

    def reduced(self) -> tuple[int, list[Any]]:
        """Return the kind's code and the plain data this came from, with edits to the fields."""
        main = dict(self) if self._named else self["value"]
        return self._code, [self.type_name, main, *self._rest]
