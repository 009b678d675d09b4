"""`tofu train`: train on real data, partitioned, and say what it took."""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import json_option, workers_option

if TYPE_CHECKING:
    from ..dataflow.graph import Graph
    from ..runtime.footprint import Footprint


@click.command("train")
@click.argument("name")
@workers_option
@click.option("--epochs", type=click.IntRange(1), help="Passes over the training data.")
@click.option("--batch", "-b", type=click.IntRange(1), help="Samples in one iteration.")
@click.option(
    "--learning-rate", "--lr", type=click.FloatRange(0, min_open=True), help="Highest learning rate."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option(
    "--checkpoint",
    type=click.Path(path_type=Path, file_okay=False),
    help="Save the run in this folder, after every epoch and on Ctrl-C.",
)
@click.option("--resume", is_flag=True, help="Go on from the newest checkpoint in the folder.")
@click.option("--method", default="recursive", show_default=True, help="Search method.")
@click.option(
    "--detect-nan",
    is_flag=True,
    help="Stop at the first operation whose result is not a number, and name it.",
)
@click.option(
    "--accumulate",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Equal parts in which a batch is worked off, in the memory of one.",
)
@click.option("--memory", help="What each worker may hold, such as 12GB: what takes more is refused.")
@json_option
def command(
    name: str,
    workers: int,
    epochs: int | None,
    batch: int | None,
    learning_rate: float | None,
    seed: int,
    checkpoint: Path | None,
    resume: bool,
    method: str,
    detect_nan: bool,
    accumulate: int,
    memory: str | None,
    as_json: bool,
) -> None:
    """Train NAME over WORKERS workers: wresnet or mlp on handwritten digits, lstm on Python's help texts."""
    from ..dataflow.training import training_graph
    from ..errors import TofuError
    from ..module import Module, cpu
    from ..reports.training import Lines, Report
    from ..runtime.data import ArrayIterator
    from ..runtime.learning_rate import Cosine
    from ..runtime.module import Epoch, Progress
    from . import recipes

    recipe = recipes.find(name)
    recipe = replace(
        recipe,
        epochs=epochs or recipe.epochs,
        batch=batch or recipe.batch,
        learning_rate=learning_rate or recipe.learning_rate,
    )
    model, split = recipe.load(recipe.batch)
    train = ArrayIterator(split.train_data, split.train_label, recipe.batch, shuffle=True, seed=seed)
    test = ArrayIterator(split.test_data, split.test_label, recipe.batch)
    steps = recipe.epochs * len(train)
    report: Report = Lines() if as_json else _screen(steps)
    progress: list[Progress] = []

    def on_step(step: Progress) -> None:
        progress.append(step)
        report.step(step)

    def on_epoch(epoch: Epoch) -> None:
        report.epoch(epoch, recipe.epochs)

    context = [cpu(worker) for worker in range(workers)]
    trained = Module(model.symbol, context, method=method, seed=seed, detect_nan=detect_nan, memory=memory)
    with trained as module, report:
        report.start(f"{model.name}, {recipe.about}, over {workers} workers")
        executor = module.bind(train.shapes, recipe.optimizer, accumulate=accumulate)
        graph = executor.partitioned.graph
        history = module.fit(
            train,
            test,
            num_epoch=recipe.epochs,
            optimizer=recipe.optimizer,
            learning_rate=Cosine(recipe.learning_rate, steps, warmup_steps=min(10, steps // 10)),
            metric=recipe.metrics,
            accumulate=accumulate,
            on_step=on_step,
            on_epoch=on_epoch,
            checkpoint=checkpoint,
            resume=resume,
        )
        if not progress:
            raise TofuError(f"all {len(history)} epochs are in the checkpoint; ask for more with --epochs")
        alone = _single_device_footprint(
            training_graph(model.symbol, train.shapes, recipe.optimizer, name=graph.name)
        )
        report.summary(
            {
                "workers": workers,
                "steps": len(progress),
                "parameters": model.weight_count,
                "final_loss": history[-1].training[recipe.metrics[0]],
                "metric": history[-1].evaluation,
                "seconds_per_step": statistics.median(step.seconds for step in progress),
                "samples_per_second": sum(p.samples for p in progress) / sum(p.seconds for p in progress),
                "planned_bytes_per_step": executor.partitioned.planned_bytes,
                "fetched_bytes_per_step": executor.fetched_bytes,
                "peak_bytes_per_worker": executor.peak_bytes_per_worker,
                "workspace_bytes_per_worker": executor.workspace_bytes_per_worker,
                "single_device_peak_bytes": alone.peak_bytes,
                "single_device_workspace_bytes": max(alone.workspace_bytes),
            }
        )


def _screen(steps: int) -> Any:
    from ..reports.training import Screen

    return Screen(steps)


def _single_device_footprint(graph: Graph) -> Footprint:
    from ..partitioner import lower, partition
    from ..runtime.footprint import footprint

    return footprint(lower(graph, partition(graph, workers=1)))
