"""Write the page docs/commands.md from the commands: `python -m tofu.cli.manual > docs/commands.md`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from . import COMMANDS, main
from .ending import STATUSES

HEAD = """# Commands

`tofu COMMAND --help` prints the same in a terminal. A mistake ends in one message on standard error, never in
a traceback. With `--json` standard output is JSON only, and everything else goes to standard error.

| exit status | meaning |
|---|---|
"""

ENVIRONMENT = """
| variable | effect |
|---|---|
| `NO_COLOR` | not empty: no colours |
| `FORCE_COLOR` | not empty: colours in pipes too, as for `less -R`; bars stay off there |
| `COLUMNS` | the width of tables; else that of the terminal, and 160 in files and pipes |
| `TERM` | `dumb`: no colours and no bars |

On a terminal long work shows a bar; elsewhere it prints a plain line now and then. Output may be piped:
`tofu operators | head` ends when `head` has enough.

## Completion

`eval "$(tofu completion bash)"` in `~/.bashrc` makes Tab complete commands, options, models, operators,
search methods, machines, optimizers and metrics; `zsh` and `fish` likewise. Bash needs version 4.4.
"""

SHORT = {"INTEGER": "N", "NUMBER": "X", "DIRECTORY": "FOLDER"}
"""Values of options as the page names them, if the parser's name for them is long."""


def page() -> str:
    """Return every command with its options and examples, the exit statuses and the variables of the
    environment.
    """
    statuses = "\n".join(f"| {status} | {meaning} |" for status, meaning in STATUSES.items())
    sections = "\n".join(_section(name) for name in COMMANDS)
    return f"{HEAD}{statuses}\n{ENVIRONMENT}\n{sections}"


def _section(name: str) -> str:
    with click.Context(main, info_name="tofu") as parent:
        command = main.get_command(parent, name)
        assert command is not None
        context = click.Context(command, parent, name)
    usage = " ".join(["tofu", name, *command.collect_usage_pieces(context)])
    text = inspect.cleandoc(command.help or "")
    options = [each for each in command.params if isinstance(each, click.Option)]
    rows = "\n".join(_row(option, context) for option in options)
    table = f"| option | meaning | default |\n|---|---|---|\n{rows}\n\n" if options else ""
    return (
        f"## tofu {name}\n\n{text}\n\n    {usage}\n\n"
        f"{table}```sh\n" + "\n".join(example_lines(command)) + "\n```\n"
    )


def example_lines(command: click.Command) -> Iterator[str]:
    """Return the examples at the end of a command's help."""
    return (line.strip() for line in (command.epilog or "").splitlines() if line.startswith("  "))


def _row(option: click.Option, context: click.Context) -> str:
    flags = ", ".join(f"`{flag}`" for flag in option.opts)
    metavar = option.make_metavar(context)
    value = "" if option.is_flag else f" {SHORT.get(metavar, metavar)}"
    default = f"`{option.default}`" if option.show_default and option.default is not None else ""
    cells = (f"{flags}{value}", option.help or "", default)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


if __name__ == "__main__":
    click.echo(page(), nl=False)
