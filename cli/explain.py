"""`tofu explain`: show what a plan chose for one operator or tensor, and what alternatives cost."""

from __future__ import annotations

from pathlib import Path

import click

from .options import examples, json_option, model_candidates
from .planned import Planned, needs_model, planned_options


@click.command(
    "explain",
    epilog=examples(
        "tofu plan mlp --save plan.json",
        "tofu explain plan.json",
        "tofu explain plan.json fc1_weight",
        "tofu explain plan.json fc1 --as operator --json",
    ),
)
@click.argument("plan", type=click.Path(path_type=Path))
@click.argument("name", metavar="[TENSOR|OPERATOR]", required=False)
@click.argument("model", required=False, shell_complete=model_candidates)
@click.option(
    "--as",
    "what",
    type=click.Choice(["operator", "tensor"]),
    help="Which one, if an operator and a tensor share the name.",
)
@planned_options
@json_option
def command(
    plan: Path,
    name: str | None,
    model: str | None,
    what: str | None,
    given: Planned,
    as_json: bool,
) -> None:
    """Show what PLAN chose for TENSOR or OPERATOR, the bytes it moves, and those of every alternative.

    The parts of a choice that is not in steps are listed. Alternatives are priced only for plans in steps.

    Without a name every weight is listed: how it and the data are split, and the bytes moved for either.
    MODEL is needed only if the plan file does not say which model it was made for. It may then follow PLAN
    directly.
    """
    from ..partitioner import Plan
    from ..partitioner.explaining.explain import explain
    from ..partitioner.explaining.weights import folded, layers
    from ..reports import explanation
    from ..reports import layers as layers_report
    from .json_output import print_json

    found = Plan.load(plan)
    if model is None and needs_model(found) and name not in {*found.layouts, *found.strategies}:
        name, model = None, name
    if name is None and what is not None:
        raise click.UsageError("--as is for a name; give TENSOR or OPERATOR after PLAN, or leave it out")
    graph = given.graph(found, model)
    if name is None:
        found_layers = layers(graph, found)
        if as_json:
            print_json({"layers": found_layers})
        else:
            layers_report.show(folded(found_layers), found.workers)
        return
    result = explain(graph, found, name, what)  # type: ignore[arg-type]
    if as_json:
        print_json(result)
        return
    explanation.show(result)
