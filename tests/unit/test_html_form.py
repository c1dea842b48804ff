"""Tables for notebooks: every value is text, whatever it is, and as much of it as a page holds."""

from datetime import UTC, datetime
from html import unescape
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given

from holdfast.core.diff import ByPath, Diff
from holdfast.core.html_form import LONGEST, Literally, Row, escaped, facts, table
from holdfast.model import Checkpoint, CheckpointInfo, Timeline
from holdfast.session.exploration import Exploration, Outcome
from holdfast.system.terminal_text import is_harmless
from holdfast.verbs.lineage import Tree, TreeNode
from tests.strategies import texts

TAGS = {"table", "caption", "b", "bdi", "thead", "tbody", "tr", "th", "td"}
ATTRIBUTES = {"style", "scope", "colspan"}


class Parsed(HTMLParser):
    """The tags, attributes and text of a page; each tag has its end."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.styles: set[str] = set()
        self.text = ""
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._open.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.styles |= {value or "" for name, value in attrs if name == "style"}

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data!r}")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(f"a declaration: {decl!r}")


class Unspeakable:
    """Its repr raises."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def info_with(text: str) -> CheckpointInfo:
    return CheckpointInfo(
        checkpoint_id=text,
        agent_id=text,
        session_id=text,
        parent_id=text,
        step_name=text,
        metadata={text: text},
        created_at=datetime(2026, 1, 2, tzinfo=UTC),
        handoff_target=text,
    )


def pages_with(text: str) -> list[str]:
    """All that notebooks show, with a text in every field."""
    info = info_with(text)
    kept = Checkpoint(
        checkpoint_id=text,
        agent_id=text,
        session_id=text,
        created_at=datetime(2026, 1, 2, tzinfo=UTC),
        execution_state={text: text, "list": [text]},
        agent_context={text: text},
    )
    by_path = ByPath({text: text})
    pairs = ByPath({text: (text, text)})
    outcome = Outcome(text, text, "done", score=1.0, error=text)
    return [
        info._repr_html_(),
        kept._repr_html_(),
        Timeline([info, kept])._repr_html_(),
        Timeline([info, text])._repr_html_(),
        Diff(by_path, by_path, pairs, by_path)._repr_html_(),
        Tree([TreeNode(info, [TreeNode(info), TreeNode(info)])])._repr_html_(),
        Exploration(text, [outcome])._repr_html_(),
        facts(text, [text], [(text, text)]),
        table(text, [text], [text], [Row([text, Literally(text)])], most=1, total=2),
    ]


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", "\"'><img src=x onerror=x>", "<!--", "</td>", "&lt;b>"]
)
def test_markup_in_any_field_is_text(text: str) -> None:
    for page in pages_with(text):
        parsed = Parsed(page)
        assert set(parsed.tags) <= TAGS
        assert text in parsed.text or repr(text) in parsed.text


@given(texts())
def test_whatever_text_is_in_a_field_only_our_tags_are_on_the_page(text: str) -> None:
    plain = [Parsed(page) for page in pages_with("plain")]
    for page, like in zip(pages_with(text), plain, strict=True):
        parsed = Parsed(page)
        assert set(parsed.tags) <= TAGS
        assert parsed.attributes <= ATTRIBUTES
        assert parsed.styles <= like.styles
        assert all(map(is_harmless, page))
        page.encode()  # no half of a character is left


@given(texts())
def test_escaped_text_has_no_markup_and_reads_as_it_was(text: str) -> None:
    safe = escaped(text)

    assert not set("<>\"'") & set(safe)
    if text.isprintable():
        assert unescape(safe) == text


@pytest.mark.parametrize("character", ["\u202e", "\u2066", "\u200f", "\x1b", "\x00", "\ud800"])
def test_what_steers_a_page_is_shown_as_python_writes_it(character: str) -> None:
    shown = escaped(f"a{character}b")

    assert character not in shown
    assert "\\" in shown


def test_a_long_value_is_cut() -> None:
    assert len(escaped("x" * 10_000_000)) == LONGEST
    assert len(escaped(Literally(["x"] * 10_000_000), 50)) < 50 * len("&#x27;")


@pytest.mark.parametrize("wrapped", [Unspeakable(), [Unspeakable()], Literally(Unspeakable())])
def test_a_value_whose_repr_raises_is_shown_by_its_type(wrapped: Any) -> None:
    assert "Unspeakable" in escaped(wrapped)


def test_a_record_made_by_hand_with_wrong_values_is_shown_all_the_same() -> None:
    odd = CheckpointInfo.of({"agent_id": ["not", "hashable"], "created_at": 5, "size": "big"})

    assert "hashable" in odd._repr_html_()
    assert "hashable" in Timeline([odd, Unspeakable()])._repr_html_()


def test_a_long_timeline_shows_the_newest_and_says_how_many_more() -> None:
    page = Timeline([info_with(f"step {n}") for n in range(10_000)])._repr_html_()

    assert "step 49<" in page
    assert "step 50<" not in page
    assert "… and 9,950 more" in page


def test_a_long_diff_is_cut() -> None:
    page = Diff(added=ByPath({f"$.n{n}": n for n in range(10_000)}))._repr_html_()

    assert page.count("$.n") == 100
    assert "… and 9,900 more" in page


def test_a_tree_of_many_branches_is_cut() -> None:
    root = TreeNode(info_with("root"), [TreeNode(info_with(f"fork {n}")) for n in range(5_000)])
    page = Tree([root])._repr_html_()

    assert page.count("<tr>") == 102  # the names of columns, 100 rows, how many more
    assert "… and 4,901 more" in page


def test_a_large_state_is_shown_by_its_first_keys() -> None:
    kept = Checkpoint(
        checkpoint_id="c",
        agent_id="a",
        session_id="s",
        created_at=datetime(2026, 1, 2, tzinfo=UTC),
        execution_state={f"k{n}": n for n in range(1_000)},
    )
    page = kept._repr_html_()

    assert page.count("$.k") == 20
    assert "… and 980 more" in page


def test_a_change_shows_types_apart() -> None:
    page = Diff(changed=ByPath({"$.n": (1, "1")}))._repr_html_()

    assert ">1<" in page
    assert ">&#x27;1&#x27;<" in page
