"""``holdfast doctor``: is everything here that is needed?"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Literal

from holdfast._version import __version__
from holdfast.adapters.frameworks import FRAMEWORKS
from holdfast.cli.access.opening import location_of, open_location
from holdfast.cli.commands.doctor_servers import ask
from holdfast.cli.exits import FAILED, OK, code_of
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import age, many, size
from holdfast.cli.parsing import Parser
from holdfast.coding_agents.hook_log import HookLog
from holdfast.errors import HoldfastError
from holdfast.stores.discovery import StoreLocation
from holdfast.system.terminal_text import clean

if TYPE_CHECKING:
    from holdfast.client import SyncClient

NEEDED = ("ormsgpack", "xxhash", "zstandard")
OPTIONAL = ("psycopg", "redis", "jsonschema")
_LITTLE_ROOM = 200 * 10**6
_SKEW = timedelta(seconds=5)
_OLD = timedelta(days=7)
_PROBLEMS = 5
"""So many that hooks noted are shown, those that came last."""

Verdict = Literal["ok", "warning", "failed"]


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    verdict: Verdict
    detail: str


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "Ends with 0 if nothing failed; warnings do not count. If the store cannot be opened, "
        "with the code\nthat says why.",
        "holdfast doctor",
        "holdfast doctor --store redis://localhost --json",
    )
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Look at everything."""
    checks = [*_program(), *_packages(), *_hooks()]
    code = OK
    try:
        location = location_of(options)
        checks.append(Check("store", "ok", f"{location.shown} (from {location.source})"))
        checks += _permissions(location)
        checks += [Check(*found) for found in ask(location)]
        with open_location(location) as client:
            checks += _store(client)
    except HoldfastError as error:
        code = code_of(error)
        checks.append(Check("store", "failed", str(error)))
    if code == OK and any(check.verdict == "failed" for check in checks):
        code = FAILED
    if terminal.json:
        terminal.emit({"ok": code == OK, "checks": [asdict(check) for check in checks]})
        return code
    style = {"ok": "good", "warning": "warn", "failed": "bad"}
    for check in checks:
        mark = terminal.paint(f"{check.verdict:<7}", style[check.verdict])
        terminal.line(f"{mark}  {check.name:<12} {clean(check.detail)}")
    return code


def _program() -> Iterator[Check]:
    is_new = sys.version_info >= (3, 11)
    yield Check("holdfast", "ok", __version__)
    yield Check(
        "python",
        "ok" if is_new else "failed",
        f"{platform.python_version()} on {platform.system()} {platform.machine()}"
        + ("" if is_new else ": 3.11 or newer is needed"),
    )


def _packages() -> Iterator[Check]:
    for name in NEEDED:
        found = _version(name)
        detail = found or f"is missing: pip install {name}"
        yield Check(name, "ok" if found else "failed", detail)
    there = [f"{name} {found}" for name in OPTIONAL if (found := _version(name))]
    missing = [name for name in OPTIONAL if not _version(name)]
    detail = ", ".join(there) or "none"
    yield Check("optional", "ok", detail + (f"; not here: {', '.join(missing)}" if missing else ""))
    frameworks = [each.package for each in FRAMEWORKS.values()]
    there = [f"{name} {found}" for name in frameworks if (found := _version(name))]
    yield Check("frameworks", "ok", ", ".join(there) or "none")


def _hooks() -> Iterator[Check]:
    """What hooks of coding agents noted here; nothing where there are none."""
    report = HookLog.of(os.curdir).report()
    now = datetime.now(UTC)
    for each in report.arrived:
        came = f"{each.program}: {many(each.count, 'event')}, {each.event} {age(each.at, now)}"
        yield Check("hook", "ok", came)
    for problem in report.problems[:_PROBLEMS]:
        often = f"{many(problem.count, 'time')}, last {age(problem.last, now)}"
        is_old = now - problem.last > _OLD
        told = f"{problem.program} ({often}): {problem.text}"
        yield Check("hook", "ok" if is_old else "warning", told)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _permissions(location: StoreLocation) -> Iterator[Check]:
    path = location.path
    if path is None:
        return
    folder = path if path.is_dir() else path.parent
    if not folder.exists():
        return
    for each in {folder, path}:
        if each.exists() and not os.access(each, os.W_OK):
            yield Check("permissions", "failed", f"{each} may not be written to")
            return
    shared = path.exists() and path.stat().st_mode & 0o022
    if shared:
        yield Check("permissions", "warning", f"others may write to {path}: chmod go-w {path}")
    else:
        yield Check("permissions", "ok", f"{folder} may be written to")
    free = shutil.disk_usage(folder).free
    little = free < _LITTLE_ROOM
    yield Check("disk", "warning" if little else "ok", f"{size(free)} free")


def _store(client: SyncClient) -> Iterator[Check]:
    from holdfast.stores.capabilities import concerns_of

    stats = client.stats()
    yield Check(
        "reachable",
        "ok",
        f"{client.store.name}: {many(stats.checkpoints, 'checkpoint')}, {size(stats.stored_bytes)}",
    )
    for concern in concerns_of(client.store):
        yield Check("server", "warning", concern)
    newest = client.find(limit=1)
    now = datetime.now(UTC)
    if newest and newest[0].created_at > now + _SKEW:
        ahead = newest[0].created_at - now
        yield Check(
            "clock",
            "warning",
            f"the newest checkpoint is {ahead} ahead of this machine's clock: set it (NTP), "
            "leases and ages depend on it",
        )
    else:
        yield Check("clock", "ok", f"{now:%Y-%m-%d %H:%M:%S} UTC, not behind the store")
