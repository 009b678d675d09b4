"""Plans, and what can be asked of them: tasks, versions, bytes, checks, files, words of other systems."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from ...dataflow.graph import Graph
from ...errors import GraphError, PlanError
from ...machines.machine import WORKER_LIMIT
from ...support.checked_argument import path_of, require_kind, shown
from ...support.notebook_display import NotebookDisplay
from ...support.wording import alternatives, counted
from ..costs.movement import Movements
from ..costs.plan_bytes import Contribution, KnownCounts, count, count_bytes
from ..layouts.copies import ReadCopy, versions_read
from ..layouts.form_text import layout_text
from ..layouts.order import in_order
from ..layouts.partial import check_partial
from ..layouts.step_split import Strategies, check_strategies, plain_steps
from ..translation.dtensor import say_placements
from ..translation.jax import Spec, say_spec
from ..translation.named_mesh import NamedMesh, named_mesh
from ..translation.placements import Placements
from ..translation.translation import Translation, translate
from .assignment import Tasks, Versions
from .plan_file import decode_record, read_plan, write_plan
from .plan_record import PlanRecord


@dataclass(frozen=True, slots=True, repr=False)
class Plan(PlanRecord, NotebookDisplay):
    """How to run one graph on `workers` workers, split step by step."""

    @property
    def tasks(self) -> Tasks:
        """Map every operation's name to its tasks. Raises PlanError if the graph is not known."""
        return Tasks(graph_of(self), self.strategies, self.factors)

    @property
    def versions(self) -> Versions:
        """Map every tensor's name to its home and its copies. Raises PlanError if the graph is not known."""
        graph = graph_of(self)
        order = in_order(graph, self.written_order)
        return Versions(graph, self.strategies, self.layouts, self.copies, self.factors, order)

    @property
    def order(self) -> tuple[str, ...]:
        """Return the names of all operations in the order in which they run."""
        if self.written_order is not None:
            return self.written_order
        return tuple(self.strategies if self.graph is None else [o.name for o in self.graph.operations])

    def of(self, graph: Graph) -> Plan:
        """Return the plan with its graph. Raises PlanError if it is for another one."""
        self.check_graph(graph)
        return dataclasses.replace(self, graph=graph)

    def __repr__(self) -> str:
        groups = " x ".join(map(str, self.factors)) or "1"
        over = counted(self.workers, "worker")
        return f"<{self.method} plan over {over} ({groups}): {self.cost_bytes:,} bytes moved>"

    def save(self, path: str | Path) -> None:
        """Write a plan file; the same plan gives the same bytes. Raises PlanError if that fails."""

        write_plan(self, path_of(path, "path", PlanError))

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read a plan file. Raises PlanError if it is not one. `verify` checks the plan against a graph."""

        return read_plan(path_of(path, "path", PlanError), cls)

    def to_dtensor(self, mesh: NamedMesh | Mapping[str, int]) -> Translation[Placements]:
        """Say the plan as placements of `torch.distributed.tensor`, and name what these cannot say.

        `mesh` has sizes by name, such as `{"dp": 4, "tp": 2}`: workers in row-major order. Raises PlanError
        if it has another number of workers, or if the graph is not known.
        """
        graph = graph_of(self)
        return translate(self, graph, named_mesh(mesh, self.workers), "DTensor", say_placements)

    def to_jax(self, mesh: NamedMesh | Mapping[str, int]) -> Translation[Spec]:
        """Say the plan as partition specs of JAX, tuples of axis names, and name what these cannot say.

        `mesh` is as for `to_dtensor`. Raises PlanError as it does.
        """
        return translate(self, graph_of(self), named_mesh(mesh, self.workers), "JAX", say_spec)

    def verify(self, graph: Graph) -> None:
        """Raise PlanError unless the plan is for `graph`, every choice is legal and all bytes recount."""
        self._check_costs(self.checked_count(graph))

    def check_forms(self, graph: Graph) -> None:
        """Raise PlanError unless the plan is for `graph` and every choice is legal."""
        self.check_graph(graph)
        self._check_choices(graph, self.versions_read(graph))

    def checked_count(self, graph: Graph, known: KnownCounts | None = None) -> list[int]:
        """Check as `check_forms`, and count as `count`."""
        self.check_graph(graph)
        versions = self.versions_read(graph)
        self._check_choices(graph, versions)
        return count_bytes(graph, self.layouts, self.strategies, self.factors, versions, known)

    def _check_choices(self, graph: Graph, versions: Mapping[tuple[int, int], ReadCopy]) -> None:
        """Raise PlanError unless every choice is legal. Equal choices are checked once."""
        checked: set[object] = set()
        for tensor in graph.tensors:
            layout = self.layouts[tensor.name]
            place = f"tensor {tensor.name!r}"
            if layout.shape != tensor.shape or layout.factors != self.factors:
                raise PlanError(
                    f"{place}: the plan splits shape {layout.shape} by {layout.factors}; the graph has shape "
                    f"{tensor.shape} and the plan's factors are {self.factors}"
                )
            if id(layout) not in checked and layout not in checked:
                layout.check(place)
                checked.add(layout)
            checked.add(id(layout))
            if tensor.alias is not None:
                overwritten = graph.tensors[tensor.alias].name
                other = self.layouts[overwritten]
                if layout is not other and layout != other:
                    raise PlanError(
                        f"{place} overwrites {overwritten!r} but has another layout: "
                        f"{layout_text(layout.form, layout.via)}, and not "
                        f"{layout_text(other.form, other.via)}; give both one layout"
                    )
        for operation in graph.operations:
            form = self.strategies[operation.name]
            same, equal = (id(operation.bound), id(form)), (operation.bound, form)
            if same not in checked and equal not in checked:
                check_strategies(operation.bound, form, self.factors, f"operation {operation.name!r}")
                checked.add(equal)
            checked.add(same)
        check_partial(graph, self.layouts, self.strategies, self.copies, versions)
        self._check_copies(graph, versions)

    def _check_copies(self, graph: Graph, versions: Mapping[tuple[int, int], ReadCopy]) -> None:
        """Raise PlanError if a copy lacks what its readers need, or its source what the copy holds."""
        movements = Movements(self.workers, self.factors)
        for (number, tensor), copy in versions.items():
            operation = graph.operations[number]
            operator = movements.operator(operation.bound, self.strategies[operation.name])
            held, source = movements.layout(copy.layout), movements.layout(copy.source)
            try:
                movements.collections(source, held)
                for place, name in operation.bound.read_places:
                    if operation.inputs[place] == tensor:
                        movements.fetches(operator.inputs[name], held)
            except PlanError as error:
                raise PlanError(
                    f"copy {copy.number} of tensor {graph.tensors[tensor].name!r}, which {operation.name!r} "
                    f"reads: {error}"
                ) from error

    def count(self, graph: Graph, known: KnownCounts | None = None) -> list[int]:
        """Count the bytes that move after no step, one, and so on up to all.

        `known` has the counts of other plans with the same factors.
        """
        versions = self.versions_read(graph)
        return count_bytes(graph, self.layouts, self.strategies, self.factors, versions, known)

    def split_along(self, operation: str) -> Strategies:
        """Return the index variable that each step splits. Raises PlanError if another form is used."""
        try:
            return tuple(
                None if entry is None else str(entry) for entry in plain_steps(self.strategies[operation])
            )
        except PlanError as error:
            raise PlanError(f"operation {operation!r}: {error}") from error

    def versions_read(self, graph: Graph) -> dict[tuple[int, int], ReadCopy]:
        """Return the copies that operations read, by the numbers of operation and tensor.

        Raises PlanError for an order or a copy that cannot be.
        """
        return versions_read(graph, in_order(graph, self.written_order), self.layouts, self.copies)

    def contributions(self, graph: Graph) -> list[Contribution]:
        """Count the bytes that every operation moves for every tensor it touches, with zeros."""
        versions = self.versions_read(graph)
        return count(graph, self.layouts, self.strategies, self.factors, versions)

    def check_graph(self, graph: Graph) -> None:
        """Raise PlanError unless names and fingerprint are those of `graph`."""
        require_graph(graph)
        if (self.merged or self.rewrites) and graph.fingerprint != self.fingerprint:
            changed = "merged operations"
            if self.rewrites:
                first = next(iter(self.rewrites))
                changed = f"other gradients or lookups of {first!r} ({len(self.rewrites)} in all)"
            raise PlanError(
                f"the plan is for graph {graph.name!r} with {changed}; use tofu.sync.rewrite(graph, "
                "plan.workers, plan), as commands do. If this is the rewritten graph, its batch size, other "
                "shapes, attributes or the optimizer's settings differ: partition it again"
            )
        _check_names("tensor", self.layouts, (tensor.name for tensor in graph.tensors))
        _check_names("operation", self.strategies, (operation.name for operation in graph.operations))
        self._check_groups()
        actual = graph.fingerprint
        if actual != self.fingerprint:
            raise PlanError(
                f"the plan was made for a graph with fingerprint {self.fingerprint[:16]}, but graph "
                f"{graph.name!r} has {actual[:16]}: shapes, attributes or the optimizer's settings differ; "
                "partition it again"
            )

    def _check_groups(self) -> None:
        """Check that tensors that are collected together are tensors of the plan, each in one group."""
        group_of: dict[str, int] = {}
        for number, group in enumerate(self.together):
            for name in group:
                if name not in self.layouts:
                    raise PlanError(
                        f"tensor {name!r} is to be collected together with others, but the plan has no "
                        f"tensor of that name{alternatives(name, list(self.layouts))}"
                    )
                if group_of.setdefault(name, number) != number:
                    raise PlanError(
                        f"tensor {name!r} is to be collected together with groups {group_of[name]} and "
                        f"{number} of 'together'; put it into one of them"
                    )

    def groups(self, graph: Graph) -> list[list[int]]:
        """Return the tensors that are collected together, by number."""
        numbers = {tensor.name: tensor.index for tensor in graph.tensors}
        return [[numbers[name] for name in group] for group in self.together]

    def _check_costs(self, totals: list[int]) -> None:
        recounted = tuple(after - before for before, after in pairwise(totals))
        if recounted != self.step_cost_bytes or totals[-1] != self.cost_bytes:
            raise PlanError(
                f"the plan states {self.cost_bytes} bytes, by step {self.step_cost_bytes}, but its choices "
                f"move {totals[-1]}, by step {recounted}; partition the graph again"
            )
        if not 0 <= self.lower_bound_bytes <= self.cost_bytes:
            raise PlanError(
                f"the plan states a lower bound of {self.lower_bound_bytes} bytes, which is not between 0 "
                f"and its cost of {self.cost_bytes}; partition the graph again"
            )


def graph_of(plan: Plan) -> Graph:
    """Return the graph that a plan is for. Raises PlanError if it is not known."""
    if plan.graph is None:
        raise PlanError("the plan was read from a file, which has no graph; use plan.of(graph)")
    return plan.graph


def require_graph(value: object) -> None:
    """Raise GraphError if the value is not a graph, for example a model or a symbol."""
    remedy = "call model.training_graph() for a model, or tofu.training_graph(symbol, shapes) for a symbol"
    require_kind(value, Graph, remedy, GraphError)


def require_plan(value: object) -> None:
    """Raise PlanError if the value is not a plan, for example a graph or the name of a file."""
    remedy = "call tofu.partition(graph, workers), or tofu.Plan.load(path) for a file"
    require_kind(value, Plan, remedy, PlanError)


def require_workers(workers: object) -> None:
    """Raise PlanError unless the value is a number of workers."""
    if isinstance(workers, bool) or not isinstance(workers, int):
        raise PlanError(f"the number of workers must be an integer, not {shown(workers)}")
    if not 1 <= workers <= WORKER_LIMIT:
        raise PlanError(f"cannot partition over {shown(workers)} workers; use 1 to {WORKER_LIMIT}")


def contributors(graph: Graph, plan: Plan) -> list[Contribution]:
    """List the contributions to one iteration's bytes, largest first; they sum to the plan's cost.

    Raises PlanError if the plan is for another graph, or has a choice that is not legal.
    """
    plan.check_forms(graph)
    moving = [entry for entry in plan.contributions(graph) if entry.bytes]
    return sorted(moving, key=lambda entry: -entry.bytes)


_OTHER_GRAPH = "; it was made for another model, optimizer or number of micro-batches: partition again"


def _check_names(what: str, planned: Mapping[str, object], expected: Iterable[str]) -> None:
    names = set(expected)
    if planned.keys() == names:
        return
    missing, unknown = sorted(names - planned.keys()), sorted(planned.keys() - names)
    if missing:
        raise PlanError(
            f"the plan does not contain {what} {missing[0]!r} ({len(missing)} in all){_OTHER_GRAPH}"
        )
    if unknown:
        raise PlanError(
            f"the plan names {what} {unknown[0]!r}, which is not in the graph ({len(unknown)} in all)"
            f"{_OTHER_GRAPH}"
        )


def decode_plan(data: bytes) -> Plan:
    """Return the plan whose file has these contents. Raises PlanError naming the place and what is wrong."""
    return decode_record(data, Plan)
