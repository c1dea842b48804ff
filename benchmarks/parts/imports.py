"""What `import holdfast` adds to the start of Python."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from time import perf_counter

from benchmarks.contenders import HOLDFAST
from benchmarks.measure import SECONDS, Results
from benchmarks.settings import Settings

PART = "import"


async def run(settings: Settings, results: Results) -> None:
    if find_spec("holdfast") is None:
        results.note(f"{HOLDFAST}: `holdfast` is not installed")
        return
    # Not the package alone, whose names are lazy, but also with a client in hand.
    programs = {
        "import holdfast": "import holdfast",
        "import SyncClient": "from holdfast import SyncClient",
    }
    for _ in range(settings.pick(quick=10, full=30)):
        bare = _start("pass")
        for quantity, program in programs.items():
            results.add(PART, quantity, HOLDFAST, _start(program) - bare, SECONDS)


def _start(program: str) -> float:
    start = perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True)
    return perf_counter() - start
