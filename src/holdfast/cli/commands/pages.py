"""Pages about all commands, written from the parsers themselves."""

from __future__ import annotations

import json
from argparse import SUPPRESS, Action, Namespace
from pathlib import Path

from holdfast.cli.commands import COMMANDS, GROUPS, HIDDEN, Command
from holdfast.cli.exits import MEANINGS, OK
from holdfast.cli.output.json_schemas import SHAPES, document
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.parsing import Parser, parser_of

_OVERVIEW = """\
# The command line

These pages are written by the program itself (`holdfast __pages docs/cli`); a test keeps them so.
[A tour](../tour.md) takes five minutes.

{commands}
## Which store

`--store URL` (or the path of a store that is there), else the environment variable `HOLDFAST_URL`,
else the nearest `.holdfast/` upwards from the current directory, which `holdfast init` makes. A
program that calls `SyncClient.open()` there finds the same. That of another user has to be named.

## Which checkpoint

| written | meant |
|---|---|
| `019a9563e5d2` | the one whose id begins so, with dashes or without; six characters or more |
| `tests-pass` | the newest with that step name |
| `@` | the head of the newest session, or of `--session` |
| `fix-42@`, `coder/fix-42@` | the head of that session |
| `@-`, `@--`, `@~2`, `fix-42@~3`, `019a9563e5d2~1` | so many before |
| `1ef5…` | the checkpoint that LangGraph gave that id |

Ids begin with their time. Listings show that to the millisecond, and more where the store holds
others of the same one: enough to name the checkpoint, here and in a program
(`client.restore("019a9563e5d2")`). What fits several is refused. Where nothing else fits, the
end of an id (`3f9a`), as 0.3 showed it, is looked for among all ids of the store; only the command
line does that. A session is also known by the beginning of its name, or `AGENT/SESSION`.

## Output

Every command takes `--json` and then prints one document ([`watch`](watch.md): one on each line)
whose shape is published in [schemas/](schemas/); fields may be added, none is removed or changes
its meaning. Values of a state are in the typed form: plain JSON, and
`{{"$type": …, "value": …}}` for what JSON has no word for. An error is then `{{"error": …}}` on
standard error ([schema](schemas/error.json)).

Colours appear on a terminal only, and not with `NO_COLOR`; `--color always` asks for them. Long
output is paged on a terminal with `HOLDFAST_PAGER`, `PAGER` or `less -FRX`; `--no-pager` prints it.
On a pipe lines are as long as they are, unless `COLUMNS` is set.

Whatever is printed, also in errors, is safe for a terminal: control characters of names and values
are written as `\\x1b`, and passwords in URLs as `***`. What goes wrong is one line; should it be a
fault of holdfast itself, `HOLDFAST_DEBUG=1` shows where.

Commands that remove or replace something show what they would do and ask. Without a terminal they
need `--yes`.

## Exit codes

| code | in JSON | meaning |
|---|---|---|
{codes}
"""


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Write the pages."""
    for name, text in written().items():
        path = options.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return OK


def written() -> dict[str, str]:
    """Return every page and schema, by its path."""
    files = {"README.md": _overview()}
    for command in shown():
        files[f"{command.name}.md"] = _page(command)
    for name in SHAPES:
        files[f"schemas/{name}.json"] = json.dumps(document(name), indent=2) + "\n"
    return files


def shown() -> list[Command]:
    """Return the commands that users see."""
    return [command for command in COMMANDS.values() if command.group != HIDDEN]


def _overview() -> str:
    parts = []
    for group in GROUPS:
        parts.append(f"## {group[0].upper()}{group[1:]}\n\n| command | |\n|---|---|\n")
        own = [command for command in shown() if command.group == group]
        parts += [f"| [`{each.name}`]({each.name}.md) | {each.summary} |\n" for each in own]
        parts.append("\n")
    codes = [f"| {code} | `{word}` | {says} |" for code, (word, says) in MEANINGS.items()]
    return _OVERVIEW.format(commands="".join(parts), codes="\n".join(codes))


def _page(command: Command) -> str:
    parser = parser_of(command)
    lines = [f"# holdfast {command.name}", "", *(parser.description or "").strip().splitlines(), ""]
    lines += ["```sh", f"{parser.prog} {_usage(parser)}".strip(), "```", ""]
    own = [
        action for action in parser._actions if action.help != SUPPRESS and action.dest != "help"
    ]
    lines += ["| argument | |", "|---|---|"]
    lines += [f"| `{_written(action)}` | {_said(action)} |" for action in own]
    if parser.epilog:
        examples = [line.strip() for line in parser.epilog.splitlines()[1:]]
        lines += ["", "## Examples", "", "```sh", *examples, "```"]
    if command.name in SHAPES:
        lines += ["", f"`--json` prints [this shape](schemas/{command.name}.json)."]
    lines += ["", "[All commands](README.md), how checkpoints are named, and exit codes."]
    return "\n".join(lines) + "\n"


def _usage(parser: Parser) -> str:
    words = []
    for action in parser._actions:
        if not action.option_strings:
            name = str(action.metavar or action.dest.upper())
            words.append(f"[{name}]" if action.nargs in ("?", "*") else name)
    return " ".join(["[OPTIONS]", *words])


def _written(action: Action) -> str:
    if not action.option_strings:
        return str(action.metavar or action.dest).replace("|", "\\|")
    value = ""
    if action.nargs != 0:
        choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else None
        value = " " + (str(action.metavar) if action.metavar else choices or action.dest.upper())
        value = f" [{value[1:]}]" if action.nargs in ("?", "*") else value
    return ", ".join(action.option_strings) + value


def _said(action: Action) -> str:
    return ((action.help or "") % {"default": action.default}).replace("|", "\\|")
