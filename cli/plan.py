"""`tofu plan`: search for a partition plan and say what it costs."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import Shape, ShapeOption, json_option, workers_option

if TYPE_CHECKING:
    from ..dataflow.graph import Graph


@click.command("plan")
@click.argument("model")
@workers_option
@click.option("--batch", "-b", type=click.IntRange(1), help="Batch size; the model's own if left out.")
@click.option(
    "--shape", "shapes", type=ShapeOption(), multiple=True, help="An input's shape, for graph files."
)
@click.option("--method", default="recursive", show_default=True, help="Search method.")
@click.option("--compare", is_flag=True, help="Search by every method and print them side by side.")
@click.option("--optimizer", default="sgd", show_default=True, help="Whose updates the graph contains.")
@click.option("--save", type=click.Path(path_type=Path), help="Write the plan to this file.")
@json_option
def command(
    model: str,
    workers: int,
    batch: int | None,
    shapes: tuple[tuple[str, Shape], ...],
    method: str,
    compare: bool,
    optimizer: str,
    save: Path | None,
    as_json: bool,
) -> None:
    """Partition MODEL's training graph over workers and print the plan.

    MODEL is a name that `tofu models` lists, a graph file that MXNet wrote, or `file.py:function`.
    """
    from ..partitioner import lower, partition
    from ..partitioner.source import Source
    from ..reports import plan as report
    from ..runtime.memory import plan_memory
    from .target import load_model

    loaded = load_model(model, batch, dict(shapes))
    graph = loaded.training_graph(optimizer=optimizer)
    if compare:
        if save is not None:
            raise click.UsageError("--compare makes several plans; choose one by --method to --save it")
        _compare(loaded.name, graph, workers, as_json)
        return
    found = partition(graph, workers=workers, method=method)
    memory = plan_memory(lower(graph, found))
    single = plan_memory(lower(graph, partition(graph, workers=1)))
    if save is not None:
        source = Source(model, batch, dict(shapes), optimizer)
        dataclasses.replace(found, source=source).save(save)
    facts = {
        "model": loaded.name,
        "workers": workers,
        "method": found.method,
        "operators": len(graph.operations),
        "tensors": len(graph.tensors),
        "weight_state_bytes": loaded.weight_state_bytes,
        "cost_bytes": found.cost_bytes,
        "step_cost_bytes": list(found.step_cost_bytes),
        "lower_bound_bytes": found.lower_bound_bytes,
        "search_seconds": found.search_seconds,
        "peak_bytes_per_worker": max(memory.arena_bytes),
        "live_bytes_per_worker": max(memory.lower_bound_bytes),
        "single_device_peak_bytes": max(single.arena_bytes),
    }
    if as_json:
        click.echo(json.dumps(facts))
        return
    report.show(graph, found, facts, memory)
    if save is not None:
        click.echo(f"plan written to {save}")


def _compare(model: str, graph: Graph, workers: int, as_json: bool) -> None:
    from ..partitioner import METHODS, lower, partition
    from ..reports import comparison
    from ..runtime.memory import plan_memory

    entries = []
    for method in METHODS:
        found = partition(graph, workers=workers, method=method)
        entries.append(
            {
                "method": method,
                "cost_bytes": found.cost_bytes,
                "step_cost_bytes": list(found.step_cost_bytes),
                "lower_bound_bytes": found.lower_bound_bytes,
                "search_seconds": found.search_seconds,
                "peak_bytes_per_worker": max(plan_memory(lower(graph, found)).arena_bytes),
            }
        )
    if as_json:
        click.echo(json.dumps({"model": model, "workers": workers, "methods": entries}))
        return
    comparison.show(model, workers, entries)
