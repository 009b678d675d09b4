"""`tofu describe`: an operator's description and everything that follows from it."""

from __future__ import annotations

import json
from typing import Any

import click

from ..errors import TofuError
from ..operators import registry
from ..operators.operator import Operator
from .options import AttributeOption, Shape, ShapeOption, json_option


@click.command("describe")
@click.argument("operator")
@click.option(
    "--shape", "shapes", type=ShapeOption(), multiple=True, help="A tensor's shape; repeat for each."
)
@click.option("--set", "attributes", type=AttributeOption(), multiple=True, help="An attribute's value.")
@click.option("--workers", "-w", type=click.IntRange(1, 64), default=2, show_default=True)
@json_option
def command(
    operator: str,
    shapes: tuple[tuple[str, Shape], ...],
    attributes: tuple[tuple[str, object], ...],
    workers: int,
    as_json: bool,
) -> None:
    """Show OPERATOR's description, its strategies, and the regions that each worker reads.

    OPERATOR is a library operator by its MXNet name, or a file `name.tdl`. Without --shape and --set a small
    example is shown.
    """
    from ..reports import strategies

    found = named_operator(operator)
    given_shapes, given_attributes = dict(shapes), dict(attributes)
    if not given_shapes and not given_attributes and found.example is not None:
        given_shapes, given_attributes = dict(found.example.shapes), dict(found.example.attributes)
    needed = " ".join(f"--shape {name}=..." for name in found.arguments(given_attributes))
    if needed and not given_shapes:
        raise TofuError(f"{found.name} needs shapes: {needed}")
    known = _complete(found, given_shapes, given_attributes)
    stages = []
    for stage in found.stages(given_attributes, known):
        bound = stage.bind(known)
        known.update(zip(stage.produces, bound.output_shapes, strict=True))
        stages.append(strategies.summary(bound, workers))
    if as_json:
        click.echo(json.dumps({"operator": found.name, "workers": workers, "stages": stages}))
        return
    _print(found, given_attributes, stages)


def named_operator(name: str) -> Operator:
    """A library operator by its name, or the one in a file `name.tdl`.

    Raises OperatorError, DescriptionError.
    """
    if not name.endswith(".tdl"):
        return registry.get(name)
    from ..operators.surface import load

    return load(name)


def _complete(
    operator: Operator, shapes: dict[str, Shape], attributes: dict[str, object]
) -> dict[str, Shape]:
    """The shapes of all tensors that the operator takes, inferred from those given."""
    names = (*operator.arguments(attributes), *operator.auxiliary)
    seeds: dict[str, Shape] = dict.fromkeys(operator.seeds, (1,))
    shapes = {name: shape for name, shape in shapes.items() if name not in seeds}
    unknown = [name for name in shapes if name not in names]
    if unknown:
        raise TofuError(f"{operator.name} has no tensor {unknown[0]!r}; it takes {', '.join(names)}")
    inferred = operator.infer(attributes, {name: shapes.get(name) for name in names})
    known = seeds
    for name in names:
        shape = inferred.get(name)
        if shape is None or None in shape:
            raise TofuError(
                f"the shape of {name} does not follow from the others; give it: --shape {name}=..."
            )
        known[name] = tuple(extent for extent in shape if extent is not None)
    return known


def _print(operator: Operator, attributes: dict[str, object], stages: list[dict[str, Any]]) -> None:

    from ..reports import strategies
    from ..reports.console import wide_console

    console = wide_console()
    given = ", ".join(f"{name}={value}" for name, value in attributes.items())
    console.print(f"[bold]{operator.name}[/]" + (f" with {given}" if given else ""), soft_wrap=True)
    for stage in stages:
        console.print()
        console.print(stage["description"].rstrip(), markup=False, soft_wrap=True)
        shapes = ", ".join(f"{name} {tuple(shape)}" for name, shape in stage["shapes"].items())
        outputs = ", ".join(str(tuple(shape)) for shape in stage["output_shapes"])
        console.print(f"{shapes} -> {outputs}", soft_wrap=True)
        console.print(
            "extents: " + ", ".join(f"{name} {n}" for name, n in stage["extents"].items()), soft_wrap=True
        )
        console.print(strategies.work(stage), markup=False, soft_wrap=True)
        for table in strategies.tables(stage):
            console.print(table)
        for refusal in stage["refusals"]:
            console.print(f"not split: {refusal['variable']}: {refusal['reason']}", soft_wrap=True)
