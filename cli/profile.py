"""`tofu profile`: measure this machine's processor or cards on the programs of models."""

from __future__ import annotations

from pathlib import Path

import click

from ..support.wording import counted
from .options import WorkerCounts, examples, json_option, method_option, model_candidates
from .planned import Planned, plan_in, planned_options
from .say import say


@click.command(
    "profile",
    epilog=examples(
        "tofu profile lstm --batch 32 --save here.yaml",
        "tofu profile mlp lenet --workers 1,2 --method data-parallel --save here.yaml",
        "tofu profile lstm --batch 32 --workers 1 --device gpu --save box.yaml",
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
@method_option
@planned_options
@json_option
def command(
    targets: tuple[str, ...],
    save: Path,
    workers: tuple[int, ...] | None,
    device: str,
    method: str,
    given: Planned,
    as_json: bool,
) -> None:
    """Run the programs of every MODEL, time their instructions, and keep the times for `tofu simulate`.

    Each MODEL is partitioned over every number of workers, and runs for some iterations on the engine of
    the device. PLAN is a plan file, which has its own number. Instructions of the same kind and sizes are
    measured once, so a second run measures nothing.
    """
    from ..api import partition
    from ..partitioner import lower
    from ..reports.files import check_writable
    from ..runtime.profiling import Profiler, hardware_of
    from .json_output import print_json

    check_writable(save)
    profiler = Profiler(save, hardware_of(device))
    counts = workers or (len(profiler.machine.devices),)
    rows = []
    for target in targets:
        plan = plan_in(target)
        for count in counts if plan is None else (plan.workers,):
            graph = given.graph_of(target) if plan is None else given.graph(plan, None)
            added = profiler.add(lower(graph, plan or partition(graph, count, method)))
            rows.append(
                {"model": graph.name, "workers": count, "measured": added.measured, "known": added.known}
            )
            if not as_json:
                say(
                    f"{target} on {counted(count, 'worker')}: {added.measured} measured, "
                    f"{added.known} known before"
                )
    if as_json:
        print_json({"machine": profiler.machine.name, "programs": rows})
    else:
        say(f"{profiler.machine.name} in {save}, its times in {profiler.profile_path}")
