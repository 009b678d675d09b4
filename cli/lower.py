"""`tofu lower`: the programs of a plan, in words."""

from __future__ import annotations

import click

from .options import (
    Shape,
    accumulate_option,
    dtype_option,
    examples,
    method_option,
    model_candidates,
    shape_option,
    workers_option,
)


@click.command(
    "lower",
    epilog=examples(
        "tofu lower mlp --workers 2",
        "tofu lower mlp --workers 4 --worker 3",
        "tofu lower mlp --workers 4 --operation fc1.product --method refine",
    ),
)
@click.argument("model", shell_complete=model_candidates)
@workers_option
@click.option("--worker", type=click.IntRange(0), help="One worker's number: print its program alone.")
@click.option("--operation", help="One operation's name: print its instructions alone.")
@method_option
@click.option("--batch", "-b", type=click.IntRange(1), help="Batch size; the model's own if left out.")
@shape_option("An input's shape, for graph files and functions.")
@click.option(
    "--optimizer", default="sgd", show_default=True, help="The optimizer whose updates the graph contains."
)
@dtype_option(default="float32")
@accumulate_option(default=1)
def command(
    model: str,
    workers: int,
    worker: int | None,
    operation: str | None,
    method: str,
    batch: int | None,
    shapes: dict[str, Shape],
    optimizer: str,
    dtype: str,
    accumulate: int,
) -> None:
    """Partition MODEL's training graph and print what every worker does, one instruction per line.

    MODEL is a name that `tofu models` lists, a graph file that MXNet wrote, or `file.py:function`.
    """
    from ..partitioner import lower, partition
    from .target import load_model

    graph = load_model(model, batch, shapes).training_graph(optimizer, dtype=dtype, accumulate=accumulate)
    click.echo(lower(graph, partition(graph, workers, method)).text(worker, operation))
