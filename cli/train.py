"""`tofu train`: train on real data, partitioned, and report time, memory and traffic."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..runtime.interrupts import Terminated
from . import candidates
from .data_options import data_options
from .ending import interrupted
from .number_ranges import FiniteRange, IntegerRange
from .option_groups import GroupedCommand
from .options import (
    accumulate_option,
    check_unroll,
    dtype_option,
    examples,
    json_option,
    merge_option,
    method_option,
    native_option,
    recompute_option,
    unroll_option,
    workers_option,
)
from .output_files import check_apart, model_path
from .process_options import ProcessOptions, process_options
from .update_options import UpdateOptions, update_options

if TYPE_CHECKING:
    from ..reports.training import Report
    from ..reports.training_screen import Screen


GROUPS = {
    "Data": ("data", "hold_out", "steps", "level", "vocabulary", "resize"),
    "Training": (
        "epochs",
        "batch",
        "metrics",
        "seed",
        "replay",
        "detect_nan",
        "guard_buffers",
    ),
    "Updates": (
        "optimizer",
        "learning_rate",
        "schedule",
        "warmup",
        "final_rate",
        "clip_norm",
        "clip_value",
    ),
    "Plan and memory": (
        "workers",
        "method",
        "plan_file",
        "memory",
        "dtype",
        "loss_scale",
        "accumulate",
        "unroll",
        "recompute",
        "merge",
    ),
    "Devices": ("device", "native", "eager", "tf32"),
    "Processes": ("processes", "distributed", "transport", "timeout"),
    "Output": ("checkpoint", "resume", "log", "plot", "arrivals", "as_json"),
}


@click.command(
    "train",
    cls=GroupedCommand,
    groups=GROUPS,
    epilog=examples(
        "tofu train mlp",
        "tofu train wresnet --data cifar-10-batches-py --epochs 30 --checkpoint run",
        "tofu train lstm --data tale.txt --level word --steps 20",
        "tofu train resnet-18 --data photos --resize 64x64 --batch 32 --memory 4GB",
        "tofu train net.py:build --data arrays.npz --metric mse",
        "tofu train wresnet --device gpu --workers 8 --dtype bfloat16",
        "tofu train lstm --schedule linear --warmup 20 --clip-norm 5",
        "tofu train mlp --schedule step:0.1@10,15",
        "tofu train lenet --native",
        "tofu train mlp --plan plan.json",
        "tofu train mlp --plan plan.json --accumulate 4 --unroll",
        "tofu train mlp --processes 4",
        "tofu train mlp --log run.jsonl --plot curve.png",
        "tofu train mlp --json | tail -n 1",
    ),
)
@click.argument("name", shell_complete=candidates.of(candidates.trainable, files=True))
@workers_option
@data_options
@click.option("--epochs", type=IntegerRange(1), help="Passes over the training data.")
@click.option("--batch", "-b", type=IntegerRange(1), help="Samples in one iteration.")
@click.option("--learning-rate", "--lr", type=FiniteRange(0, min_open=True), help="Highest learning rate.")
@click.option(
    "--optimizer",
    shell_complete=candidates.of(candidates.optimizers),
    help="Optimizer that updates the parameters: sgd, adam, adamw or rmsprop; the usual one by default.",
)
@update_options
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    shell_complete=candidates.of(candidates.metrics),
    help="What to measure: accuracy, cross-entropy, perplexity, mse; repeat for several, the first plotted.",
)
@click.option(
    "--seed",
    type=IntegerRange(0),
    default=0,
    show_default=True,
    help="Seed of the start values and of the order of samples.",
)
@click.option(
    "--checkpoint",
    type=click.Path(path_type=Path, file_okay=False),
    help="Save the run in this folder, after every epoch, on Ctrl-C and on SIGTERM.",
)
@click.option("--resume", is_flag=True, help="Continue from the newest checkpoint in the folder.")
@click.option(
    "--log",
    type=click.Path(path_type=Path),
    help="Append a JSON object to this file for everything that is reported.",
)
@click.option(
    "--plot", type=click.Path(path_type=Path), help="Draw the loss into this .png, .svg or .pdf at the end."
)
@click.option(
    "--arrivals",
    type=click.Path(path_type=Path),
    help="If the plan applies gradients as they arrive, log the order of every iteration in this file.",
)
@click.option(
    "--replay",
    type=click.Path(path_type=Path),
    help="Apply gradients in the order of a file that --arrivals wrote, which gives the same bits.",
)
@method_option
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(path_type=Path),
    help="Train as this plan file says, over as many workers as it has; says what it simulated as well.",
)
@click.option(
    "--detect-nan",
    is_flag=True,
    help="Stop at the first operation whose result is not a number, and name it.",
)
@click.option(
    "--guard-buffers",
    is_flag=True,
    help="Stop at an operation that writes outside its buffers, and name it; needs more memory.",
)
@accumulate_option(default=1)
@unroll_option(default=False)
@recompute_option(default=1)
@merge_option
@native_option
@click.option(
    "--device",
    type=click.Choice(["cpu", "gpu"]),
    default="cpu",
    show_default=True,
    help="Devices of the workers; if there are fewer cards than workers, several workers share one.",
)
@process_options
@click.option("--eager", is_flag=True, help="On GPUs, launch every operation instead of one graph.")
@click.option("--tf32", is_flag=True, help="On GPUs, let products round their factors to TF32.")
@dtype_option(default="float32")
@click.option(
    "--loss-scale",
    type=FiniteRange(0, min_open=True),
    help="Factor that gradients are multiplied by when stored; 128 for float16 if left out.",
)
@click.option("--memory", help="Memory of each worker, such as 12GB; a run that needs more is refused.")
@json_option
@click.pass_context
def command(
    context: click.Context,
    name: str,
    workers: int,
    data: Path | None,
    hold_out: float | None,
    steps: int | None,
    level: str | None,
    vocabulary: int | None,
    resize: tuple[int, int] | None,
    epochs: int | None,
    batch: int | None,
    learning_rate: float | None,
    optimizer: str | None,
    updates: UpdateOptions,
    metrics: tuple[str, ...],
    seed: int,
    checkpoint: Path | None,
    resume: bool,
    log: Path | None,
    plot: Path | None,
    arrivals: Path | None,
    replay: Path | None,
    method: str,
    plan_file: Path | None,
    detect_nan: bool,
    guard_buffers: bool,
    accumulate: int,
    unroll: bool,
    recompute: int,
    merge: bool,
    device: str,
    run_in: ProcessOptions,
    eager: bool,
    tf32: bool,
    dtype: str,
    loss_scale: float | None,
    memory: str | None,
    as_json: bool,
) -> None:
    """Train NAME over WORKERS workers and report time, memory and traffic.

    NAME is wresnet or mlp, which bring handwritten digits, or lstm, which brings Python's help texts. With
    your data in --data it may also be any MODEL that `tofu plan` takes, built for the shapes and classes of
    the data.
    """
    if run_in.transport == "nccl" and device != "gpu":
        raise click.UsageError("--transport nccl needs --device gpu")
    read_files = {"NAME": model_path(name), "--data": data, "--plan": plan_file, "--replay": replay}
    check_apart(read_files, checkpoint=checkpoint, log=log, plot=plot, arrivals=arrivals)
    run_in.start(context)
    from ..models.files import Reading, read
    from ..reports.training import Several
    from .planned import plan_to_follow
    from .recipes import changed, task
    from .training_run import Devices, Run

    reading = Reading(hold_out, steps, level, vocabulary, resize)
    if data is None and reading != Reading():
        raise click.UsageError("--hold-out, --steps, --level, --vocabulary and --resize need --data")
    if resume and checkpoint is None:
        raise click.UsageError("--resume needs --checkpoint, the folder to continue from")
    if arrivals is not None and replay is not None:
        raise click.UsageError("--arrivals logs a run and --replay repeats one; leave out one of them")
    if device == "gpu" and guard_buffers:
        raise click.UsageError("--guard-buffers needs --device cpu")
    if device == "cpu" and (eager or tf32):
        raise click.UsageError("--eager and --tf32 need --device gpu")
    check_unroll(accumulate, unroll)
    plan = None if plan_file is None else plan_to_follow(context, plan_file)
    workers = workers if plan is None else plan.workers
    processes = None
    if run_in.several:
        processes = context.with_resource(run_in.join(context, workers, plan is not None, device))
        workers = processes.workers
    found = task(name, batch, None if data is None else read(data, reading), data)
    settings = changed(found.settings, epochs, learning_rate, optimizer, metrics)
    settings = replace(settings, optimizer=updates.clipped(settings.optimizer))
    devices = Devices.of(device, workers, processes, eager, tf32, dtype, loss_scale)
    run = Run(
        found,
        settings,
        updates,
        devices,
        seed,
        method,
        plan,
        detect_nan,
        guard_buffers,
        accumulate,
        unroll,
        recompute,
        merge,
        memory,
        checkpoint,
        resume,
        arrivals,
        replay,
    )
    run.require_fit()
    first = processes is None or not processes.number
    screen = _screen(as_json) if first else None
    appended = resume or (processes is not None and processes.attempt > 0)
    with Several(_reports(screen, as_json, log, plot, appended) if first else []) as reports:
        try:
            run.train(reports, screen)
        except (KeyboardInterrupt, Terminated) as error:
            raise interrupted(error, run.kept()) from error


def _screen(as_json: bool) -> Screen | None:
    """Return the screen that shows progress.

    If JSON is asked for, standard output holds nothing else, and progress is shown on a terminal only.
    """
    from ..reports.console import on_terminal, wide_console
    from ..reports.training_screen import Screen

    console = wide_console(stderr=as_json)
    return None if as_json and not on_terminal(console) else Screen(console)


def _reports(
    screen: Screen | None, as_json: bool, log: Path | None, plot: Path | None, resume: bool
) -> list[Report]:
    """Return everything that reports the run. Raises DataError if one of the files cannot be written."""
    from ..reports.training import JsonLines

    reports: list[Report] = [] if screen is None else [screen]
    if as_json:
        reports.append(JsonLines())
    if plot is not None:
        from ..reports.training_curve import Curve

        reports.append(Curve(plot))
    if log is not None:
        from ..reports.run_log import RunLog

        reports.append(RunLog(log, resume=resume))
    return reports
