"""Functions that undo calls, from modules that the user named; stored data never names any."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from holdfast.cli.exits import UsageError
from holdfast.cli.parsing import Parser


def add_import(parser: Parser) -> None:
    """Let a command be given modules."""
    parser.add_argument(
        "--import",
        dest="modules",
        action="append",
        default=[],
        metavar="MODULE",
        help="undo calls with the functions that this module defines",
    )


def imported(modules: Sequence[str]) -> list[Callable[..., Any]]:
    """Return the functions that modules define."""
    from holdfast.session.functions import defined_in

    if modules:
        sys.path.insert(0, "")
    given: list[Callable[..., Any]] = []
    for module in modules:
        try:
            given += defined_in(import_module(module))
        except (ImportError, ValueError) as error:
            raise UsageError(f"--import {module}: {error}") from error
    return given
