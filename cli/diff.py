"""`tofu diff`: what two plans for one graph do differently."""

from __future__ import annotations

from pathlib import Path

import click

from .options import examples, json_option, model_candidates
from .planned import Planned, planned_options


@click.command(
    "diff",
    epilog=examples(
        "tofu plan mlp --save first.json",
        "tofu plan mlp --method all-row --save second.json",
        "tofu diff first.json second.json",
    ),
)
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("second", type=click.Path(path_type=Path))
@click.argument("model", required=False, shell_complete=model_candidates)
@planned_options
@json_option
def command(
    first: Path,
    second: Path,
    model: str | None,
    given: Planned,
    as_json: bool,
) -> None:
    """Compare the plans FIRST and SECOND: operators and tensors that differ, bytes of each, totals.

    Choices are compared by their parts, whatever their forms. Copies and the order are compared too.

    MODEL is needed only if the first plan file does not say which model it was made for.
    """
    from ..partitioner import Plan
    from ..partitioner.explaining.difference import difference
    from ..reports import difference as report
    from .json_output import print_json

    plans = Plan.load(first), Plan.load(second)
    graph = given.graph(plans[0], model)
    found = difference(graph, *plans)
    if as_json:
        print_json(found)
        return
    report.show(found, (str(first), str(second)))
