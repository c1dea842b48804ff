"""The command starts quickly: it imports what it needs and nothing else."""

from tests.cli.kit import Holdfast

HEAVY = {
    *("asyncio", "langgraph", "langchain_core", "numpy", "pandas", "pydantic", "redis", "psycopg"),
    *("mcp", "jsonschema", "concurrent", "multiprocessing", "http", "email"),
}
OTHERS_AT_MOST = 100
OWN_AT_MOST = 107
"""Files of one idea each cost little; what they import from elsewhere costs much."""


def imported(holdfast: Holdfast, *arguments: str) -> set[str]:
    """The modules that a command imports, beyond those of bare Python."""
    script = (
        "import sys; bare = set(sys.modules); from holdfast.cli import main; "
        f"main({list(arguments)!r}); print('imported', *sys.modules.keys() - bare)"
    )
    done = holdfast.within(script)
    assert done.code == 0, done.err
    return set(done.out.splitlines()[-1].split()[1:])


def test_the_version_is_told_without_importing_anything(holdfast: Holdfast) -> None:
    modules = imported(holdfast, "--version")

    assert "argparse" not in modules
    assert not [name for name in modules if name.startswith("holdfast.core")]
    assert len(modules) <= 45


def test_log_imports_no_framework_and_few_modules(project: Holdfast) -> None:
    modules = imported(project, "log", "fix-42")

    assert not modules & HEAVY
    for part in ("client", "verbs", "session", "workspace", "adapters"):
        assert not {name for name in modules if name.startswith(f"holdfast.{part}")}
    own = {name for name in modules if name.startswith("holdfast")}
    assert len(modules - own) <= OTHERS_AT_MOST
    assert len(own) <= OWN_AT_MOST


def test_a_command_imports_no_other_command(project: Holdfast) -> None:
    modules = imported(project, "log", "fix-42")

    used = {name for name in modules if name.startswith("holdfast.cli.commands.")}
    assert used == {"holdfast.cli.commands.log"}
    assert "holdfast.cli.output.json_schemas" not in modules
