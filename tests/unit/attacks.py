"""What hostile data may try: values made by hand, and classes that tell what of them ran."""

from typing import Any

import numpy as np
import ormsgpack

from holdfast.core.codec import pack, unpack
from holdfast.core.kinds import by_name


def ext(kind: str, plain: Any) -> ormsgpack.Ext:
    """A value of a kind with plain data of the attacker's choice."""
    return ormsgpack.Ext(by_name[kind].code, plain if type(plain) is bytes else blob(plain))


def blob(value: Any) -> bytes:
    return ormsgpack.packb(value)


def load(kind: str, plain: Any) -> Any:
    return unpack(blob(ext(kind, plain)))


def load_typed(kind: str, plain: Any) -> Any:
    """The same with plain data that msgpack alone cannot write, such as large integers."""
    return unpack(blob(ormsgpack.Ext(by_name[kind].code, pack(plain))))


ran: list[str] = []
"""What ran, though nothing may: see the fixture ``nothing_ran``."""


def note(what: str) -> int:
    ran.append(what)
    return 0


class Trap:
    """Every way in that a constructor, an attribute or an operator could open."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        ran.append("__new__")
        return super().__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        ran.append("__init__")

    def __setattr__(self, name: str, value: Any) -> None:
        ran.append("__setattr__")

    def __getattr__(self, name: str) -> Any:
        ran.append(f"__getattr__ {name}")
        raise AttributeError(name)

    def __getattribute__(self, name: str) -> Any:
        if name == "__dict__":
            ran.append("__getattribute__ __dict__")
        return super().__getattribute__(name)

    def __setstate__(self, state: Any) -> None:
        ran.append("__setstate__")

    def __reduce__(self) -> Any:
        ran.append("__reduce__")
        return (print, ("pwned",))

    def __call__(self, *args: Any) -> Any:
        ran.append("__call__")

    def __set_name__(self, owner: Any, name: str) -> None:
        ran.append("__set_name__")

    @property
    def attribute(self) -> Any:
        ran.append("property")
        return None

    @attribute.setter
    def attribute(self, value: Any) -> None:
        ran.append("setter")


def _spring(name: str, answer: Any = None) -> Any:
    def method(self: Any, *args: Any) -> Any:
        ran.append(name)
        return answer

    return method


class Operators:
    """What a constructor of Python's own would call on an argument of this class."""


for _name, _answer in {
    "__index__": 3,
    "__int__": 3,
    "__float__": 1.0,
    "__complex__": 1j,
    "__str__": "s",
    "__bytes__": b"b",
    "__fspath__": "p",
    "__iter__": iter(()),
    "__len__": 0,
    "__getitem__": 1,
    "__eq__": True,
    "__bool__": True,
    "__format__": "f",
    "__array__": np.zeros(1),
    "__getstate__": {},
    "keys": [],
    "partition": ("os", ":", "system"),
    "items": [],
    "encode": b"",
    "decode": "",
    "utcoffset": None,
}.items():
    setattr(Operators, _name, _spring(_name, _answer))
Operators.dtype = property(_spring("dtype", np.dtype("i4")))  # type: ignore[attr-defined]
Operators.__hash__ = object.__hash__  # type: ignore[method-assign]


TRAP = f"{__name__}:Trap"
OPERATORS = ext("object", [f"{__name__}:Operators", {}])
