"""`tofu completion`: print the script with which a shell completes the command."""

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
    """Print the script with which SHELL completes commands, options, and names of operators and models."""
    from click.shell_completion import get_completion_class

    from . import main

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(main, {}, "tofu", "_TOFU_COMPLETE").source())
