"""`tofu verify`: check a plan file independently of the search that wrote it."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ..support.wording import counted
from .number_ranges import IntegerRange
from .options import examples, json_option, model_candidates
from .planned import Planned, model_name, planned_options
from .say import say


@click.command(
    "verify",
    epilog=examples("tofu verify plan.json", "tofu verify plan.json mlp --workers 8 --json"),
)
@click.argument("plan", type=click.Path(path_type=Path))
@click.argument("model", required=False, shell_complete=model_candidates)
@click.option("--workers", "-w", type=IntegerRange(1, 4096), help="Refuse plans for another number.")
@planned_options
@json_option
def command(
    plan: Path,
    model: str | None,
    workers: int | None,
    given: Planned,
    as_json: bool,
) -> None:
    """Check that PLAN is a valid plan for MODEL's training graph and moves the bytes it states.

    MODEL is needed only if the plan file does not say which model it was made for. The checker shares no code
    with search and lowering. If anything is wrong, a message says what, and the exit status is 2.
    """
    from ..partitioner import Plan, lower
    from ..partitioner.checking.check_plan import check_workers, verify
    from ..programs.check_memory import check_memory
    from ..programs.check_program import check_program
    from ..programs.memory import plan_memory
    from ..programs.schedule import schedule

    found = Plan.load(plan)
    if workers is not None:
        check_workers(found, workers)
    graph = given.graph(found, model)
    verify(graph, found)
    programs = lower(graph, found)
    check_program(graph, found.workers, found.cost_bytes, programs)
    memory = plan_memory(programs)
    check_memory(programs, memory.offsets, memory.arena_bytes, schedule(programs, memory).waits)
    facts = {
        "plan": str(plan),
        "model": model_name(found, model),
        "workers": found.workers,
        "tensors": len(graph.tensors),
        "operators": len(graph.operations),
        "instructions": sum(len(program.instructions) for program in programs.programs),
        "cost_bytes": found.cost_bytes,
        "peak_bytes_per_worker": max(memory.arena_bytes),
        "verified": True,
    }
    if as_json:
        click.echo(json.dumps(facts))
        return
    say(
        f"{plan} is valid for {facts['model']} on {counted(found.workers, 'worker')}: "
        f"{facts['tensors']:,} tensors, "
        f"{facts['operators']:,} operators and {facts['instructions']:,} instructions checked, "
        f"{found.cost_bytes:,} bytes recounted, {facts['peak_bytes_per_worker']:,} bytes of memory walked"
    )
