"""`tofu profile`: measure this machine's processor or cards on the programs of models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..support.wording import counted
from .options import WorkerCounts, examples, json_option, method_option, model_candidates
from .output_files import check_apart, model_path
from .planned import Planned, plan_in, planned_options
from .process_options import ProcessOptions, process_options
from .say import say

if TYPE_CHECKING:
    from ..dataflow.graph import Graph
    from ..partitioner import Plan
    from ..programs.program import PartitionedGraph
    from ..runtime.profiling import Added, Profiler


@click.command(
    "profile",
    epilog=examples(
        "tofu profile lstm --batch 32 --save here.yaml",
        "tofu profile mlp lenet --workers 1,2 --method data-parallel --save here.yaml",
        "tofu profile lstm --batch 32 --workers 1 --device gpu --save box.yaml",
        "tofu profile lstm --batch 32 --processes 2 --save processes.yaml",
        "tofu simulate lstm --batch 32 --workers 2 --machine here.yaml    # with measured times",
    ),
)
@click.argument("targets", metavar="MODEL|PLAN...", nargs=-1, required=True, shell_complete=model_candidates)
@click.option(
    "--save",
    type=click.Path(path_type=Path),
    required=True,
    help="The machine file; it is written if it does not exist. Times are kept next to it.",
)
@click.option(
    "--workers",
    "-w",
    type=WorkerCounts(1),
    help="Numbers of workers, such as 1,2; that of processors or cards if left out.",
)
@click.option(
    "--device",
    type=click.Choice(["cpu", "gpu"]),
    default="cpu",
    show_default=True,
    help="What is measured: this machine's processor or its cards.",
)
@process_options
@method_option
@planned_options
@json_option
@click.pass_context
def command(
    context: click.Context,
    targets: tuple[str, ...],
    save: Path,
    workers: tuple[int, ...] | None,
    device: str,
    run_in: ProcessOptions,
    method: str,
    given: Planned,
    as_json: bool,
) -> None:
    """Run the programs of every MODEL, time their instructions, and keep the times for `tofu simulate`.

    Each MODEL is partitioned over every number of workers, and runs for some iterations on the engine of
    the device. PLAN is a plan file, which has its own number. Instructions of the same kind and sizes are
    measured once, so a second run measures nothing. With --processes, or --distributed, each worker has a
    process, and messages are timed as well.
    """
    if run_in.several and device != "cpu":
        raise click.UsageError("times of processes are measured with --device cpu")
    if run_in.several and workers is not None:
        raise click.UsageError("each process has one worker; leave out --workers")
    for target in targets:
        check_apart({"MODEL or PLAN": model_path(target)}, save=save)
    run_in.start(context)
    from ..partitioner.methods.method import find_method
    from .json_output import print_json

    find_method(method)
    read = [_read(target, given) for target in targets]
    with _measuring(run_in, save, device) as measuring:
        rows = []
        for target, program in _programs(read, workers or measuring.workers, method):
            added = measuring.add(program)
            row = {"model": program.graph.name, "workers": program.workers}
            rows.append({**row, "measured": added.measured, "known": added.known})
            if measuring.profiler is not None and not as_json:
                say(
                    f"{target} on {counted(program.workers, 'worker')}: {added.measured} measured, "
                    f"{added.known} known before"
                )
        if measuring.profiler is None:
            return
        machine = measuring.profiler.machine.name
        if as_json:
            print_json({"machine": machine, "programs": rows})
        else:
            say(f"{machine} in {save}, its times in {measuring.profiler.profile_path}")


@dataclass(frozen=True)
class _Measuring:
    """Measures programs, in one process or in several."""

    add: Callable[[PartitionedGraph], Added]
    """Measures a program."""

    workers: tuple[int, ...]
    """The numbers of workers, if nobody names any."""

    profiler: Profiler | None
    """The machine file and its profile; None in all processes but the first."""


@contextmanager
def _measuring(run_in: ProcessOptions, save: Path, device: str) -> Iterator[_Measuring]:
    from ..reports.files import check_writable
    from ..runtime.profiling import Profiler, hardware_of

    if not run_in.several:
        check_writable(save)
        profiler = Profiler(save, hardware_of(device))
        yield _Measuring(profiler.add, (len(profiler.machine.devices),), profiler)
        return
    from ..runtime.distributed.process_times import ProcessProfiler
    from ..runtime.distributed.processes import distributed

    with distributed(transport=run_in.transport, timeout_seconds=run_in.timeout_seconds) as processes:
        if not processes.number:
            check_writable(save)
        found = ProcessProfiler(processes, save)
        yield _Measuring(found.add, (processes.workers,), found.first)


def _read(target: str, given: Planned) -> tuple[str, Graph, Plan | None]:
    """Return what is measured, its graph, and its plan if it is a plan file. Raises TofuError."""
    plan = plan_in(target)
    return target, given.graph_of(target) if plan is None else given.graph(plan, None), plan


def _programs(
    read: Sequence[tuple[str, Graph, Plan | None]], counts: Sequence[int], method: str
) -> Iterator[tuple[str, PartitionedGraph]]:
    """Yield the programs of models over several numbers of workers, and those of plans over their own."""
    from ..api import partition
    from ..partitioner import lower

    for target, graph, plan in read:
        for count in counts if plan is None else (plan.workers,):
            yield target, lower(graph, plan or partition(graph, count, method))
