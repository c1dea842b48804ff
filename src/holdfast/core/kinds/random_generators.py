"""Kinds of random generators: they go on where they were, and draw nothing to be revived.

The modules are not imported here, only used where they already are. What a generator is made of
comes from a table of our own; the numbers in it are checked, since C code uses some as positions.
"""

from __future__ import annotations

import sys
from typing import Any

from holdfast.core.kinds.plain_shapes import WHOLE
from holdfast.core.kinds.table import (
    Kind,
    Reviver,
    Revives,
    Unkeepable,
    add,
    add_matcher,
    all_exactly,
    exactly,
)

RANDOM, NUMPY_RANDOM = 53, 54

_WORDS = 624
"""Of the state of a Mersenne Twister, with a position in it."""


def _number(value: Any, below: int) -> int:
    if not 0 <= exactly(value, int) < below:
        raise ValueError("a number out of range")
    return value  # type: ignore[no-any-return]


# random.Random


def _reduce_random(value: Any) -> list[Any]:
    version, (*words, at), gauss = value.getstate()
    data = b"".join([word.to_bytes(4, "little") for word in words])
    return ["random:Random", [version, data, at, gauss]]


def _revive_random(plain: list[Any], reviver: Reviver) -> Any:
    module = sys.modules.get("random")
    if module is None:
        return reviver.missing(RANDOM, plain, "is not imported")
    _, main = exactly(plain, list)
    version, data, at, gauss = exactly(main, list)
    if _number(version, 4) != 3 or len(exactly(data, bytes)) != 4 * _WORDS:
        raise ValueError("a state of another kind")
    words = [int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)]
    value = module.Random(0)  # a seed of its own would be drawn from the system
    state = (*words, _number(at, _WORDS + 1))
    value.setstate((version, state, exactly(gauss, float, type(None))))
    return value


RANDOM_KIND = add(
    Kind(RANDOM, "random.Random", _reduce_random, _revive_random, Revives.OWN_TYPES, WHOLE)
)


# numpy.random

_Array = tuple[str, int]
_INNER: dict[str, dict[str, int | _Array]] = {
    "PCG64": {"state": 2**128, "inc": 2**128},
    "PCG64DXSM": {"state": 2**128, "inc": 2**128},
    "MT19937": {"key": ("<u4", _WORDS), "pos": _WORDS + 1},
    "Philox": {"counter": ("<u8", 4), "key": ("<u8", 2)},
    "SFC64": {"state": ("<u8", 4)},
}
"""The state of each bit generator: numbers, each below a bound, and arrays of a dtype and size."""
_HALVES: dict[str, int | _Array] = {"has_uint32": 2, "uinteger": 2**32}
_OUTER: dict[str, dict[str, int | _Array]] = {
    "PCG64": _HALVES,
    "PCG64DXSM": _HALVES,
    "MT19937": {},
    "Philox": {"buffer": ("<u8", 4), "buffer_pos": 5, **_HALVES},
    "SFC64": _HALVES,
}
_CLASSES = ("Generator", "RandomState")
_SEEDS, _SEED_BITS, _POOL = 256, 4096, 64


def _taken(state: Any, fields: dict[str, int | _Array]) -> dict[str, Any]:
    np = sys.modules["numpy"]
    return {
        name: int(state[name])
        if isinstance(form, int)
        else np.asarray(state[name]).astype(form[0]).tobytes()
        for name, form in fields.items()
    }


def _given(plain: Any, fields: dict[str, int | _Array]) -> dict[str, Any]:
    np = sys.modules["numpy"]
    if exactly(plain, dict).keys() != fields.keys():
        raise ValueError("a state of another kind")
    made: dict[str, Any] = {}
    for name, form in fields.items():
        if isinstance(form, int):
            made[name] = _number(plain[name], form)
        else:
            array = np.frombuffer(exactly(plain[name], bytes), form[0])
            if len(array) != form[1]:
                raise ValueError("a state of another size")
            made[name] = array.astype(form[0][1:])
    return made


def _seed(bits: Any) -> list[Any]:
    """Return what a generator was seeded with, of which ``spawn`` makes others."""
    sequence = bits.seed_seq
    if type(sequence) is not sys.modules["numpy.random"].SeedSequence:
        raise Unkeepable("cannot be checkpointed: it was seeded by a class of its own")
    entropy, pool = sequence.entropy, sequence.pool_size
    if not isinstance(entropy, int):
        entropy = [int(part) for part in entropy]
    plain = [entropy, [int(k) for k in sequence.spawn_key], pool, sequence.n_children_spawned]
    try:
        _check_seed(plain)
    except ValueError:
        raise Unkeepable("cannot be checkpointed: its seed is too long") from None
    return plain


def _check_seed(plain: Any) -> None:
    entropy, spawn_key, pool, spawned = exactly(plain, list)
    # Without any, numpy would ask the system for it.
    parts = [entropy] if type(exactly(entropy, int, list)) is int else entropy
    if len(all_exactly(parts, int)) > _SEEDS or len(all_exactly(spawn_key, int)) > _SEEDS:
        raise ValueError("a seed of too many parts")
    # numpy takes time with the square of these.
    for part in (*parts, *spawn_key):
        _number(part, 2**_SEED_BITS if part is entropy else 2**128)
    _number(pool, _POOL + 1)
    _number(spawned, 2**32)


def _reduce_numpy(value: Any) -> list[Any]:
    random = sys.modules["numpy.random"]
    is_generator = type(value) is random.Generator
    bits = value.bit_generator if is_generator else value._bit_generator
    name = type(bits).__name__
    if name not in _INNER or type(bits) is not getattr(random, name, None):
        raise Unkeepable(
            f"with the bit generator {name} cannot be checkpointed; it can with {', '.join(_INNER)}"
        )
    with bits.lock:
        state = bits.state
    main = {
        "bit_generator": name,
        "state": _taken(state["state"], _INNER[name]),
        **_taken(state, _OUTER[name]),
    }
    if is_generator:
        return ["numpy.random:Generator", main, _seed(bits)]
    legacy = value.get_state(legacy=False)
    return [
        "numpy.random:RandomState",
        main,
        [int(legacy.get("has_gauss", 0)), float(legacy.get("gauss", 0.0))],
    ]


def _revive_numpy(plain: list[Any], reviver: Reviver) -> Any:
    random = sys.modules.get("numpy.random")
    name, main, rest = exactly(plain, list)
    if exactly(name, str) not in [f"numpy.random:{cls}" for cls in _CLASSES]:
        raise ValueError(f"no such generator: {name[:40]}")
    if random is None:
        return reviver.missing(NUMPY_RANDOM, plain, "is not imported")
    fields = dict(exactly(main, dict))
    kind, inner = exactly(fields.pop("bit_generator"), str), fields.pop("state")
    if kind not in _INNER:
        raise ValueError(f"no such bit generator: {kind[:40]}")
    state = {
        "bit_generator": kind,
        "state": _given(inner, _INNER[kind]),
        **_given(fields, _OUTER[kind]),
    }
    if name == "numpy.random:RandomState":
        gauss = [_number(exactly(rest, list)[0], 2), exactly(rest[1], float)]
        bits = getattr(random, kind)(0)
        bits.state = state
        legacy = random.RandomState(bits)
        legacy.set_state(
            {**legacy.get_state(legacy=False), "has_gauss": gauss[0], "gauss": gauss[1]}
        )
        return legacy
    _check_seed(rest)
    entropy, spawn_key, pool, spawned = rest
    seed = random.SeedSequence(
        entropy, spawn_key=tuple(spawn_key), pool_size=pool, n_children_spawned=spawned
    )
    bits = getattr(random, kind)(seed)
    bits.state = state
    return random.Generator(bits)


NUMPY_RANDOM_KIND = add(
    Kind(NUMPY_RANDOM, "numpy.random", _reduce_numpy, _revive_numpy, Revives.OWN_TYPES, WHOLE)
)


def _match(cls: type) -> Kind | None:
    if cls.__module__ == "random" and cls is getattr(sys.modules.get("random"), "Random", None):
        return RANDOM_KIND
    random = sys.modules.get("numpy.random")
    if any(cls is getattr(random, name, None) for name in _CLASSES):
        return NUMPY_RANDOM_KIND
    return None


add_matcher(_match)
