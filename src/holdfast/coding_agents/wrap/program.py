"""Any program under ``holdfast wrap``: it tells nothing, so there are files alone."""

from __future__ import annotations

from holdfast.coding_agents.programs import WRAPPED, Program

PROGRAM = Program(name=WRAPPED, title="holdfast wrap", command="", paths={}, moments={})
