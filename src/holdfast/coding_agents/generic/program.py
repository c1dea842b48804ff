"""Any other program, which says everything under the names that ``Told`` has."""

from __future__ import annotations

from dataclasses import fields

from holdfast.coding_agents.programs import Program
from holdfast.coding_agents.told import Moment, Told

PROGRAM = Program(
    name="generic",
    title="another program",
    command="",
    paths={each.name: each.name for each in fields(Told) if each.name != "program"},
    moments={str(moment): moment for moment in Moment},
)
