"""What makes a site of the documentation (see mkdocs.yml): links, menu, and the reference.

Pages are written to be read where they lie, in the repository. Here README becomes the first page,
other files that pages lead to come along, links are turned accordingly, and every public name gets
its place in a reference made of docstrings.
"""

import ast
import contextlib
import re
from importlib import import_module
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import holdfast
from holdfast.adapters.frameworks import FRAMEWORKS

ROOT = Path(__file__).parents[1]

BESIDE = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "benchmarks/README.md": "project/benchmarks.md",
    "benchmarks/SCALE.md": "project/scale.md",
    "LICENSE": "project/LICENSE",
}
"""Files of the repository, and where they are on the site."""

MENU: list[dict[str, Any]] = [
    {"Holdfast": "index.md"},
    {"Start": ["tour.md", "runs.md", "side-effects.md", "workspace.md", "ui.md"]},
    {"Coding agents": ["coding-agents.md", "mcp.md"]},
    {"Frameworks": ["frameworks.md", *(f"{each.replace('_', '-')}.md" for each in FRAMEWORKS)]},
    {"Recipes": "recipes/*.md"},
    {
        "Use": [
            "checkpoints.md",
            "values.md",
            "state.md",
            "torch.md",
            "coordination.md",
            "moving.md",
        ]
    },
    {"Operate": ["stores.md", "redis.md", "postgres.md", "object-storage.md", "upkeep.md"]},
    {"Trust": ["guarantees.md", "security.md", "sharing.md"]},
    {"Help": ["troubleshooting.md", "errors.md"]},
    {"Commands": ["cli/*.md", "cli/schemas/*.md"]},
    {"Reference": ["names.md", "reference/*.md"]},
    {"Project": "project/*.md"},
]

REFERENCE = {
    "clients": ("Clients", ["client"]),
    "records": ("Checkpoints", ["model", "core.diff", "verbs.lineage"]),
    "runs": ("Runs", ["session", "verbs.interrupts"]),
    "workspace": ("The workspace", ["workspace"]),
    "state": ("State as in PyTorch", ["state"]),
    "together": ("Working together", ["verbs.handoff", "verbs.events"]),
    "upkeep": ("Upkeep", ["verbs.prune", "verbs.verify", "verbs.bundle", "stores.base"]),
    "values": ("Values", ["core.kinds", "core.raw"]),
    "errors": ("Errors", ["errors"]),
}
"""Pages of what ``holdfast`` itself has, by where it is defined."""
MODULES = {
    "client-groups": ("Groups of verbs", "holdfast.client"),
    **{each: (each, f"holdfast.adapters.{each}") for each in ("portable", *FRAMEWORKS)},
    "runtime": ("The runtime", "holdfast.runtime"),
    "state-more": ("State: what its methods return", "holdfast.state"),
    "stores": ("Stores, and one of your own", "holdfast.stores"),
    "testing": ("For tests of a store", "holdfast.testing"),
}
"""Pages of other public modules: what they have beyond ``holdfast``."""

LINK = re.compile(r"(\]\()(?!\w+:|#|/)([^)\s#]+)")
FENCE = re.compile(r"^( *)(`{3,}).*?^\1\2`*$", re.MULTILINE | re.DOTALL)


class Doctests(Preprocessor):
    """Examples of docstrings are code, not quotations."""

    def run(self, lines: list[str]) -> list[str]:
        """Put a fence around each."""
        made: list[str] = []
        inside = False
        for line in [*lines, ""]:
            if not inside and line.startswith(">>> "):
                made.append("```pycon")
                inside = True
            elif inside and not line.strip():
                made.append("```")
                inside = False
            made.append(line)
        return made


class DoctestExtension(Extension):
    """Brings it to Markdown, before fences are looked for."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register it."""
        md.preprocessors.register(Doctests(md), "doctests", 28)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Read examples of docstrings as what they are."""
    config.markdown_extensions.append(DoctestExtension())  # type: ignore[arg-type]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Bring in what does not lie in docs/."""
    for path, place in BESIDE.items():
        files.append(File.generated(config, place, content=(ROOT / path).read_text("utf-8")))
    for path in sorted((ROOT / "examples").rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        files.append(File.generated(config, place, content=path.read_text("utf-8")))
    for place, text in {**reference(), **folders(files)}.items():
        files.append(File.generated(config, place, content=text))
    config.nav = menu([file.src_uri for file in files.documentation_pages()])
    return files


def folders(files: Files) -> dict[str, str]:
    """A page for each folder of files that has none: browsers show no folders."""
    listed: dict[PurePosixPath, list[str]] = {}
    for path in sorted(file.src_uri for file in files if file.src_uri.endswith(".json")):
        listed.setdefault(PurePosixPath(path).parent, []).append(PurePosixPath(path).name)
    pages = {}
    for folder, names in listed.items():
        lines = "\n".join(f"- [{name}]({name})" for name in names)
        pages[f"{folder}/README.md"] = f"# {folder.name.capitalize()}\n\n{lines}\n"
    return pages


def reference() -> dict[str, str]:
    """The pages of the reference; names that have no page of their own share the last."""
    left = {home: sorted(names) for home, names in holdfast._homes.items()}
    pages = {}
    for page, (title, homes) in REFERENCE.items():
        names = [name for home in homes for name in left.pop(home)]
        blocks = "\n".join(f"::: holdfast.{name}\n" for name in names)
        pages[f"reference/{page}.md"] = f"# {title}\n\n{blocks}"
    left.pop("_version")
    if left:
        blocks = "\n".join(f"::: holdfast.{name}\n" for names in left.values() for name in names)
        pages["reference/more.md"] = f"# More\n\n{blocks}"
    for page, (title, module) in MODULES.items():
        names = [name for name in public_names(module) if name not in dir(holdfast)]
        blocks = "\n".join(f"::: {module}.{name}\n" for name in names)
        about = f"::: {module}\n    options:\n      members: false\n"
        pages[f"reference/{page}.md"] = f"# {title}\n\n{about}\n{blocks}"
    return pages


def public_names(module: str) -> list[str]:
    """What a module says is public, read from its source: its framework may not be installed."""
    path = ROOT.joinpath("src", *module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            with contextlib.suppress(ValueError):
                return list(ast.literal_eval(node.value))
    return list(vars(import_module(module))["__all__"])  # it is computed


def menu(pages: list[str]) -> list[dict[str, Any]]:
    """Every page once, in the order of MENU; what is not named there comes at the end."""
    left = sorted(pages, key=lambda page: (not page.endswith("README.md"), page))
    made = []
    for entry in MENU:
        ((title, wanted),) = entry.items()
        if isinstance(wanted, str) and "*" not in wanted:
            left.remove(wanted)
            made.append(entry)
            continue
        patterns = [wanted] if isinstance(wanted, str) else wanted
        found = [page for each in patterns for page in left if PurePosixPath(page).match(each)]
        left = [page for page in left if page not in found]
        if found:
            made.append({title: found})
    return [*made, {"More": left}] if left else made


def on_page_markdown(markdown: str, page: Any, config: MkDocsConfig, files: Files) -> str:
    """Turn links between files of the repository into links between pages of the site."""
    here = page.file.src_uri
    sources = {place: path for path, place in BESIDE.items()}
    source = sources.get(here, f"docs/{here}")
    folder = PurePosixPath(source).parent.as_posix()

    def turned(match: re.Match[str]) -> str:
        target = normpath(f"{folder}/{match[2]}")
        if (ROOT / target).is_dir():
            target = f"{target}/README.md"
        place = BESIDE.get(target) or target.removeprefix("docs/")
        return match[1] + relpath(place, PurePosixPath(here).parent.as_posix())

    return outside_fences(markdown, lambda text: LINK.sub(turned, text))


def outside_fences(markdown: str, turn: Any) -> str:
    """Apply a function to all that is not code."""
    parts, end = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [turn(markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, turn(markdown[end:])])
