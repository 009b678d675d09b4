"""The `tofu` command. Each subcommand is a module of this folder, imported when it is called."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from signal import SIGTERM
from typing import Any

import click

from ..errors import TofuError
from ..runtime.interrupts import Terminated, handled, terminate
from . import ending
from .options import examples

COMMANDS = {
    "audit": "Prove and try the strategies and kernels of operators.",
    "completion": "Print a script for completion in a shell.",
    "describe": "Show how an operator can be split, and what each worker reads.",
    "diff": "Compare two plans.",
    "doctor": "Show what this machine has for GPUs, and what is missing.",
    "explain": "Show what a plan chose for a name, and what alternatives cost.",
    "frontier": "Find plans with the least step time for rising memory.",
    "lower": "Print what every worker does, one instruction per line.",
    "models": "List the models that have a name.",
    "operators": "List the operators of the library.",
    "place": "Place whole nodes of a graph with costs on workers.",
    "plan": "Partition a model over workers, and say what it costs.",
    "profile": "Measure this machine's processor on the programs of models.",
    "simulate": "Simulate one iteration of a plan on a machine.",
    "sync": "Plan how each variable is synchronised over data-parallel workers.",
    "train": "Train a model over workers.",
    "verify": "Check a plan file.",
}
"""Every command and what it does; its module is imported when it is called."""

COMPUTING = frozenset({"audit", "doctor", "profile", "train"})
"""The commands that multiply matrices, or say how this machine does."""


class _Commands(click.Group):
    """Subcommands by module name; every `TofuError` ends as one message."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        if cmd_name not in COMPUTING:
            ctx.with_resource(_one_blas_thread())
        command: click.Command = importlib.import_module(f".{cmd_name}", __package__).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS:
            from ..support.wording import suggestion

            hint = suggestion(args[0], COMMANDS, most=1) or f"there are {', '.join(COMMANDS)}."
            ctx.fail(f"{args[0]!r} is not a command; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        ending.replace_what_cannot_be_encoded()
        ending.skip_last_collections()
        with _ends_with_one_message():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        with _ends_with_one_message():
            with handled((SIGTERM,), terminate):
                done = super().invoke(ctx)
            if sys.__stdout__ is not None:  # it is None if the command began with it closed
                sys.stdout.flush()
        return done


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Keep NumPy's BLAS from starting threads, which wait busily for a while after NumPy is imported."""
    name = "OPENBLAS_NUM_THREADS"
    if name in os.environ:
        yield
        return
    os.environ[name] = "1"
    try:
        yield
    finally:
        del os.environ[name]


@contextmanager
def _ends_with_one_message() -> Iterator[None]:
    """Turn an error or a signal into an exit status and one message."""
    try:
        yield
    except TofuError as error:
        raise ending.Mistake(str(error)) from error
    except (KeyboardInterrupt, Terminated) as error:
        raise ending.interrupted(error) from error
    except BrokenPipeError:
        ending.leave_closed_pipe()
    except MemoryError as error:
        raise ending.Mistake(f"there is not enough memory: {error}") from error
    except OSError as error:
        ending.discard_unwritable_output()
        raise ending.of_file(error) from error


def _version(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib import metadata

        try:
            click.echo(f"tofu {metadata.version('tofu')}")
        except metadata.PackageNotFoundError:
            click.echo("tofu, run from a folder without being installed")
        ctx.exit()


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "tofu train mlp                                    # digits, over 8 workers",
        "tofu train wresnet --data cifar-10-batches-py     # your own data",
        "tofu plan wresnet-50-4 --workers 8 --batch 32     # what moves, and what each worker holds",
        "tofu describe Convolution                         # how an operator can be split",
        "tofu train --help                                 # every option, with examples",
    ),
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version."
)
def main() -> None:
    """Train models too large for one device: partition every operator and tensor over several workers.

    A mistake ends in one message and exit status 2. With --json figures come as JSON on standard output.
    """
