"""The shape of the package: imports point one way, core does no I/O, importing is cheap."""

import ast
import graphlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from holdfast.adapters.frameworks import FRAMEWORKS

SRC = Path(__file__).parents[2] / "src"
PACKAGE = SRC / "holdfast"

# A part may import from its own layer and from those below it.
LAYERS = (
    {"__main__", "testing"},
    {"ui"},
    {"cli"},
    {"adapters", "coding_agents", "state"},
    {"client"},
    {"session", "workspace"},
    {"verbs"},
    {"runtime"},
    {"stores"},
    {"model"},
    {"core", "ids"},
    {"system"},
    {"errors"},
    {"_lazy", "_version"},
)
RANK = {part: rank for rank, layer in enumerate(reversed(LAYERS)) for part in layer}

NOT_IN_CORE = {
    *("asyncio", "concurrent", "http", "multiprocessing", "select", "selectors", "shutil"),
    *("signal", "socket", "sqlite3", "ssl", "subprocess", "tempfile", "urllib"),
    *("random", "secrets", "time"),  # a clock and randomness are handed in
}

HEAVY = {
    *("asyncio", "sqlite3", "ormsgpack", "zstandard"),
    *("redis", "psycopg", "obstore", "langchain_core", "numpy", "pandas", "pydantic", "mcp"),
    *("starlette", "uvicorn"),
    *(each.module for each in FRAMEWORKS.values()),
}
MODULES_IMPORTED_AT_MOST = 40  # `typing` alone brings about 25


@dataclass(frozen=True)
class Import:
    """One import found in the source, for instance `from holdfast.core import codec`."""

    importer: str
    imported: str
    line: int
    deferred: bool

    @property
    def parts(self) -> tuple[str, str]:
        return part_of(self.importer), part_of(self.imported)

    def __str__(self) -> str:
        return f"{self.importer}, line {self.line}, imports {self.imported}"


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
TREES = {name: ast.parse(path.read_bytes(), path) for name, path in MODULES.items()}
CORE = [name for name in MODULES if name.startswith("holdfast.core")]


def part_of(module: str) -> str:
    """`holdfast.core.codec` belongs to the part `core`; `holdfast` itself is the part ``."""
    return module.removeprefix("holdfast").strip(".").partition(".")[0]


def imports_of(module: str) -> Iterator[Import]:
    """Every import of a module, wherever it stands in the file."""

    def visit(node: ast.AST, deferred: bool) -> Iterator[Import]:
        for name in imported_by(node, module):
            yield Import(module, name, getattr(node, "lineno", 0), deferred)
        inside = deferred or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        inside = inside or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inside)

    return visit(TREES[module], deferred=False)


def imported_by(node: ast.AST, module: str) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    origin = node.module or ""
    if node.level:
        is_package = MODULES[module].name == "__init__.py"
        base = module.split(".")[: len(module.split(".")) - node.level + is_package]
        origin = ".".join([*base, *filter(None, [node.module])])
    # `from holdfast.core import codec` names a module, `from holdfast.model import Checkpoint` not.
    submodules = [f"{origin}.{alias.name}" for alias in node.names]
    return [name if name in MODULES else origin for name in submodules]


def internal_imports() -> Iterator[Import]:
    """Imports between parts, but for those of `holdfast/__init__.py`, which names them all."""
    for module in MODULES.keys() - {"holdfast"}:
        for found in imports_of(module):
            if found.imported.split(".")[0] == "holdfast" and len(set(found.parts)) == 2:
                yield found


def test_every_part_has_a_layer() -> None:
    parts = {part_of(module) for module in MODULES} - {""}

    assert parts <= RANK.keys(), "give these a place in LAYERS"


def test_imports_point_from_outer_layers_to_inner_ones() -> None:
    outermost = len(LAYERS)  # `from holdfast import ...` is for users
    upward = [
        str(found)
        for found in internal_imports()
        if RANK.get(found.parts[1], outermost) > RANK[found.parts[0]]
    ]

    assert not upward


def test_no_two_parts_import_each_other() -> None:
    graph: dict[str, set[str]] = {}
    for found in internal_imports():
        graph.setdefault(found.parts[0], set()).add(found.parts[1])

    list(graphlib.TopologicalSorter(graph).static_order())


def test_core_does_not_know_stores() -> None:
    assert not [str(i) for name in CORE for i in imports_of(name) if i.parts[1] == "stores"]


@pytest.mark.parametrize("module", CORE)
def test_core_does_no_input_or_output(module: str) -> None:
    imports = [i for i in imports_of(module) if i.imported.split(".")[0] in NOT_IN_CORE]
    opens = [
        f"{module}, line {node.lineno}, calls open()"
        for node in ast.walk(TREES[module])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open"
    ]

    assert not [*map(str, imports), *opens]


@pytest.mark.parametrize("module", CORE)
def test_core_uses_nothing_of_threading_but_local(module: str) -> None:
    used = set()
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.ImportFrom) and node.module == "threading":
            used |= {alias.name for alias in node.names}
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "threading":
            used.add(node.attr)

    assert used <= {"local"}


SPEAKS = {
    "holdfast.system.progress_bar": "draws where a program or a command asked for it",
    "holdfast.session.approval": "asks a person, with approval='prompt'",
    "holdfast.adapters.langgraph.__main__": "is a command",
}
DRAWS = {"holdfast.session.options": "session(progress=…)"}


def test_a_library_writes_to_the_terminal_only_where_it_was_asked_to() -> None:
    speaking, drawing = set(), set()
    for module in (name for name in MODULES if part_of(name) != "cli"):
        for node in ast.walk(TREES[module]):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "print":
                speaking.add(module)
            if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("sys.std"):
                speaking.add(module)
        if any("progress_bar" in found.imported for found in imports_of(module)):
            drawing.add(module)

    assert speaking == SPEAKS.keys()
    assert drawing == DRAWS.keys()


@pytest.fixture(scope="module")
def imported_with_holdfast() -> set[str]:
    """The modules that `import holdfast` adds to those of bare Python."""
    script = (
        "import sys; bare = set(sys.modules); import holdfast; print(*sys.modules.keys() - bare)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_importing_holdfast_imports_nothing_heavy(imported_with_holdfast: set[str]) -> None:
    assert not imported_with_holdfast & HEAVY


def test_importing_holdfast_imports_few_modules(imported_with_holdfast: set[str]) -> None:
    assert len(imported_with_holdfast) <= MODULES_IMPORTED_AT_MOST, sorted(imported_with_holdfast)
