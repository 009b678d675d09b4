"""`tofu frontier`: step time against the memory of a worker."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..support.wording import counted
from .options import (
    WorkerCounts,
    examples,
    json_option,
    machine_option,
    method_option,
    model_candidates,
    no_keep_option,
    no_replicate_option,
)
from .output_files import check_apart, machine_path, model_path
from .planned import Planned, planned_options
from .say import say

if TYPE_CHECKING:
    from ..partitioner.methods.frontier import Frontier
    from ..partitioner.plans.origin import PlanOrigin


_POINT = re.compile(r"\d+-\d+")
"""The names of the files of `--save`, without their endings."""


@click.command(
    "frontier",
    epilog=examples(
        "tofu frontier gpt-12-768 --machine dgx-1-v100",
        "tofu frontier gpt-12-768 --machine 2x-dgx-h100 --workers 2,4,8,16 --plot frontier.svg",
        "tofu frontier wresnet-50-4 --machine dgx-1-v100 --memory 2.2GB --save plans",
    ),
)
@click.argument("model", shell_complete=model_candidates)
@machine_option("The machine", required=True)
@click.option(
    "--workers",
    "-w",
    type=WorkerCounts(1),
    default="8",
    show_default=True,
    help="Numbers of workers, such as 2,4,8.",
)
@method_option
@planned_options
@click.option(
    "--memory", help="Leave out plans that take more, such as 12GB, or unlimited. If left out, the machine's."
)
@click.option(
    "--cost-model",
    type=click.Choice(["simulated", "tensoropt"]),
    default="simulated",
    show_default=True,
    help="What times and memory are: simulated, with arenas, or TensorOpt's sums of estimates, printed with "
    "what the same plans take.",
)
@no_replicate_option
@no_keep_option
@click.option(
    "--plot", type=click.Path(path_type=Path), help="Draw time against memory to this .svg or .png file."
)
@click.option(
    "--save",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the plan of every point to this folder, as WORKERS-POINT.json; it must not have such files.",
)
@json_option
def command(
    model: str,
    machine: str,
    workers: tuple[int, ...],
    method: str,
    given: Planned,
    memory: str | None,
    cost_model: str,
    no_replicate: bool,
    no_keep: bool,
    plot: Path | None,
    save: Path | None,
    as_json: bool,
) -> None:
    """Find plans of MODEL of which none beats another one in both step time and memory.

    Times are simulated on the machine, and memory is the largest arena of a worker. Several numbers of
    workers show what more devices bring.
    """
    from ..api import RECOMPUTE, frontier
    from ..machines import load
    from ..partitioner.methods.method import searching_method
    from ..reports import frontier as report
    from ..reports.console import waiting
    from ..reports.drawing.file import check_kind, write_drawing
    from ..reports.drawing.staircase import frontier_drawing
    from ..reports.files import check_folder, check_writable
    from .json_output import print_json

    check_apart({"MODEL": model_path(model), "--machine": machine_path(machine)}, plot=plot, save=save)
    if plot is not None:
        check_kind(plot)
        check_writable(plot)
    if save is not None:
        check_folder(save)
        _check_no_plans(save)
    searching_method(method)
    found = load(machine)
    for count in workers:
        found.check_workers(count)
    source, graph = given.source(model), given.graph_of(model)
    recompute = RECOMPUTE if given.recompute is None and not source.unroll else (1,)
    with waiting("searching plans at several amounts of memory", quiet=as_json):
        frontiers = [
            frontier(
                graph,
                count,
                found,
                memory,
                method,
                recompute,
                keep=not no_keep,
                replicate=not no_replicate,
                cost_model=cost_model,
            )
            for count in workers
        ]
    if as_json:
        print_json(report.facts(graph.name, frontiers))
    else:
        report.show(graph.name, frontiers)
    if plot is not None:
        write_drawing(frontier_drawing(frontiers), plot)
        _say(f"drawing written to {plot}", as_json)
    if save is not None:
        _save(frontiers, source, save)
        _say(f"plans written to {save}", as_json)


def _check_no_plans(folder: Path) -> None:
    """Raise UsageError if a folder has plans that an earlier run may have written."""
    earlier = sorted(path.name for path in folder.glob("*.json") if _POINT.fullmatch(path.stem))
    if earlier:
        raise click.UsageError(
            f"--save {str(folder)!r} has {counted(len(earlier), 'plan')} of an earlier run, such as "
            f"{earlier[0]!r}; name another folder, or remove them"
        )


def _save(frontiers: list[Frontier], source: PlanOrigin, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for each in frontiers:
        for number, point in enumerate(each.points, 1):
            origin = dataclasses.replace(source, recompute=source.recompute * point.recompute)
            plan = dataclasses.replace(point.plan, source=origin)
            plan.save(folder / f"{each.workers}-{number}.json")


def _say(text: str, as_json: bool) -> None:
    if not as_json:
        say(text)
