"""``holdfast completion``: scripts for shells, which ask the program itself what fits."""

from __future__ import annotations

from argparse import REMAINDER, Action, Namespace
from collections.abc import Iterator

from holdfast.cli.access.opening import open_client
from holdfast.cli.commands import COMMANDS, HIDDEN
from holdfast.cli.exits import OK
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.parsing import Parser, parser_of, split
from holdfast.errors import HoldfastError

_BASH = """\
_holdfast() {
    local IFS=$'\\n'
    COMPREPLY=($(compgen -W "$(holdfast __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)" \\
        -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _holdfast holdfast
"""
_ZSH = """\
#compdef holdfast
_holdfast() {
    local -a found
    found=("${(@f)$(holdfast __complete "${words[@]:1:$((CURRENT-1))}" 2>/dev/null)}")
    compadd -a found || _files
}
compdef _holdfast holdfast
"""
_FISH = """\
function __holdfast_complete
    set -l words (commandline -opc) (commandline -ct)
    holdfast __complete $words[2..-1] 2>/dev/null
end
complete -c holdfast -a '(__holdfast_complete)'
"""
SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
_NAMES = 200


def completion(parser: Parser) -> None:
    """Set up the command."""
    parser.explain(
        "Completes commands, options, sessions and step names.",
        'eval "$(holdfast completion bash)"   # in ~/.bashrc',
        'eval "$(holdfast completion zsh)"    # in ~/.zshrc, after compinit',
        "holdfast completion fish > ~/.config/fish/completions/holdfast.fish",
    )
    parser.add_argument("shell", choices=sorted(SCRIPTS), metavar="SHELL", help="bash, fish or zsh")
    parser.set_defaults(run=_completion)


def _completion(options: Namespace, terminal: Terminal) -> int:
    script = SCRIPTS[options.shell]
    if terminal.json:
        terminal.emit({"shell": options.shell, "script": script})
    else:
        terminal.lines(script)
    return OK


def complete(parser: Parser) -> None:
    """Set up the command."""
    parser.add_argument("words", nargs=REMAINDER, help="what was typed, the unfinished word last")
    parser.set_defaults(run=_complete)


def _complete(options: Namespace, terminal: Terminal) -> int:
    *before, word = options.words or [""]
    for each in sorted(set(candidates(before, word))):
        if each.startswith(word):
            terminal.line(each)
    return OK


def candidates(before: list[str], word: str) -> Iterator[str]:
    """What may stand in the place of a word."""
    name, rest = split(before)
    if name is None:
        yield from ("--store", "--help", "--version") if word.startswith("-") else _commands()
        return
    if name not in COMMANDS:
        return
    parser = parser_of(COMMANDS[name])
    option = next((a for a in parser._actions if rest and rest[-1] in a.option_strings), None)
    if option is not None and option.nargs != 0:
        yield from _values(option, rest)
    elif word.startswith("-"):
        for action in parser._actions:
            yield from action.option_strings
    else:
        for action in parser._actions:
            if not action.option_strings:
                yield from _values(action, rest)


def _commands() -> Iterator[str]:
    return (command.name for command in COMMANDS.values() if command.group != HIDDEN)


def _values(action: Action, rest: list[str]) -> Iterator[str]:
    if action.choices is not None:
        yield from map(str, action.choices)
    elif action.metavar in ("SESSION", "ID"):
        yield from _known(rest, with_steps=action.metavar == "ID")


def _known(rest: list[str], with_steps: bool) -> Iterator[str]:
    """Sessions, or names of checkpoints, of the store that is meant; nothing if there is none."""
    store = rest[rest.index("--store") + 1] if "--store" in rest[:-1] else None
    try:
        with open_client(Namespace(store=store)) as client:
            sessions = [each.session_id for each in client.sessions()]
            infos = client.find(limit=_NAMES) if with_steps else []
    except HoldfastError:  # a completion has nobody to tell
        return
    if not with_steps:
        yield from sessions
        return
    yield from ("@", "@-")
    yield from (f"{each}@" for each in sessions)
    yield from (info.step_name for info in infos if info.step_name)
