"""`tofu simulate`: how long an iteration of a plan takes on a machine."""

from __future__ import annotations

from pathlib import Path

import click

from .options import (
    examples,
    json_option,
    machine_option,
    method_option,
    model_candidates,
    workers_option,
)
from .output_files import check_apart, machine_path, model_path
from .planned import Planned, planned_options
from .say import say


@click.command(
    "simulate",
    epilog=examples(
        "tofu simulate wresnet-50-4 --batch 32 --machine dgx-1-v100",
        "tofu simulate rnn-6-4k --machine 2x-dgx-h100 --workers 16 --json",
        "tofu simulate plan.json --machine pcie-8 --trace trace.json    # opens in ui.perfetto.dev",
    ),
)
@click.argument("target", metavar="MODEL|PLAN", shell_complete=model_candidates)
@click.argument("model", required=False, shell_complete=model_candidates)
@machine_option("The machine", required=True)
@workers_option
@method_option
@planned_options
@click.option(
    "--trace",
    type=click.Path(path_type=Path),
    help="Write all lanes in Chrome's trace format, which ui.perfetto.dev and chrome://tracing open.",
)
@json_option
@click.pass_context
def command(
    context: click.Context,
    target: str,
    model: str | None,
    machine: str,
    workers: int,
    method: str,
    given: Planned,
    trace: Path | None,
    as_json: bool,
) -> None:
    """Partition MODEL's training graph, or take PLAN, and simulate one iteration on a machine.

    It prints the time of the iteration, how each worker spends it, and what decides it. PLAN and MODEL are as
    for `tofu lower`. Options that are left out are as planned, or as `tofu plan` has them.
    """
    from ..machines import load
    from ..partitioner import lower
    from ..reports import timeline as report
    from ..reports.files import check_writable
    from ..simulator import simulate
    from ..simulator.trace import trace_of
    from ..support.saved_files import save_whole
    from .json_output import print_json

    read = {"PLAN": model_path(target), "MODEL": model_path(model), "--machine": machine_path(machine)}
    check_apart(read, trace=trace)
    if trace is not None:
        check_writable(trace)
    found = load(machine)
    graph, plan = given.planned(context, target, model, workers, method)
    timeline = simulate(lower(graph, plan), found)
    if trace is not None:
        save_whole(trace, trace_of(timeline.lanes))
    if as_json:
        print_json(report.facts(timeline))
        return
    report.show(timeline)
    if trace is not None:
        say(f"trace written to {trace}")
