"""Pages of objects, seen through the dicts of their attributes: at once, not object by object.

Where the quick forms of two pages are equal, so are their bytes; not the other way round. It is
never kept, and asks the table of kinds each time, as ``register_type`` may have changed it since.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from holdfast.core.class_names import class_name
from holdfast.core.kinds import Unkeepable, kind_of
from holdfast.core.kinds.objects import OBJECT_KIND, PYDANTIC_KIND, all_attributes

_MSGPACK_KNOWS = frozenset((str, int, float, bool, type(None), list, dict))
_PYDANTIC_PARTS = attrgetter(
    "__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__"
)


def quick_form(values: Sequence[Any]) -> Any:
    """Return plain data by which values are told apart as by their bytes; None if there is none."""
    types = list(map(type, values))
    classes = dict.fromkeys(types)
    if classes.keys() <= _MSGPACK_KNOWS:
        return None  # msgpack has them at once as they are
    try:
        if len(classes) == 1:
            return [class_name(types[0]), _parts(types[0], values)]
        numbers = dict(zip(classes, range(len(classes)), strict=True))
        parts = [
            [class_name(cls), _parts(cls, [each for each in values if type(each) is cls])]
            for cls in classes
        ]
        return [[numbers[cls] for cls in types], parts]
    except (AttributeError, Unkeepable):
        return None


def _parts(cls: type, values: Sequence[Any]) -> Any:
    if cls in _MSGPACK_KNOWS:
        return list(values)
    kind = kind_of(cls)
    if kind is OBJECT_KIND:
        return all_attributes(cls, values)
    if kind is not PYDANTIC_KIND:
        raise Unkeepable("there is no quick form of it")
    fields, chosen, extra, private = zip(*map(_PYDANTIC_PARTS, values), strict=True)
    rest = [None if each.count(None) == len(each) else list(each) for each in (extra, private)]
    # What is equal may be in another order, and then its bytes are looked at.
    return [list(fields), list(map(list, chosen)), *rest]
