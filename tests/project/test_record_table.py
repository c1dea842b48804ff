"""The fields of the record are listed in one place: whoever adds one has nothing to forget."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.model import FIELDS

PACKAGE = Path(__file__).parents[2] / "src" / "holdfast"
TABLE = PACKAGE / "model" / "fields.py"
NAMES = {field.name for field in FIELDS}
A_LIST = 5
"""Of the names of fields in one place: fewer are a few that are needed, so many are a list."""

# An entry of the index is what records are found by, and fewer than they have.
INDEXES = {("stores/redis/records.py", "IndexEntry")}


def listed(tree: ast.Module) -> Iterator[tuple[int, set[str]]]:
    """The names in every collection, class and call of a file, and its line."""
    for node in ast.walk(tree):
        names: list[ast.expr | None] = []
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            names = [each.value if isinstance(each, ast.Starred) else each for each in node.elts]
        elif isinstance(node, ast.Dict):
            names = list(node.keys)
        elif isinstance(node, ast.Call):
            names = list(node.args)
        elif isinstance(node, ast.ClassDef):
            rows = [each.target for each in node.body if isinstance(each, ast.AnnAssign)]
            yield node.lineno, {row.id for row in rows if isinstance(row, ast.Name)}
        texts = {each.value for each in names if isinstance(each, ast.Constant)}
        attributes = {each.attr for each in names if isinstance(each, ast.Attribute)}
        for found in (texts, attributes):
            yield getattr(node, "lineno", 0), {each for each in found if isinstance(each, str)}


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_nothing_but_the_table_lists_the_fields_of_the_record(path: Path) -> None:
    if path == TABLE or "testing" in path.parts:
        return
    tree = ast.parse(path.read_bytes())
    indexes = {name for place, name in INDEXES if place == str(path.relative_to(PACKAGE))}
    tree.body = [each for each in tree.body if getattr(each, "name", None) not in indexes]
    lists = [
        f"line {line}: {', '.join(sorted(found & NAMES))}"
        for line, found in listed(tree)
        if len(found & NAMES) >= A_LIST
    ]

    assert not lists


def test_a_list_of_fields_would_be_found() -> None:
    source = "NAMES = ('agent_id', 'session_id', 'parent_id', 'step_index', 'size')"
    found = [names for _, names in listed(ast.parse(source)) if len(names & NAMES) >= A_LIST]

    assert len(found) == 1
    assert [names for _, names in listed(ast.parse(TABLE.read_bytes())) if len(names) >= A_LIST]
