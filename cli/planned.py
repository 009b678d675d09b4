"""Options for the graph that a plan is for. The plan file supplies what a user leaves out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import PlanError
from . import python_file
from .number_ranges import IntegerRange
from .options import (
    Shape,
    accumulate_option,
    check_unroll,
    dtype_option,
    recompute_option,
    shape_option,
    unroll_option,
)
from .target import load_model

if TYPE_CHECKING:
    from ..dataflow.graph import Graph
    from ..partitioner import Plan
    from ..partitioner.plans.origin import PlanOrigin


@dataclass(frozen=True)
class Planned:
    """A user's settings of the graph. A field is None if it is left out: a plan file may supply its value."""

    batch: int | None
    """The samples in one iteration."""

    shapes: dict[str, Shape] | None
    """By name, the shapes of data and labels."""

    optimizer: str | None
    """The optimizer's name."""

    dtype: str | None
    """The element type in which the model computes."""

    accumulate: int | None
    """The number of micro-batches in one iteration."""

    recompute: int | None
    """The number of segments whose activations are computed again."""

    unroll: bool | None
    """Whether the graph has the operations of all micro-batches."""

    def planned(
        self, context: click.Context, target: str, model: str | None, workers: int, method: str
    ) -> tuple[Graph, Plan]:
        """Return the plan in the file TARGET and its graph, or search one for the model TARGET.

        Raises PlanError if the plan is for other workers or another graph.
        """
        from ..api import partition
        from ..partitioner.checking.check_plan import check_workers

        plan = plan_in(target)
        if plan is None:
            if model is not None:
                raise click.UsageError(
                    f"{target} is not a plan file, so {model} cannot follow it; name one MODEL"
                )
            graph = self.graph_of(target)
            return graph, partition(graph, workers, method)
        if _given(context, "method"):
            raise click.UsageError("--method searches a plan for MODEL; leave it out for a plan file")
        if _given(context, "workers"):
            check_workers(plan, workers)
        graph = self.graph(plan, model)
        plan.verify(graph)
        return graph, plan

    def graph(self, plan: Plan, model: str | None) -> Graph:
        """Return the training graph of MODEL, or of the plan file's model, rewritten as the plan says.

        Raises PlanError if neither names a model.
        """
        from ..sync import rewrite

        name, source = model_name(plan, model), plan.source
        graph = self.graph_of(name, source if source is not None and source.model == name else None)
        return rewrite(graph, plan.workers, plan)

    def source(self, model: str, recorded: PlanOrigin | None = None) -> PlanOrigin:
        """Return what a plan file records of the graph; options that are left out are as for `graph_of`."""
        from ..partitioner.plans.origin import PlanOrigin

        given = {field.name: getattr(self, field.name) for field in fields(self)}
        chosen = {key: value for key, value in given.items() if value is not None}
        found = replace(recorded or PlanOrigin(model), **chosen)
        check_unroll(found.accumulate, found.unroll)
        return found

    def graph_of(self, model: str, recorded: PlanOrigin | None = None) -> Graph:
        """Return the training graph of MODEL; options left out are as recorded, or those of `tofu plan`."""
        source = self.source(model, recorded)
        found = load_model(model, source.batch, dict(source.shapes))
        return found.training_graph(
            source.optimizer,
            dtype=source.dtype,
            accumulate=source.accumulate,
            unroll=source.unroll,
            recompute=source.recompute,
        )


def model_name(plan: Plan, model: str | None) -> str:
    """Return MODEL as given, or as recorded in the plan file.

    A plan file may come from anywhere, so Python code that it names is never run unasked. Raises PlanError if
    MODEL is neither given nor recorded, or if the recorded one is Python code.
    """
    if model is not None:
        return model
    if plan.source is None:
        raise PlanError("the plan file does not say which model it is for; name MODEL after it")
    if needs_model(plan):
        raise PlanError(
            f"the plan was made for the Python function {plan.source.model!r}, which is not run "
            f"because a file says so; name MODEL after it"
        )
    return plan.source.model


def plan_to_follow(context: click.Context, path: Path) -> Plan:
    """Return the plan in a file.

    Raises UsageError if options ask for another one, PlanError for a bad file.
    """
    from ..partitioner import Plan
    from ..partitioner.checking.check_plan import check_workers

    plan = Plan.load(path)
    for option in ("method", "merge"):
        if _given(context, option):
            raise click.UsageError(f"--{option} searches a plan, and --plan names one; leave out one of both")
    if _given(context, "workers"):
        check_workers(plan, context.params["workers"])
    return plan


def _given(context: click.Context, option: str) -> bool:
    """Tell whether an option is on the command line."""
    return context.get_parameter_source(option) is click.core.ParameterSource.COMMANDLINE


def plan_in(target: str) -> Plan | None:
    """Return the plan in a file; None if `target` names a model. Raises PlanError for a bad plan file."""
    from ..partitioner import Plan
    from ..partitioner.plans.plan_file import is_plan_file

    path = Path(target)
    return Plan.load(path) if path.suffix == ".json" and is_plan_file(path) else None


def needs_model(plan: Plan) -> bool:
    """Return whether the file does not say what it was made for, or names Python code, which is not run
    unasked.
    """
    return plan.source is None or python_file.split(plan.source.model) is not None


def planned_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the options that say what a graph is, all as in the plan file if left out, as one `given`."""

    @wraps(command)
    def gathered(
        batch: int | None,
        shapes: dict[str, Shape],
        optimizer: str | None,
        dtype: str | None,
        accumulate: int | None,
        unroll: bool | None,
        recompute: int | None,
        **others: Any,
    ) -> None:
        given = Planned(batch, shapes or None, optimizer, dtype, accumulate, recompute, unroll)
        command(given=given, **others)

    for option in (
        recompute_option(default=None),
        unroll_option(default=None),
        accumulate_option(default=None),
        dtype_option(default=None),
        click.option(
            "--optimizer", help="The optimizer whose updates the graph contains; as planned if left out."
        ),
        shape_option("An input's shape, for graph files and for ONNX files that leave it open."),
        click.option("--batch", "-b", type=IntegerRange(1), help="Batch size; as planned if left out."),
    ):
        gathered = option(gathered)
    return gathered
