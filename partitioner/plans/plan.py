"""Plans: a layout for every tensor and a strategy for every operation of one graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from ...dataflow.graph import Graph
from ...errors import GraphError, PlanError
from ...support.notebook_display import NotebookDisplay
from ..costs.plan_bytes import Contribution, count, count_bytes
from ..layouts.step_split import SplitLayout, Strategies, check_strategies
from .origin import PlanOrigin
from .unproven import UnprovenStep


@dataclass(frozen=True, slots=True)
class TransferSeconds:
    """What a plan's transfers take one after the other over a machine's links: the objective `time`.

    No plan with the same factors and ties takes less than `lower_bound`; None where the method proves none:
    only `exact` does.
    """

    seconds: float
    lower_bound: float | None


@dataclass(frozen=True, slots=True)
class Plan(NotebookDisplay):
    """How to run one graph on `workers` workers, `factors[0] * factors[1] * ...`, split step by step.

    `layouts` are by tensor name, `strategies` by operation name: per step the index variable to split
    along, None where a step does not split the operation. `cost_bytes` cross between workers in one
    iteration; `step_cost_bytes` add up to it. No plan that a recursive search with the same factors and
    the same ties can find costs less than `lower_bound_bytes`. `search_seconds` is None where the plan
    was read from a file, and takes no part in comparison. `source` is where the graph came from, if known.
    `unproven` are the steps whose choices are not proven to be the best given the steps before, because
    their problem was too wide to be solved exactly. `transfer_time` is known where the search minimised that;
    it is not kept in plan files.
    """

    fingerprint: str
    workers: int
    factors: tuple[int, ...]
    method: str
    layouts: Mapping[str, SplitLayout]
    strategies: Mapping[str, Strategies]
    cost_bytes: int
    step_cost_bytes: tuple[int, ...]
    lower_bound_bytes: int
    search_seconds: float | None = field(default=None, compare=False)
    source: PlanOrigin | None = None
    unproven: tuple[UnprovenStep, ...] = ()
    transfer_time: TransferSeconds | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        groups = " x ".join(map(str, self.factors)) or "1"
        return f"<{self.method} plan over {self.workers} workers ({groups}): {self.cost_bytes:,} bytes moved>"

    def save(self, path: str | Path) -> None:
        """Write a plan file; the same plan gives the same bytes. Raises PlanError where that fails."""
        from .plan_file import write_plan

        write_plan(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read a plan file. Raises PlanError where it is not one. `verify` checks it against a graph."""
        from .plan_file import read_plan

        return read_plan(Path(path))

    def verify(self, graph: Graph) -> None:
        """Raise PlanError unless the plan is for `graph`, every choice is legal and all bytes recount."""
        self.check_graph(graph)
        for tensor in graph.tensors:
            layout = self.layouts[tensor.name]
            place = f"tensor {tensor.name!r}"
            if layout.shape != tensor.shape or layout.factors != self.factors:
                raise PlanError(
                    f"{place}: the plan splits shape {layout.shape} by {layout.factors}, the graph has shape "
                    f"{tensor.shape} and the plan's factors are {self.factors}"
                )
            layout.check(place)
            if tensor.alias is not None and layout != self.layouts[graph.tensors[tensor.alias].name]:
                overwritten = graph.tensors[tensor.alias].name
                raise PlanError(f"{place} overwrites {overwritten!r} but has another layout; they must agree")
        for operation in graph.operations:
            place = f"operation {operation.name!r}"
            check_strategies(operation.bound, self.strategies[operation.name], self.factors, place)
        self._check_costs(graph)

    def check_graph(self, graph: Graph) -> None:
        """Raise PlanError unless names and fingerprint are those of `graph`."""
        require_graph(graph)
        _check_names("tensor", self.layouts, (tensor.name for tensor in graph.tensors))
        _check_names("operation", self.strategies, (operation.name for operation in graph.operations))
        actual = graph.fingerprint
        if actual != self.fingerprint:
            raise PlanError(
                f"the plan was made for a graph with fingerprint {self.fingerprint[:16]}, this graph "
                f"{graph.name!r} has {actual[:16]}: shapes, attributes or the optimizer's settings differ; "
                "partition it again"
            )

    def _check_costs(self, graph: Graph) -> None:
        totals = count_bytes(graph, self.layouts, self.strategies, self.factors)
        recounted = tuple(after - before for before, after in pairwise(totals))
        if recounted != self.step_cost_bytes or totals[-1] != self.cost_bytes:
            raise PlanError(
                f"the plan states {self.cost_bytes} bytes, by step {self.step_cost_bytes}, but its choices "
                f"move {totals[-1]}, by step {recounted}"
            )
        if not 0 <= self.lower_bound_bytes <= self.cost_bytes:
            raise PlanError(
                f"the plan states a lower bound of {self.lower_bound_bytes} bytes, which is not between 0 "
                f"and its cost of {self.cost_bytes}"
            )


def require_graph(value: object) -> None:
    """Raise GraphError where somebody gave a model, or a symbol, for its graph."""
    if not isinstance(value, Graph):
        raise GraphError(
            f"a graph is partitioned, not a {type(value).__name__}; a model's is model.training_graph(), "
            "a symbol's training_graph(symbol, shapes) of tofu.dataflow.training"
        )


def contributors(graph: Graph, plan: Plan) -> list[Contribution]:
    """What moves bytes in one iteration, most bytes first; they sum to the plan's cost."""
    plan.check_graph(graph)
    moving = [entry for entry in count(graph, plan.layouts, plan.strategies, plan.factors) if entry.bytes]
    return sorted(moving, key=lambda entry: -entry.bytes)


_OTHER_GRAPH = "; it was made for another model, optimizer or number of micro-batches: partition again"


def _check_names(what: str, planned: Mapping[str, object], expected: Iterable[str]) -> None:
    names = set(expected)
    missing, unknown = sorted(names - planned.keys()), sorted(planned.keys() - names)
    if missing:
        raise PlanError(
            f"the plan says nothing about {what} {missing[0]!r} ({len(missing)} in all){_OTHER_GRAPH}"
        )
    if unknown:
        raise PlanError(
            f"the plan names {what} {unknown[0]!r}, not in the graph ({len(unknown)} in all){_OTHER_GRAPH}"
        )
