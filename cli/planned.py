"""The graph that a plan file was made for, on the command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from ..errors import PlanError
from . import python_file
from .options import Shape, ShapeOption
from .target import load_model

if TYPE_CHECKING:
    from ..dataflow.graph import Graph
    from ..partitioner import Plan


@dataclass(frozen=True)
class Planned:
    """What a user said of the graph; a plan file's own record stands in for what was left out."""

    model: str | None
    batch: int | None
    shapes: dict[str, Shape]
    optimizer: str | None

    def name(self, plan: Plan) -> str:
        """MODEL, as given or recorded. Raises PlanError where it is neither, or recorded but Python code.

        A plan file may come from anywhere, so what it names is never run unasked.
        """
        if self.model is not None:
            return self.model
        if plan.source is None:
            raise PlanError("the plan file does not say which model it is for; name MODEL after it")
        if python_file.split(plan.source.model) is not None:
            raise PlanError(
                f"the plan was made for the Python function {plan.source.model!r}, which is not run "
                f"because a file says so; name MODEL after it"
            )
        return plan.source.model

    def graph(self, plan: Plan) -> Graph:
        """The training graph."""
        name, source = self.name(plan), plan.source
        recorded = source if source is not None and self.model in (None, source.model) else None
        batch, shapes, optimizer = self.batch, self.shapes, self.optimizer
        if recorded is not None:
            batch = recorded.batch if batch is None else batch
            shapes = shapes or dict(recorded.shapes)
            optimizer = optimizer or recorded.optimizer
        return load_model(name, batch, shapes).training_graph(optimizer=optimizer or "sgd")


def needs_model(plan: Plan) -> bool:
    """Whether the file does not say what it was made for, or names Python code, which is not run unasked."""
    return plan.source is None or python_file.split(plan.source.model) is not None


def planned_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--batch`, `--shape` and `--optimizer`, all as in the plan file if left out."""
    for option in (
        click.option("--optimizer", help="Whose updates the graph contains; as planned if left out."),
        click.option(
            "--shape", "shapes", type=ShapeOption(), multiple=True, help="An input's shape, for graph files."
        ),
        click.option("--batch", "-b", type=click.IntRange(1), help="Batch size; as planned if left out."),
    ):
        command = option(command)
    return command
