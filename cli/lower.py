"""`tofu lower`: the programs of a plan, in words."""

from __future__ import annotations

import click

from .number_ranges import IntegerRange
from .options import examples, method_option, model_candidates, workers_option
from .planned import Planned, planned_options
from .say import say


@click.command(
    "lower",
    epilog=examples(
        "tofu lower mlp --workers 2",
        "tofu lower mlp --workers 4 --worker 3",
        "tofu lower mlp --workers 4 --operation fc1.product --method refine",
        "tofu lower plan.json --worker 3",
        "tofu lower mlp --workers 4 --messages",
    ),
)
@click.argument("target", metavar="MODEL|PLAN", shell_complete=model_candidates)
@click.argument("model", required=False, shell_complete=model_candidates)
@workers_option
@click.option("--worker", type=IntegerRange(0), help="One worker's number: print its program alone.")
@click.option("--operation", help="One operation's name: print its instructions alone.")
@click.option("--messages", is_flag=True, help="Print the fewest messages instead, one a line.")
@method_option
@planned_options
@click.pass_context
def command(
    context: click.Context,
    target: str,
    model: str | None,
    workers: int,
    worker: int | None,
    operation: str | None,
    messages: bool,
    method: str,
    given: Planned,
) -> None:
    """Partition MODEL's training graph, or take PLAN, and print what every worker does.

    Each line is an instruction. PLAN is a plan file, whose name ends in .json. MODEL is a name that `tofu
    models` lists, a file of MXNet or ONNX, or `file.py:function`. After PLAN it is needed only if the file
    does not say which model it was made for. Options that are left out are as planned, or as `tofu plan` has
    them.

    --messages prints which pieces may travel together, so that a worker reads as few messages as the order of
    instructions allows.
    """
    from ..partitioner import lower

    graph, plan = given.planned(context, target, model, workers, method)
    program = lower(graph, plan)
    if messages:
        from ..reports.messages import message_lines

        say("\n".join(message_lines(program, worker, operation)))
        return
    say(program.text(worker, operation))
