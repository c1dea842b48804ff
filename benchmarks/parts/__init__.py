"""The parts of a run by the name `--only` takes, in the order they run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from benchmarks.measure import Results
from benchmarks.parts import fork, graph, imports, s4, s5, steps
from benchmarks.settings import Settings

Part = Callable[[Settings, Results], Awaitable[None]]

PARTS: dict[str, Part] = {
    "S1": steps.s1,
    "S2": steps.s2,
    "S2-long": steps.s2_long,
    "S2-typed": steps.s2_typed,
    "S3": steps.s3,
    "S4": s4.run,
    "S5": s5.run,
    "LG": graph.run,
    "fork": fork.run,
    "import": imports.run,
}
