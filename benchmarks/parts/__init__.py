"""The parts of a run by the name `--only` takes, in the order they run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from benchmarks.measure import Results
from benchmarks.parts import fork, graph, imports, run, s4, s5, steps, workspace
from benchmarks.settings import Settings

Part = Callable[[Settings, Results], Awaitable[None]]

PARTS: dict[str, Part] = {
    "S1": steps.s1,
    "S2": steps.s2,
    "S2-long": steps.s2_long,
    "S2-typed": steps.s2_typed,
    "S2-redis": steps.s2_redis,
    "S2-postgres": steps.s2_postgres,
    "S3": steps.s3,
    "S3-redis": steps.s3_redis,
    "S3-postgres": steps.s3_postgres,
    "S4": s4.run,
    "S5": s5.run,
    "LG": graph.run,
    "LG-postgres": graph.run_postgres,
    "run": run.run,
    "W-1": workspace.w1,
    "W-2": workspace.w2,
    "W-3": workspace.w3,
    "W-4": workspace.w4,
    "fork": fork.run,
    "import": imports.run,
}
