"""Tools that run beside each other, one of them first."""

import asyncio
import os
from pathlib import Path

from tests.frameworks.kit import WORLD


async def first_tool_is_recorded() -> None:
    """Wait until the tool that runs beside this one has ended, so that it need not run again."""
    world = os.environ.get(WORLD)
    while world is not None and "run:after_end" not in Path(world).read_text("utf-8"):
        await asyncio.sleep(0.001)
