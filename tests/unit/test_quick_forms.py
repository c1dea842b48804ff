"""Pages of objects are compared by quick forms: whatever changes in an object is seen."""

from dataclasses import dataclass
from dataclasses import field as declared
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, PrivateAttr

from holdfast.core import page_cutter
from holdfast.core.chunk_encoder import encode
from holdfast.core.paged_sequences import Elements, Items, Layout

TEXT = "words that make an element as long as a message is " * 8


@dataclass
class Message:
    content: Any = TEXT
    said: Any = 0


@dataclass
class Reply(Message):
    pass


@dataclass(slots=True)
class Slotted:
    content: Any = TEXT
    said: Any = 0
    left: Any = declared(init=False)


class Model(BaseModel):
    model_config = ConfigDict(extra="allow")
    content: Any = TEXT
    said: Any = 0
    _hidden: Any = PrivateAttr(default=0)


class Chosen:
    def __init__(self) -> None:
        self.content, self.said, self.other = TEXT, 0, 0

    def _checkpoint_fields(self) -> list[str]:
        return ["content", "said"]


class Text(str):
    said: Any = 0


KINDS = (Message, Reply, Slotted, Model, Chosen)


def made(kind: type) -> Any:
    return Model(content=TEXT, said=0) if kind is Model else kind()


ODD = st.sampled_from(
    [
        *(0, False, 0.0, -0.0, 1, True, 1.0, "1", b"1", bytearray(b"1"), None, (1,), [1]),
        *({"a": 1, "b": 2}, {"b": 2, "a": 1}, {1: 2}, {1, 2}, "\ud800", 2**70),
        *(Message("x"), Text("x"), Model()),
    ]
)
PLAIN = st.sampled_from([TEXT, {"content": TEXT}, [TEXT], Text(TEXT), 7])
CHANGES = st.one_of(
    st.tuples(st.just("set"), st.sampled_from(["content", "said"]), ODD),
    st.tuples(st.just("add"), ODD),
    st.just(("forget",)),
    st.just(("turn round",)),
    st.just(("unset",)),
    st.tuples(st.just("hide"), ODD),
    st.just(("no extra",)),
    st.just(("other class",)),
    st.just(("all of another class",)),
    st.just(("rename",)),
    st.tuples(st.just("append"), st.sampled_from(KINDS)),
    st.just(("remove",)),
    st.tuples(st.just("replace"), PLAIN),
    st.just(("nothing",)),
)


def change(items: dict[str, Any], name: str, how: tuple[Any, ...]) -> None:
    """Change one of some objects, where it can be changed so."""
    it = items[name]
    match how:
        case "append", cls:
            items[f"{name}+"] = made(cls)
        case ("remove",):
            del items[name]
        case ("rename",):
            renamed = {f"{key}*" if key == name else key: each for key, each in items.items()}
            items.clear()
            items.update(renamed)
        case "replace", value:
            items[name] = value
        case ("all of another class",):
            for each in items.values():
                change({"": each}, "", ("other class",))
        case "set", field, value if isinstance(it, KINDS):
            setattr(it, field, value)
        case "add", value if isinstance(it, (Message, Model, Chosen)):
            it.other = value  # type: ignore[union-attr]
        case ("forget",):
            getattr(it, "__dict__", {}).pop("said", None)
        case ("turn round",):
            own = getattr(it, "__dict__", {})
            turned = dict(reversed(own.items()))
            own.clear()
            own.update(turned)
        case ("unset",) if isinstance(it, Model):
            it.__pydantic_fields_set__.discard("said")
        case "hide", value if isinstance(it, Model):
            it._hidden = value
        case ("no extra",) if isinstance(it, Model):
            object.__setattr__(it, "__pydantic_extra__", None)
        case ("other class",) if type(it) in (Message, Reply):
            it.__class__ = Reply if type(it) is Message else Message


@given(
    st.lists(st.sampled_from(KINDS), min_size=30, max_size=60),
    st.lists(st.lists(st.tuples(st.integers(0), CHANGES), max_size=2), min_size=3, max_size=8),
    st.booleans(),
)
@settings(max_examples=60)
def test_an_object_that_changed_is_kept_as_it_is_now(
    kinds: list[type], steps: list[list[Any]], is_dict: bool
) -> None:
    items = {f"{n} {kind.__name__}": made(kind) for n, kind in enumerate(kinds)}
    base = None
    for changes in steps:
        for at, how in changes:
            change(items, [*items][at % len(items)], how)
        state = {"all": dict(items) if is_dict else [*items.values()]}

        encoded = encode(state, base, seed=5)

        assert encoded.root == encode(state, seed=5).root
        base = encoded.base


@pytest.mark.parametrize("is_dict", [False, True])
@pytest.mark.parametrize("kind", [Message, Model, dict])
def test_what_grows_is_cut_as_if_all_were_new_and_little_of_it_is_looked_at(
    is_dict: bool, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_cutter, "ends_page", lambda key, size: False)
    looked: list[int] = []
    view = Items if is_dict else Elements
    look = view.element

    def element(it: Any, at: int) -> Any:
        looked.append(at)
        return look(it, at)

    monkeypatch.setattr(view, "element", element)
    items: list[Any] = []
    base, closed, whole = None, 0, 0
    for number in range(400):
        items.append(kind(content=TEXT, said=number))
        state = {"all": {str(n): each for n, each in enumerate(items)} if is_dict else items}

        looked.clear()
        encoded = encode(state, base, seed=5)
        at_once = len(looked)

        assert encoded.root == encode(state, seed=5).root
        pages = encoded.base.layout.children.get("all", Layout()).pages
        is_cut, closed = sum(page.closed for page in pages) > closed, sum(p.closed for p in pages)
        whole += at_once >= 10 and not is_cut
        base = encoded.base
    assert closed > 1
    assert whole < 20  # while it stands whole, and once as a dict becomes no record


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        *((Message, (how,)) for how in ("all of another class", "rename", "turn round")),
        *((Model, (how,)) for how in ("unset", "no extra", "turn round", "forget")),
        *((Model, ("hide", hidden)) for hidden in (False, 7, None)),
        *((kind, ("set", "said", value)) for kind in KINDS for value in (True, 1.0)),
        *((kind, ("add", 1)) for kind in (Message, Model)),
    ],
)
def test_what_was_met_again_and_then_changes_is_seen(kind: type, how: tuple[Any, ...]) -> None:
    items = {f"{n}": made(kind) for n in range(200)}
    for it in items.values():
        it.said = 1
    base = encode({"all": dict(items)}, seed=5).base
    for _ in range(2):
        base = encode({"all": dict(items)}, base, seed=5).base
    before = base.layout.children["all"].pages
    assert any(page.quick for page in before)

    for name in [*items][:3]:
        change(items, name, how)
    after = encode({"all": dict(items)}, base, seed=5)

    assert after.root == encode({"all": dict(items)}).root
    assert after.base.layout.children["all"].pages[0].id != before[0].id
