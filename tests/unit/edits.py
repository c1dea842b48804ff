"""Edits of a state, at random, as an agent's steps would make them."""

import random
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from holdfast.core.chunk_format import ELEMENT_SPLIT, RECORD_KEYS
from tests import strategies as s

LARGE = ELEMENT_SPLIT + 1000
"""An element of this size has a chunk of its own."""


def text(size: int, seed: int = 0) -> str:
    """Text that does not compress to nothing, with line ends here and there."""
    alphabet = "abcdefghijklmnopqrstuvwxyz      \n"
    return "".join(random.Random(seed).choices(alphabet, k=size))


def message(number: int, size: int = 300) -> dict[str, Any]:
    return {"role": "user", "id": number, "content": text(size, number)}


def messages(count: int, size: int = 300) -> list[Any]:
    return [message(number, size) for number in range(count)]


# Edit scripts: each takes a state and a source of randomness, and gives the next state.

Edit = Callable[[dict[str, Any], random.Random], None]


def _some_value(rnd: random.Random) -> Any:
    return rnd.choice(
        [
            lambda: rnd.randint(0, 9),
            lambda: text(rnd.choice([5, 200, 1500, 5000, 40_000]), rnd.randint(0, 9)),
            lambda: rnd.randbytes(rnd.choice([3, 1500, 20_000])),
            lambda: bytearray(rnd.randbytes(20)),
            lambda: [rnd.randint(0, 99) for _ in range(rnd.choice([2, 3000]))],
            lambda: tuple(text(50, i) for i in range(rnd.choice([2, 400]))),
            lambda: {f"k{i}": text(60, i) for i in range(rnd.choice([3, 40, 300]))},
            lambda: {i: text(60, i) for i in range(rnd.choice([3, 300]))},
            lambda: s.Plain(text(rnd.choice([9, 9000])), [text(500, i) for i in range(20)]),
            lambda: s.Model(a=[text(900, i) for i in range(rnd.choice([1, 30]))]),
            lambda: {text(9, i) for i in range(rnd.choice([2, 900]))},
            lambda: OrderedDict((str(i), text(300, i)) for i in range(rnd.choice([2, 60]))),
            lambda: "\ud800" + text(rnd.choice([5, 5000])),
            lambda: np.arange(rnd.choice([3, 5000])),
            lambda: s.Items([text(100, i) for i in range(rnd.choice([2, 300]))]),
        ]
    )()


def append(state: dict[str, Any], rnd: random.Random) -> None:
    state["messages"].append(message(rnd.randint(0, 10**6), rnd.choice([20, 300, LARGE])))


def append_several(state: dict[str, Any], rnd: random.Random) -> None:
    for _ in range(rnd.randint(2, 40)):
        append(state, rnd)


def trim_the_front(state: dict[str, Any], rnd: random.Random) -> None:
    del state["messages"][: rnd.randint(1, 30)]


def truncate(state: dict[str, Any], rnd: random.Random) -> None:
    del state["messages"][rnd.randint(0, len(state["messages"])) :]


def edit_the_middle(state: dict[str, Any], rnd: random.Random) -> None:
    if state["messages"]:
        at = rnd.randrange(len(state["messages"]))
        state["messages"][at] = message(rnd.randint(0, 99), rnd.choice([1, 300, 9000]))


def insert(state: dict[str, Any], rnd: random.Random) -> None:
    state["messages"].insert(rnd.randint(0, len(state["messages"])), _some_value(rnd))


def remove(state: dict[str, Any], rnd: random.Random) -> None:
    if state["messages"]:
        state["messages"].pop(rnd.randrange(len(state["messages"])))


def reverse(state: dict[str, Any], rnd: random.Random) -> None:
    state["messages"].reverse()


def set_a_value(state: dict[str, Any], rnd: random.Random) -> None:
    state[f"v{rnd.randint(0, 3)}"] = _some_value(rnd)


def set_many(state: dict[str, Any], rnd: random.Random) -> None:
    for i in range(rnd.choice([5, RECORD_KEYS, RECORD_KEYS + 5])):
        state[f"w{i}"] = text(rnd.choice([10, 1300]), i)


def delete_a_value(state: dict[str, Any], rnd: random.Random) -> None:
    for key in rnd.sample(sorted(state), rnd.randint(0, len(state) - 1)):
        if key != "messages":
            del state[key]


def edit_a_big_text(state: dict[str, Any], rnd: random.Random) -> None:
    big = state.setdefault("big", text(60_000))
    at = rnd.randint(0, len(big))
    state["big"] = rnd.choice([big + text(200, at), big[at:], big[:at] + "X" + big[at:], big[:at]])


def edit_a_big_dict(state: dict[str, Any], rnd: random.Random) -> None:
    table = state.setdefault("table", {f"key {i}": text(100, i) for i in range(400)})
    key = f"key {rnd.randint(0, 450)}"
    if rnd.random() < 0.3:
        table.pop(key, None)
    elif rnd.random() < 0.3:
        table[key] = _some_value(rnd)
    else:
        table[key] = text(rnd.choice([100, 3000]), rnd.randint(0, 99))


def edit_an_object(state: dict[str, Any], rnd: random.Random) -> None:
    obj = state.setdefault("agent", s.Plain(messages(60), {"notes": text(3000)}))
    rnd.choice(
        [
            lambda: obj.a.append(message(rnd.randint(0, 999))),
            lambda: obj.b.update(notes=text(rnd.choice([10, 3000, 30_000]), rnd.randint(0, 9))),
            lambda: setattr(obj, "a", obj.a[5:]),
        ]
    )()


def edit_an_odd_dict(state: dict[str, Any], rnd: random.Random) -> None:
    table = state.setdefault("odd", {(i, "k"): text(80, i) for i in range(300)})
    table[rnd.randint(0, 400), "k"] = text(rnd.choice([80, 5000]), rnd.randint(0, 99))


def swap_bytes(state: dict[str, Any], rnd: random.Random) -> None:
    """Turn bytes into the bytearray that looks the same, or back, among large things."""
    if "bytes" not in state:
        state["bytes"] = [text(LARGE), *(b"x%d" % i for i in range(3000))]
    at = rnd.randint(1, 50)
    kind = bytes if type(state["bytes"][at]) is bytearray else bytearray
    state["bytes"][at] = kind(state["bytes"][at])


def turn_true(state: dict[str, Any], rnd: random.Random) -> None:
    """Turn 1 into True, which is equal, or back."""
    flags = state.setdefault("flags", [1] * 9000)
    at = rnd.randrange(len(flags))
    flags[at] = 1 if flags[at] is True else True


EDITS: list[Edit] = [
    *(append, append_several, trim_the_front, truncate, edit_the_middle, insert, remove, reverse),
    *(set_a_value, set_many, delete_a_value, edit_a_big_text, edit_a_big_dict),
    *(edit_an_object, edit_an_odd_dict, swap_bytes, turn_true),
]


def scripts() -> st.SearchStrategy[list[tuple[Edit, int]]]:
    edit = st.tuples(st.sampled_from(EDITS), st.integers(0, 2**16))
    return st.lists(edit, min_size=1, max_size=6)


def states(start: int, script: Iterable[tuple[Edit, int]]) -> Iterable[dict[str, Any]]:
    """A state and what a script of edits makes of it, edited in place as agents do."""
    state: dict[str, Any] = {"messages": messages(start), "step": 0}
    yield state
    for step, (edit, seed) in enumerate(script, 1):
        edit(state, random.Random(seed))
        state["step"] = step
        yield state


STARTS = st.sampled_from([0, 3, 60, 200])
