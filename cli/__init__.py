"""The `tofu` command. Each subcommand is a module of this folder, imported when it is called."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

from ..errors import TofuError
from . import ending

COMMANDS = ("audit", "describe", "diff", "explain", "models", "operators", "plan", "train", "verify")


class _Commands(click.Group):
    """Subcommands by module name; every `TofuError` ends as one message."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f".{cmd_name}", __package__).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS:
            import difflib

            close = difflib.get_close_matches(args[0], COMMANDS, 1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(COMMANDS)}."
            ctx.fail(f"no command {args[0]!r}{hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            done = super().invoke(ctx)
            sys.stdout.flush()
        except TofuError as error:
            raise ending.Mistake(str(error)) from error
        except KeyboardInterrupt as error:
            raise ending.Interrupted("") from error
        except BrokenPipeError:
            ending.leave_closed_pipe()
        except OSError as error:
            raise ending.of_file(error) from error
        return done


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tofu")
def main() -> None:
    """Train models too large for one device: partition every operator and tensor over several workers."""
