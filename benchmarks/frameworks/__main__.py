"""Measure bytes: ``python -m benchmarks.frameworks [--steps N] [--only strands,crewai] [--write]``.

Each framework is measured by the interpreter that has it: ``make bench-frameworks`` names both.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from benchmarks.frameworks.sizes import Sizes
from benchmarks.measure import BYTES
from benchmarks.table import FRAMEWORKS_END, FRAMEWORKS_START, amount, write_readme
from holdfast.adapters.frameworks import FRAMEWORKS

MEASURED = sorted(FRAMEWORKS.keys() - {"langgraph"})
"""LangGraph is measured with the other benchmarks."""
APART = {"crewai"}


def main() -> None:
    """Measure all of them, or one in this very process."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.frameworks", description=__doc__)
    parser.add_argument("--steps", type=int, default=100, help="of each agent (%(default)s)")
    parser.add_argument("--only", default=",".join(MEASURED), help="some of them, by comma")
    parser.add_argument("--one", metavar="NAME", help=argparse.SUPPRESS)
    parser.add_argument("--write", action=argparse.BooleanOptionalAction, default=None)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(asdict(measured(options.one, options.steps))))
        return
    wanted = options.only.split(",")
    report = rendered({name: asked(name, options.steps) for name in wanted}, options.steps)
    print(report)
    is_whole = wanted == MEASURED and options.steps == 100
    if is_whole if options.write is None else options.write:
        write_readme(report, FRAMEWORKS_START, FRAMEWORKS_END)
        print("benchmarks/README.md rewritten", file=sys.stderr)


def measured(name: str, steps: int) -> Sizes:
    """Measure one framework here."""
    module = import_module(f"benchmarks.frameworks.{name}")
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        sizes: Sizes = asyncio.run(module.sizes(steps, Path(directory)))
    return sizes


def asked(name: str, steps: int) -> tuple[Sizes, str]:
    """Have one framework measured by the interpreter that has it; also returns its version."""
    variable = "HOLDFAST_PYTHON_B" if name in APART else "HOLDFAST_PYTHON_A"
    python = os.environ.get(variable, sys.executable)
    needed = FRAMEWORKS[name].package
    script = f"from importlib.metadata import version; print(version({needed!r}))"
    found = version(needed) if python == sys.executable else _output([python, "-c", script])
    command = [python, "-W", "ignore", "-m", "benchmarks.frameworks", "--one", name]
    told = _output([*command, "--steps", str(steps)])
    return Sizes(**json.loads(told.splitlines()[-1])), found.strip()


def _output(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def rendered(found: dict[str, tuple[Sizes, str]], steps: int) -> str:
    """Return the table."""
    lines = [
        f"Bytes kept after {steps} steps, on SQLite for Holdfast.",
        "",
        "| framework | Holdfast | its own | ratio | its own means, and what to know |",
        "|---|---|---|---|---|",
    ]
    for name, (sizes, release) in found.items():
        ratio = f"{sizes.ours / sizes.theirs:.3f}" if sizes.theirs else "—"
        about = sizes.peer + (f"; {sizes.note}" if sizes.note else "")
        lines.append(
            f"| {name} {release} | {amount(sizes.ours, BYTES)} | {amount(sizes.theirs, BYTES)} "
            f"| {ratio} | {about} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
