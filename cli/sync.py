"""`tofu sync`: how each variable is synchronised over data-parallel workers."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import candidates
from .number_ranges import IntegerRange
from .options import (
    Shape,
    examples,
    json_option,
    machine_option,
    model_candidates,
    shape_option,
    workers_option,
)
from .output_files import check_apart, machine_path, model_path
from .say import say

if TYPE_CHECKING:
    from ..dataflow.graph import Graph
    from ..machines import Machine
    from ..partitioner import AutoSync, Plan
    from ..partitioner.methods.autodist.strategy import SyncStrategy


@click.command(
    "sync",
    epilog=examples(
        "tofu sync mlp --builder all-reduce --workers 4",
        "tofu sync mlp --strategy strategy.yaml --machine dgx-1-v100 --workers 4",
        "tofu sync lstm --builder parallax --save plan.json --json",
        "tofu sync mlp --builder ps-load-balancing --base megatron:dp2-tp2 --workers 4",
        "tofu sync mlp --builder auto --machine 2x-k80-node --workers 8",
    ),
)
@click.argument("model", shell_complete=model_candidates)
@click.option(
    "--strategy",
    type=click.Path(path_type=Path),
    help="YAML or JSON file of a strategy, or AutoDist's own text (.pbtxt).",
)
@click.option(
    "--builder",
    help="Make the strategy: ps, ps-load-balancing, partitioned-ps, uneven-partitioned-ps, all-reduce, "
    "partitioned-all-reduce, random-axis-partitioned-all-reduce, parallax, byteps or poseidon; or search it: "
    "auto.",
)
@click.option(
    "--base",
    help="Synchronise on top of this plan file, or of the plan of this method; data parallelism if left out.",
)
@workers_option
@click.option("--batch", "-b", type=IntegerRange(1), help="Batch size; the model's own if left out.")
@shape_option("An input's shape, for graph files and for ONNX files that leave it open.")
@click.option(
    "--optimizer",
    shell_complete=candidates.of(candidates.optimizers),
    help="The optimizer whose updates the graph contains: sgd, adam, adamw or rmsprop; if left out, that of "
    "the recipe, or sgd.",
)
@machine_option("Simulate an iteration on this machine")
@click.option("--save", type=click.Path(path_type=Path), help="Write the plan to this file.")
@json_option
def command(
    model: str,
    strategy: Path | None,
    builder: str | None,
    base: str | None,
    workers: int,
    batch: int | None,
    shapes: dict[str, Shape],
    optimizer: str | None,
    machine: str | None,
    save: Path | None,
    as_json: bool,
) -> None:
    """Synchronise each variable of MODEL over workers that share the samples, or on top of any plan.

    It prints the bytes that variables of each kind move. With a machine it also prints the simulated time of
    an iteration, as engines run it and with the pieces of each group in one message. The builder `auto`
    searches the strategy with the least of these times, and says what it gains through. MODEL is as for `tofu
    plan`, and a strategy file has the form of docs/methods/autodist.md. --json prints the strategy, too, in
    that form.
    """
    from ..machines import load
    from ..partitioner import lower
    from ..partitioner.methods.autodist.merging import merge
    from ..partitioner.plans.origin import PlanOrigin
    from ..programs.messages import count_messages
    from ..reports.files import check_writable
    from ..reports.synchronisation import show
    from ..simulator import simulate
    from ..sync import compile as compile_strategy
    from ..sync import rewrite
    from .json_output import print_json
    from .target import load_model

    if (strategy is None) == (builder is None):
        raise click.UsageError("a strategy is read from --strategy or made by --builder; give one of them")
    check_apart(
        {
            "MODEL": model_path(model),
            "--strategy": strategy,
            "--base": model_path(base),
            "--machine": machine_path(machine),
        },
        save=save,
    )
    if save is not None:
        check_writable(save)
    loaded = load_model(model, batch, shapes)
    graph = loaded.training_graph(optimizer)
    found = None if machine is None else load(machine)
    if builder == "auto" and base is not None:
        raise click.UsageError("--builder auto searches on top of data parallelism; leave out --base")
    searched = _searched(graph, workers, found) if builder == "auto" else None
    chosen = _strategy(graph, workers, strategy, builder, found) if searched is None else searched.strategy
    plan = compile_strategy(graph, workers, chosen, base) if searched is None else searched.plan
    before, graph = graph, rewrite(graph, workers, chosen)
    program = lower(graph, plan)
    merged = merge(graph, program, chosen)
    timeline = None if found is None else simulate(program, found)
    facts = {"model": loaded.name, **_figures(graph, plan, chosen, before)}
    facts["messages"] = {**dataclasses.asdict(count_messages(program)), "merged": merged.messages.count}
    facts["machine"] = None if found is None else found.name
    facts["step_seconds"] = None if timeline is None else timeline.seconds
    apart = found is None or found.profile is not None
    facts["merged_seconds"] = None if apart or found is None else merged.simulate(found).seconds
    facts["auto"] = None if searched is None else _report(searched)
    if as_json:
        print_json(facts)
    else:
        show(facts)
    if save is not None:
        source = PlanOrigin(model, batch, shapes, optimizer, "float32", 1, 1, False)
        dataclasses.replace(plan, source=source, step_seconds=facts["step_seconds"]).save(save)
        if not as_json:
            say(f"plan written to {save}")


def _strategy(
    graph: Graph, workers: int, path: Path | None, builder: str | None, machine: Machine | None
) -> SyncStrategy:
    """Read or make a strategy. Raises TofuError for a builder that there is not."""
    from ..errors import PlanError
    from ..support.wording import alternatives
    from ..sync import builders, read

    known = (*builders.BUILDERS, "auto")
    if path is not None:
        if str(path) in known and not path.exists():
            raise PlanError(f"{str(path)!r} is not a strategy file but a builder: give it to --builder")
        return read(path, graph, workers, machine)
    assert builder is not None, "one of both is given"
    if builder not in builders.BUILDERS:
        raise PlanError(f"there is no builder {builder!r}{alternatives(builder, known)}")
    return builders.BUILDERS[builder](graph, workers)


def _searched(graph: Graph, workers: int, machine: Machine | None) -> AutoSync:
    """Search a strategy for a machine. Raises MachineError if there is none."""
    from ..errors import MachineError
    from ..sync import auto

    if machine is None:
        raise MachineError("the builder 'auto' simulates iterations on a machine; give one with --machine")
    return auto(graph, workers, machine)


def _report(searched: AutoSync) -> dict[str, Any]:
    """Return what `--json` prints of a search."""
    return {
        "seconds": searched.seconds,
        "plain_seconds": searched.plain_seconds,
        "gains": [dataclasses.asdict(each) for each in searched.reasons],
        "server_gap": searched.search.server_gap,
        "predicted": searched.search.predicted,
        "candidates": [
            {"name": each.name, "seconds": each.seconds, "predicted_seconds": each.predicted_seconds}
            for each in searched.search.candidates
        ],
    }


def _figures(graph: Graph, plan: Plan, strategy: SyncStrategy, before: Graph) -> dict[str, Any]:
    """Return what `--json` prints of a plan, without its time."""
    from ..partitioner.methods.autodist.shares import shares
    from ..sync import document

    found = shares(graph, plan, strategy, before)
    return {
        "workers": plan.workers,
        "cost_bytes": plan.cost_bytes,
        "shares": [dataclasses.asdict(share) for share in found],
        "other_bytes": plan.cost_bytes - sum(each.gradient_bytes + each.fetched_bytes for each in found),
        "strategy": document(strategy),
    }
