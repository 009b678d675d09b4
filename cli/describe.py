"""`tofu describe`: an operator's description and everything that follows from it."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import OperatorError, TofuError
from ..operators.library import registry
from ..operators.operator import Operator
from . import candidates, python_file
from .number_ranges import IntegerRange
from .options import Shape, attribute_option, examples, json_option, native_option, shape_option
from .say import say

if TYPE_CHECKING:
    from ..operators.stages.bound_operator import BoundOperator


@click.command(
    "describe",
    epilog=examples(
        "tofu describe Convolution",
        "tofu describe Convolution --regions",
        "tofu describe FullyConnected --shape data=8,16 --set num_hidden=4 --workers 4",
        "tofu describe conv1d.tdl --shape data=4,3,12 --shape filters=3,6,3",
        "tofu describe Convolution --draw convolution.svg --variable x0",
        "tofu describe Convolution --shape data=16,64,32,32 --set kernel=3,3 --set num_filter=64 --kernels",
        "tofu describe layers.py:conv1d --shape data=4,3,12 --shape filters=3,6,3",
    ),
)
@click.argument("operator", shell_complete=candidates.of(candidates.operators, files=True))
@shape_option("A tensor's shape; repeat for each.")
@attribute_option
@click.option(
    "--workers", "-w", type=IntegerRange(1, 64), default=2, show_default=True, help="Number of workers."
)
@click.option("--regions", is_flag=True, help="Print the regions that each worker reads and makes.")
@click.option(
    "--draw",
    type=click.Path(path_type=Path),
    metavar="FILE.svg|.png",
    help="Draw which region every worker reads and makes under each strategy.",
)
@click.option(
    "--variable", "-v", "variables", multiple=True, help="Draw the strategy along this variable; repeat."
)
@click.option(
    "--kernels",
    "with_kernels",
    is_flag=True,
    help="Show which code computes each stage and gradient on this machine's processor.",
)
@native_option
@json_option
def command(
    operator: str,
    shapes: dict[str, Shape],
    attributes: dict[str, object],
    workers: int,
    regions: bool,
    draw: Path | None,
    variables: tuple[str, ...],
    with_kernels: bool,
    as_json: bool,
) -> None:
    """Show OPERATOR's description and its strategies, and how much of each tensor a worker reads.

    OPERATOR is a library operator by its MXNet name, a file `name.tdl`, `name.tdl:description` for one of
    several in a file, or `file.py:function` for a function under @tofu.op. Without --shape and --set a small
    example is shown.
    """
    from ..operators.audit.subjects import complete_shapes
    from ..reports import strategies

    if draw is not None:
        _check_drawable(draw)
    elif variables:
        raise click.UsageError("--variable needs --draw FILE")
    found = named_operator(operator)
    given_shapes, given_attributes = given_or_example(found, shapes, attributes)
    known = complete_shapes(found, given_shapes, given_attributes)
    rows = None
    if with_kernels:
        from ..reports.kernels import kernels

        rows = kernels(found, known, given_attributes)
    stages = []
    bounds = []
    for stage in found.stages(given_attributes, known):
        bound = stage.bind(known)
        known.update(zip(stage.produces, bound.output_shapes, strict=True))
        bounds.append(bound)
        stages.append(strategies.summary(bound, workers))
    if draw is not None:
        _draw(found.name, bounds, variables, workers, draw)
    if as_json:
        report = {"operator": found.name, "workers": workers, "stages": stages}
        click.echo(json.dumps(report if rows is None else {**report, "kernels": rows}))
        return
    _print(found, given_attributes, stages, workers, regions)
    if rows is not None:
        _print_kernels(rows)
    if draw is not None:
        say(f"drawing written to {draw}")


def named_operator(name: str) -> Operator:
    """Return a library operator by its name, or the one in a file `name.tdl`, `name.tdl:description` or
    `file.py:function`.

    Raises OperatorError, DescriptionError, and TofuError for a Python file that fails.
    """
    in_python = python_file.split(name)
    if in_python is not None:
        found = python_file.read(*in_python)
        if not isinstance(found, Operator):
            raise TofuError(
                f"{name} is a {type(found).__name__}; expected an operator, a function under @tofu.op"
            )
        return found
    path, inside, wanted = name.rpartition(".tdl:")
    if not name.endswith(".tdl") and not inside:
        try:
            return registry.get(name)
        except OperatorError:
            if Path(f"{name}.tdl").is_file():
                raise OperatorError(
                    f"there is no operator {name!r}; did you mean the file {name}.tdl?"
                ) from None
            raise
    from ..operators.declare import load

    return load(f"{path}.tdl", name=wanted) if inside else load(name)


def given_or_example(
    operator: Operator, shapes: dict[str, Shape], attributes: dict[str, object]
) -> tuple[dict[str, Shape], dict[str, object]]:
    """Return shapes and attributes as given, or those of the operator's example if none are.

    Raises TofuError.
    """
    if not shapes and not attributes and operator.example is not None:
        return dict(operator.example.shapes), dict(operator.example.attributes)
    needed = " ".join(f"--shape {name}=..." for name in operator.arguments(attributes))
    if needed and not shapes:
        raise TofuError(f"{operator.name} needs shapes: {needed}")
    return shapes, attributes


def _check_drawable(path: Path) -> None:
    from ..reports.drawing.file import check_kind
    from ..reports.files import check_writable

    check_kind(path)
    check_writable(path)


def _draw(
    name: str, bounds: Sequence[BoundOperator], variables: Collection[str], workers: int, path: Path
) -> None:
    """Draw the strategies of all stages, those along `variables` if any are named. Raises TofuError."""
    from ..reports.drawing.file import write_drawing
    from ..reports.drawing.operator import operator_drawing

    offered = [strategy for bound in bounds for strategy in bound.strategies]
    known = {strategy.variable for strategy in offered}
    for variable in variables:
        if variable not in known:
            raise TofuError(
                f"{name} has no strategy along {variable!r}; its strategies are along "
                f"{', '.join(sorted(known)) or 'no variable'}"
            )
    if not offered:
        raise TofuError(
            f"{name} has no strategy to draw: none of its variables can be split for these shapes"
        )
    chosen = [strategy for strategy in offered if not variables or strategy.variable in variables]
    write_drawing(operator_drawing(name, chosen, workers), path)


def _print_kernels(rows: list[dict[str, Any]]) -> None:
    from ..reports.console import wide_console
    from ..reports.kernels import kernels_table

    wide_console().print(kernels_table(rows))


def _print(
    operator: Operator,
    attributes: dict[str, object],
    stages: list[dict[str, Any]],
    workers: int,
    regions: bool,
) -> None:
    from rich.text import Text

    from ..reports import strategies
    from ..reports.console import wide_console

    console = wide_console()
    given = ", ".join(f"{name}={value}" for name, value in attributes.items())
    console.print(Text.assemble((operator.name, "bold"), f" with {given}" if given else ""), soft_wrap=True)
    for stage in stages:
        console.print()
        console.print(stage["description"].rstrip(), soft_wrap=True)
        shapes = ", ".join(f"{name} {tuple(shape)}" for name, shape in stage["shapes"].items())
        outputs = ", ".join(str(tuple(shape)) for shape in stage["output_shapes"])
        console.print(f"{shapes} -> {outputs}", soft_wrap=True)
        console.print(
            "extents: " + ", ".join(f"{name} {n}" for name, n in stage["extents"].items()), soft_wrap=True
        )
        console.print(strategies.work(stage), soft_wrap=True)
        for table in strategies.tables(stage) if regions else ():
            console.print(table)
        for line in strategies.refusals(stage, workers):
            console.print(line, soft_wrap=True)
    if not regions:
        console.print()
        console.print(strategies.overview(stages, workers))
