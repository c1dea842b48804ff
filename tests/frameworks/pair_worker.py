"""A process with one framework, that carries out legs of journeys: a JSON line in, one out.

``python -m tests.frameworks.pair_worker FRAMEWORK``. It lives as long as its input, as importing
a framework takes longer than a leg.
"""

import asyncio
import importlib
import json
import os
import sys
import traceback

from holdfast.testing import crash_points
from tests.frameworks import kit


def main() -> None:
    """Carry out what is asked for, until there is no more."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a framework prints is no answer
    crash_points.install(kit.saving)
    leg = importlib.import_module(f"tests.frameworks.legs.{sys.argv[1]}")
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        try:
            asyncio.run(getattr(leg, name)(*arguments))
            answer = None
        except Exception:
            answer = traceback.format_exc()
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
