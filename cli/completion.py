"""`tofu completion`: what makes a shell complete the command."""

from __future__ import annotations

import click

from .options import examples

SHELLS = ("bash", "zsh", "fish")


@click.command(
    "completion",
    epilog=examples(
        'eval "$(tofu completion bash)"                    # in ~/.bashrc',
        'eval "$(tofu completion zsh)"                     # in ~/.zshrc',
        "tofu completion fish > ~/.config/fish/completions/tofu.fish",
    ),
)
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print what makes SHELL complete commands, options, and names of operators, models and methods."""
    from click.shell_completion import get_completion_class

    from . import main

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(main, {}, "tofu", "_TOFU_COMPLETE").source())
