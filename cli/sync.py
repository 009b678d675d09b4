"""`tofu sync`: how each variable is synchronised over data-parallel workers."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import candidates
from .options import (
    Shape,
    examples,
    json_option,
    machine_option,
    model_candidates,
    shape_option,
    workers_option,
)

if TYPE_CHECKING:
    from ..dataflow.graph import Graph
    from ..partitioner import Plan
    from ..partitioner.methods.autodist.strategy import SyncStrategy


@click.command(
    "sync",
    epilog=examples(
        "tofu sync mlp --builder all-reduce --workers 4",
        "tofu sync mlp --strategy strategy.yaml --machine dgx-1-v100 --workers 4",
        "tofu sync lstm --builder parallax --save plan.json --json",
    ),
)
@click.argument("model", shell_complete=model_candidates)
@click.option("--strategy", type=click.Path(path_type=Path), help="YAML or JSON file of a strategy.")
@click.option(
    "--builder",
    help="Make the strategy: ps, ps-load-balancing, partitioned-ps, uneven-partitioned-ps, all-reduce, "
    "partitioned-all-reduce, random-axis-partitioned-all-reduce or parallax.",
)
@workers_option
@click.option("--batch", "-b", type=click.IntRange(1), help="Batch size; the model's own if left out.")
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
    workers: int,
    batch: int | None,
    shapes: dict[str, Shape],
    optimizer: str | None,
    machine: str | None,
    save: Path | None,
    as_json: bool,
) -> None:
    """Plan the training of MODEL over workers that share the samples, and synchronise each variable.

    It prints the bytes that variables of each kind move. MODEL is as for `tofu plan`, and a strategy file has
    the form of docs/methods/autodist.md. --json prints the strategy, too, in that form.
    """
    from ..machines import load
    from ..partitioner import lower
    from ..partitioner.plans.origin import PlanOrigin
    from ..reports.files import check_writable
    from ..reports.synchronisation import show
    from ..simulator import simulate
    from ..sync import compile as compile_strategy
    from .json_output import print_json
    from .target import load_model

    if (strategy is None) == (builder is None):
        raise click.UsageError("a strategy is read from --strategy or made by --builder; give one of them")
    if save is not None:
        check_writable(save)
    loaded = load_model(model, batch, shapes)
    graph = loaded.training_graph(optimizer)
    chosen = _strategy(graph, workers, strategy, builder)
    plan = compile_strategy(graph, workers, chosen)
    found = None if machine is None else load(machine)
    timeline = None if found is None else simulate(lower(graph, plan), found)
    facts = {"model": loaded.name, **_figures(graph, plan, chosen)}
    facts["machine"] = None if found is None else found.name
    facts["step_seconds"] = None if timeline is None else timeline.seconds
    if as_json:
        print_json(facts)
    else:
        show(facts)
    if save is not None:
        source = PlanOrigin(model, batch, shapes, optimizer, "float32", 1, 1, False)
        dataclasses.replace(plan, source=source, step_seconds=facts["step_seconds"]).save(save)
        if not as_json:
            click.echo(f"plan written to {save}")


def _strategy(graph: Graph, workers: int, path: Path | None, builder: str | None) -> SyncStrategy:
    """Read or make a strategy. Raises TofuError for a builder that there is not."""
    from ..errors import PlanError
    from ..support.wording import alternatives
    from ..sync import builders, read

    if path is not None:
        return read(path, graph, workers)
    assert builder is not None, "one of both is given"
    if builder not in builders.BUILDERS:
        raise PlanError(f"there is no builder {builder!r}{alternatives(builder, builders.BUILDERS)}")
    return builders.BUILDERS[builder](graph, workers)


def _figures(graph: Graph, plan: Plan, strategy: SyncStrategy) -> dict[str, Any]:
    """Return what `--json` prints of a plan, without its time."""
    from ..partitioner.methods.autodist.shares import shares
    from ..sync import document

    found = shares(graph, plan, strategy)
    return {
        "workers": plan.workers,
        "cost_bytes": plan.cost_bytes,
        "shares": [dataclasses.asdict(share) for share in found],
        "other_bytes": plan.cost_bytes - sum(each.gradient_bytes + each.fetched_bytes for each in found),
        "strategy": document(strategy),
    }
