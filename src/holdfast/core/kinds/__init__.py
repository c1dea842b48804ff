"""Kinds: how values that msgpack does not know become plain data, and back.

``table`` is what all share; the modules below fill it when the package is imported.
"""

from holdfast.core.kinds import (  # noqa: F401
    content_links,
    numpy_values,
    objects,
    pandas_values,
    pickled,
    random_generators,
    standard,
    torch_values,
)
from holdfast.core.kinds.table import (
    REGISTERED,
    Kind,
    Ready,
    Reviver,
    Revives,
    Unkeepable,
    add,
    add_matcher,
    all_exactly,
    by_code,
    by_name,
    by_type,
    bytes_codes,
    exactly,
    kind_of,
    register_type,
    registered,
    shape_of,
)

__all__ = [
    "REGISTERED",
    "Kind",
    "Ready",
    "Reviver",
    "Revives",
    "Unkeepable",
    "add",
    "add_matcher",
    "all_exactly",
    "by_code",
    "by_name",
    "by_type",
    "bytes_codes",
    "exactly",
    "kind_of",
    "register_type",
    "registered",
    "shape_of",
]
