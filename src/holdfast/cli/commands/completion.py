"""``holdfast completion``: scripts for shells, which ask the program itself what fits."""

from __future__ import annotations

from argparse import Namespace

from holdfast.cli.exits import OK
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.parsing import Parser

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


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "Completes commands, options, sessions and step names.",
        'eval "$(holdfast completion bash)"   # in ~/.bashrc',
        'eval "$(holdfast completion zsh)"    # in ~/.zshrc, after compinit',
        "holdfast completion fish > ~/.config/fish/completions/holdfast.fish",
    )
    parser.add_argument("shell", choices=sorted(SCRIPTS), metavar="SHELL", help="bash, fish or zsh")
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Print the script."""
    script = SCRIPTS[options.shell]
    if terminal.json:
        terminal.emit({"shell": options.shell, "script": script})
    else:
        terminal.lines(script)
    return OK
