"""`tofu plan`: search for a partition plan and say what it costs."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..support.gc_pause import gc_paused
from . import candidates
from .compared import compared, figures, slow_methods, watched
from .number_ranges import IntegerRange
from .option_groups import GroupedCommand
from .options import (
    Shape,
    WorkersOrAuto,
    accumulate_option,
    check_unroll,
    dtype_option,
    examples,
    json_option,
    machine_option,
    merge_option,
    method_option,
    model_candidates,
    no_keep_option,
    no_replicate_option,
    recompute_option,
    sampling_options,
    shape_option,
    unroll_option,
)
from .output_files import check_apart, machine_path, model_path
from .request import Request, point
from .say import say

if TYPE_CHECKING:
    from ..dataflow.graph import Graph
    from ..models import Model
    from ..partitioner import Fitting, Plan
    from ..programs.memory import MemoryFigures
    from ..simulator.timeline import Timeline


GROUPS = {
    "What is planned": (
        "workers",
        "batch",
        "shapes",
        "optimizer",
        "dtype",
        "accumulate",
        "unroll",
        "recompute",
        "merge",
    ),
    "How plans are searched": (
        "method",
        "no_replicate",
        "no_keep",
        "copy_activations",
        "feed",
        "pins",
        "forbidden",
        "layouts",
        "groups",
        "compare",
    ),
    "Machine, time and memory": ("machine", "objective", "memory", "front"),
    "Methods that draw at random": ("seed", "proposals", "beta", "seconds", "slower"),
    "Output": ("save", "report", "as_json"),
}


@click.command(
    "plan",
    cls=GroupedCommand,
    groups=GROUPS,
    epilog=examples(
        "tofu plan wresnet-50-4 --batch 32 --workers 8",
        "tofu plan recipe:mlp --method exact --save plan.json",
        "tofu plan alexnet --workers 4 --machine p100-node --method flexflow --proposals 500",
        "tofu plan rnn-6-4k --machine dgx-1-v100 --objective time",
        "tofu plan wresnet-50-4 --dtype bfloat16 --accumulate 4 --recompute 8",
        "tofu plan lstm --merge",
        "tofu plan gpt-12-768 --accumulate 8 --unroll --machine dgx-1-v100",
        "tofu plan mlp --compare",
        "tofu plan wresnet-50-4 --report plan.html",
        "tofu plan gpt-12-768 --machine dgx-1-v100 --memory 4GB --workers auto",
        "tofu plan net.json --shape data=32,3,224,224 --memory 12GB",
        "tofu plan wresnet-50-4 --front",
        "tofu plan mlp --json",
    ),
)
@click.argument("model", shell_complete=model_candidates)
@click.option(
    "--workers",
    "-w",
    type=WorkersOrAuto(),
    default="8",
    show_default=True,
    help="Number of workers; auto is the fewest whose plan fits the memory.",
)
@click.option("--batch", "-b", type=IntegerRange(1), help="Batch size; the model's own if left out.")
@shape_option("An input's shape, for graph files and for ONNX files that leave it open.")
@method_option
@sampling_options
@click.option(
    "--groups",
    metavar="NxK",
    help="For --method place: N groups of K workers, which share each operation placed on the group. If left "
    "out, the best numbers are searched for.",
)
@click.option("--compare", is_flag=True, help="Search by every method and print them side by side.")
@click.option(
    "--pin",
    "pins",
    multiple=True,
    metavar="NAME=CHOICE,...",
    help="Fix a choice per step: a tensor's dimensions (fc1_weight=0,0,1), an operator's variables "
    "(fc1.product=n,*,-); * is free, - replicates, one entry stands for all steps.",
)
@click.option(
    "--forbid",
    "forbidden",
    multiple=True,
    metavar="NAME:LABEL",
    help="Never split a tensor along a dimension (data:1), an operator along a variable (fc1.product:k).",
)
@click.option(
    "--layouts",
    type=click.Path(path_type=Path),
    help="YAML or JSON file of layouts, or of a whole plan, for --method manual.",
)
@machine_option("Report traffic over the links of this machine")
@click.option(
    "--objective",
    type=click.Choice(["bytes", "time", "step-time"]),
    default="bytes",
    show_default=True,
    help="What to minimise; time is that of the traffic over the machine's links, step-time an iteration's.",
)
@no_replicate_option
@no_keep_option
@click.option(
    "--copy-activations",
    is_flag=True,
    help="Let activations that many operations read have copies, as weights may; the search takes longer.",
)
@click.option(
    "--feed",
    type=click.Choice(["batch", "anywhere"]),
    default="batch",
    show_default=True,
    help="Where data and labels arrive: split by batch, or wherever the plan wants them, without a byte.",
)
@click.option(
    "--memory",
    help="Memory of each device, such as 12GB, or unlimited. If left out, what each worker's device has; "
    "without a machine, 15% more than plans need that replicate nothing.",
)
@click.option(
    "--front",
    is_flag=True,
    help="Also print bytes against memory, or the time if that is minimised; it takes several times as long.",
)
@click.option(
    "--optimizer",
    shell_complete=candidates.of(candidates.optimizers),
    help="The optimizer whose updates the graph contains: sgd, adam, adamw or rmsprop; if left out, that of "
    "the recipe, or sgd.",
)
@dtype_option(default="float32")
@accumulate_option(default=1)
@unroll_option(default=False)
@recompute_option(default=1)
@merge_option
@click.option("--save", type=click.Path(path_type=Path), help="Write the plan to this file.")
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    help="Write an HTML page that shows the plan and compares the quick methods with it.",
)
@json_option
@gc_paused()
def command(
    model: str,
    workers: int | None,
    batch: int | None,
    shapes: dict[str, Shape],
    method: str,
    seed: int,
    proposals: int | None,
    beta: float | None,
    seconds: float | None,
    slower: float,
    groups: str | None,
    compare: bool,
    pins: tuple[str, ...],
    forbidden: tuple[str, ...],
    layouts: Path | None,
    machine: str | None,
    objective: str,
    no_replicate: bool,
    no_keep: bool,
    copy_activations: bool,
    feed: str,
    memory: str | None,
    front: bool,
    optimizer: str | None,
    dtype: str,
    accumulate: int,
    unroll: bool,
    recompute: int,
    merge: bool,
    save: Path | None,
    report: Path | None,
    as_json: bool,
) -> None:
    """Partition MODEL's training graph over workers and print the plan.

    MODEL is a name that `tofu models` lists, a file of MXNet or ONNX, `file.py:function`, or
    `recipe:NAME`, which is what `tofu train NAME` trains. NAME in --pin and --forbid may be a shell pattern.
    A plan that needs more memory than a device has is printed, then refused with exit status 2, and not
    saved.
    """
    from ..partitioner.methods.method import searching_method
    from ..partitioner.plans.origin import PlanOrigin
    from ..partitioner.plans.plan import graph_of
    from ..reports.files import check_writable
    from .target import load_model

    if compare and (save is not None or report is not None):
        option = "--save it" if save is not None else "write its --report"
        raise click.UsageError(f"--compare makes several plans; choose one by --method to {option}")
    if compare and front:
        raise click.UsageError("--front is about one plan, and --compare makes several; choose one of both")
    if compare and workers is None:
        raise click.UsageError("--compare searches for one number of workers; give it instead of auto")
    if front:
        searching_method(method)
        if objective == "step-time":
            raise click.UsageError(
                "--front is about bytes, or the time of transfers; `tofu frontier` finds the plans with the "
                "least step time for rising memory"
            )
    check_unroll(accumulate, unroll)
    read = {"MODEL": model_path(model), "--layouts": layouts, "--machine": machine_path(machine)}
    check_apart(read, save=save, report=report)
    for path in (save, report):
        if path is not None:
            check_writable(path)
    request = Request.read(
        workers, pins, forbidden, layouts, machine, objective, memory, not no_replicate, not no_keep, feed
    ).drawing(seed, proposals, beta, seconds, slower)
    request = request.on_groups(groups).merging(merge).copying_activations(copy_activations)
    loaded = load_model(model, batch, shapes)
    graph = loaded.training_graph(
        optimizer, dtype=dtype, accumulate=accumulate, unroll=unroll, recompute=recompute
    )
    if compare:
        _compare(loaded.name, graph, request, as_json)
        return
    found = request.partition(graph, method) if as_json else watched(request, graph, method)
    planned = graph_of(found.plan)
    request = dataclasses.replace(request, workers=found.plan.workers)
    facts, held, timeline = _gathered(loaded, planned, found, request, as_json or report is not None)
    facts |= {"dtype": dtype, "accumulate": accumulate, "unroll": unroll, "recompute": recompute}
    if front:
        facts["front"] = _front(planned, method, request, quiet=as_json)
    if as_json:
        click.echo(json.dumps(facts))
    else:
        from ..reports.plan import show

        show(planned, found.plan, facts, held)
    if report is not None:
        from ..reports.console import waiting

        with waiting("comparing methods and pricing alternatives", quiet=as_json):
            _write_page(report, graph, found.plan, facts, timeline, request)
        if not as_json:
            say(f"page written to {report}")
    request.require_fit(planned, found)
    if save is not None:
        source = PlanOrigin(model, batch, shapes, optimizer, dtype, accumulate, recompute, unroll)
        seconds = None if timeline is None else timeline.seconds
        dataclasses.replace(found.plan, source=source, step_seconds=seconds).save(save)
        if not as_json:
            say(f"plan written to {save}")


def _front(graph: Graph, method: str, request: Request, quiet: bool) -> list[dict[str, float]]:
    """Return the front of cost against memory, as `--json` prints it."""
    from ..reports.console import waiting

    with waiting("searching plans with less memory", quiet=quiet):
        return [point(found) for found in request.front(graph, method)]


def _gathered(
    model: Model, graph: Graph, found: Fitting, request: Request, counting: bool
) -> tuple[dict[str, Any], MemoryFigures, Timeline | None]:
    """Return what `--json` prints of a plan, its memory, and its time line if it has one.

    If `counting`, messages are counted by how far pieces travel together. Programs are made only if that, a
    machine or tensors that are collected together need them.
    """
    from ..partitioner import lower, partition
    from ..programs.memory import plan_memory
    from ..programs.messages import count_messages

    plan, memory_of = found.plan, found.memory
    assert memory_of is not None, "the search within a limit sets it"
    needed = counting or request.machine is not None or plan.together
    programs = lower(graph, plan) if needed else None
    memory = memory_of(plan) if programs is None else plan_memory(programs)
    timeline = None if programs is None else request.timeline(programs)
    whole = partition(graph, workers=1, replicate=False, keep=False)
    facts = {
        "model": model.name,
        "workers": plan.workers,
        "batch": model.batch,
        "operators": len(graph.operations),
        "tensors": len(graph.tensors),
        "weight_state_bytes": model.weight_state_bytes,
        "live_bytes_per_worker": max(memory.lower_bound_bytes),
        "single_device_peak_bytes": memory_of(whole).arena_bytes[0],
        **figures(graph, found, memory, request, programs, timeline),
    }
    if counting and programs is not None:
        facts["messages"] = dataclasses.asdict(count_messages(programs))
    return facts, memory, timeline


def _write_page(
    path: Path,
    graph: Graph,
    found: Plan,
    facts: dict[str, Any],
    timeline: Timeline | None,
    request: Request,
) -> None:
    """Write the plan's page, compared with the methods that take seconds."""
    from ..partitioner import lower
    from ..partitioner.plans.plan import graph_of
    from ..programs.memory import plan_memory
    from ..reports.page import render
    from ..reports.page.data import Comparison, page_data
    from ..support.saved_files import save_whole

    slow = slow_methods()
    entries, refused = compared(graph, request, without={*slow, found.method})
    left_out = {method: str(error) for method, error in refused.items()}
    left_out |= {method: "it may take minutes" for method in sorted(slow) if method != found.method}
    planned = graph_of(found)
    memory = plan_memory(lower(planned, found))
    page = page_data(planned, found, facts, memory, Comparison(entries, left_out), timeline)
    save_whole(path, render(page).encode())


def _compare(model: str, graph: Graph, request: Request, as_json: bool) -> None:
    from ..reports import comparison

    entries, left_out = compared(graph, request, search=Request.partition if as_json else watched)
    if not entries:
        raise next(iter(left_out.values()))
    reasons = {method: str(error) for method, error in left_out.items()}
    if as_json:
        facts = {"model": model, "workers": request.workers, "methods": entries, "left_out": reasons}
        click.echo(json.dumps(facts))
        return
    assert request.workers is not None, "methods are compared for one number of workers"
    comparison.show(model, request.workers, entries, reasons)
