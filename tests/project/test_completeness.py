"""Lists that have to be whole: errors, folders of tests, bounds of dependencies."""

import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import holdfast
from holdfast import errors

ROOT = Path(__file__).parents[2]
ERRORS = {
    name: value
    for name, value in vars(errors).items()
    if inspect.isclass(value) and issubclass(value, errors.HoldfastError)
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
BOUNDED = re.compile(
    r"(?P<name>[\w.-]+)(\[[\w,-]+\])?(?P<bounds>>=[\w.]+,<[\w.]+|==[\w.+]+)( *;.*)?"
)


def rows(document: str, heading: str) -> list[list[str]]:
    """The cells of the table that begins so."""
    text = (ROOT / document).read_text("utf-8")
    table = text[text.index(heading) :].partition("\n\n")[0]
    lines = table.splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_every_error_is_in_the_table_with_when_and_what_to_do() -> None:
    table = rows("docs/errors.md", "| error | when | what to do |")

    assert [row[0].strip("·` ") for row in table] == list(ERRORS)
    assert all(len(row) == 3 and all(row) for row in table)


def test_every_error_is_in_the_tree_at_the_top_of_its_module() -> None:
    drawn = re.findall(r"^[│├└─ ]*(\w+)", errors.__doc__ or "", re.MULTILINE)

    assert set(drawn) >= set(ERRORS)


def test_the_name_of_every_error_ends_in_error() -> None:
    assert not [name for name in ERRORS if not name.endswith("Error")]


def test_every_error_is_public() -> None:
    assert set(ERRORS) <= set(dir(holdfast))


def test_every_folder_of_tests_is_run() -> None:
    folders = {f"tests/{path.parent.name}" for path in (ROOT / "tests").glob("*/test_*.py")}
    here = set(PROJECT["tool"]["pytest"]["ini_options"]["testpaths"])
    elsewhere = {"tests/frameworks", "tests/coding_agents"}
    targets = (ROOT / "Makefile").read_text("utf-8")

    assert folders == here | elsewhere
    assert " lint environments\n" in targets
    assert " suite ui lowest frameworks coding-agents\n" in targets
    assert "$(PYTEST) -n $(JOBS) --deselect tests/hostile\n" in targets
    assert "$(PYTEST) -n $(JOBS) --dist loadfile tests/hostile\n" in targets
    assert "-m pytest -n $(JOBS) tests/frameworks \\\n" in targets
    assert "$(PYTEST) -n $(CORES) tests/coding_agents;" in targets
    assert "$(PYTEST) -n $(CORES) tests/ui/browser;" in targets


def test_contributing_names_every_folder_of_tests() -> None:
    folders = {f"`tests/{path.parent.name}`" for path in (ROOT / "tests").glob("*/*.py")}
    folders |= {
        f"`tests/{path.name}`" for path in (ROOT / "tests" / "golden").parent.glob("golden")
    }

    assert {row[0] for row in rows("CONTRIBUTING.md", "| folder | holds |")} == folders


def dependencies() -> list[str]:
    project, groups = PROJECT["project"], PROJECT["dependency-groups"]
    some = [project["dependencies"], *project["optional-dependencies"].values(), *groups.values()]
    return [each for those in some for each in those if isinstance(each, str)]


def test_every_dependency_is_bounded_on_both_sides() -> None:
    assert not [each for each in dependencies() if not BOUNDED.fullmatch(each)]


def test_a_dependency_has_the_same_bounds_wherever_it_is_named() -> None:
    named: dict[str, set[str]] = {}
    for bounded in filter(None, map(BOUNDED.fullmatch, dependencies())):
        named.setdefault(bounded["name"], set()).add(bounded["bounds"])

    assert not {name: bounds for name, bounds in named.items() if len(bounds) > 1}


def test_the_lowest_versions_are_those_of_the_project() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "lowest"], capture_output=True, text=True, check=True
    )
    lowest = dict(line.split("==") for line in done.stdout.splitlines())

    assert lowest["ormsgpack"] == "1.13"
    assert lowest.keys() >= {"psycopg", "redis", "langgraph", "mcp", "obstore", "inotify_simple"}
