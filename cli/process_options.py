"""`--processes` and `--distributed` on the command line: one process for each device."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from .number_ranges import FiniteRange, IntegerRange
from .options import MOST_WORKERS

if TYPE_CHECKING:
    from ..runtime.distributed.processes import Processes


@dataclass(frozen=True, slots=True)
class ProcessOptions:
    """How a command runs in several processes."""

    processes: int | None
    """The number of processes to start on this machine; None if none are started."""

    distributed: bool
    """Whether this process is one of several that others have started."""

    transport: str
    """How messages cross between processes."""

    timeout_seconds: float
    """The time after which a silent process is lost."""

    @property
    def several(self) -> bool:
        """Tell whether the command runs in several processes."""
        return self.distributed or self.processes is not None

    def start(self, context: click.Context) -> None:
        """Start the processes if they are wanted and this is not one of them, and exit as the first one did.

        Raises UsageError if both are asked for, or neither and options that need one of them.
        """
        if not self.several:
            for option in ("transport", "timeout"):
                if context.get_parameter_source(option) is click.core.ParameterSource.COMMANDLINE:
                    raise click.UsageError(
                        f"--{option} is for several processes; give --processes or --distributed as well, or "
                        "leave it out"
                    )
        from ..runtime.distributed.launch import end_with_parent, launch, launched

        if self.processes is None:
            return
        if self.distributed:
            raise click.UsageError(
                "--processes starts processes, and --distributed is for those that torchrun starts"
            )
        if launched(os.environ):
            end_with_parent(os.environ)
            return
        context.exit(launch([sys.executable, "-m", "tofu", *sys.argv[1:]], self.processes))

    def join(self, context: click.Context, workers: int, planned: bool, device: str) -> Processes:
        """Join the other processes, whose workers run on the same kind of device.

        `workers` are those of all processes. If nobody named their number, each process has one. Raises
        UsageError if they do not divide evenly.
        """
        from ..runtime.distributed.processes import distributed
        from ..runtime.distributed.rendezvous import process_count

        count = process_count(os.environ)
        given = context.get_parameter_source("workers") is click.core.ParameterSource.COMMANDLINE
        total = workers if given or planned else count
        if total % count:
            remedy = "make a plan for" if planned and not given else "give --workers"
            raise click.UsageError(
                f"{total} workers do not divide evenly among {count} processes; {remedy} a multiple of "
                f"{count}, or start another number of processes"
            )
        return distributed(
            workers_each=total // count,
            device=device,
            transport=self.transport,
            timeout_seconds=self.timeout_seconds,
        )


def process_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the options of processes, as one `run_in`."""

    @wraps(command)
    def gathered(
        processes: int | None, distributed: bool, transport: str, timeout: float, **others: Any
    ) -> None:
        command(run_in=ProcessOptions(processes, distributed, transport, timeout), **others)

    for option in (
        click.option(
            "--timeout",
            type=FiniteRange(1),
            default=60.0,
            show_default=True,
            help="Seconds without a sign of life after which a process is lost.",
        ),
        click.option(
            "--transport",
            type=click.Choice(["tcp", "gloo", "nccl"]),
            default="tcp",
            show_default=True,
            help="How messages cross between processes; gloo needs torch, and nccl a card for each process.",
        ),
        click.option(
            "--distributed",
            is_flag=True,
            help="This is one of several processes, which torchrun or a scheduler started.",
        ),
        click.option(
            "--processes",
            type=IntegerRange(1, MOST_WORKERS),
            help="Start this number of processes on this machine; each runs its part of the workers.",
        ),
    ):
        gathered = option(gathered)
    return gathered
