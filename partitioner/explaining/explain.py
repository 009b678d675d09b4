"""Explain what a plan chose for an operation or tensor: its parts, the bytes that move, and the alternatives.

Bytes and parts are those of any plan. The prices of alternatives come from the tables of the search, which
know choices in steps alone (`prices`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ...analyzer.bind.bound import Bound
from ...dataflow.graph import Graph
from ...errors import PlanError
from ...programs.parts import Holding, Task
from ...support.checked_argument import require
from ...support.wording import alternatives
from ..costs.plan_bytes import Contribution
from ..layouts.forms import Form
from ..layouts.order import in_order
from ..layouts.parts import holdings, tasks, without_part
from ..layouts.step_split import Layout
from ..plans.plan import Plan, require_plan
from ..problem.classes import build_problem
from ..problem.constraints import What
from .copies import KeptCopy, kept_copies
from .prices import Alternative, Prices, read_as, why_unpriced


@dataclass(frozen=True, slots=True)
class Explanation:
    """A plan's choice for one operation or tensor, the bytes that move for it, and the alternatives."""

    what: What
    """Whether this explains an operation or a tensor."""

    name: str
    """Its name."""

    shape: tuple[tuple[str, int], ...]
    """The labels along which it could be split, with their extents."""

    choice: Form
    """The plan's choice: for steps, the label at each step."""

    via: Form | None
    """Where partial results of a tensor are reduced on their way home; None if at home."""

    parts: tuple[Task, ...] | tuple[Holding, ...]
    """The tasks of the operation, or the holdings of the tensor."""

    idle: tuple[int, ...]
    """The workers without a part."""

    place: int | None
    """The operation's place in the plan's own order, from 1 on; None if that is the graph's order."""

    copies: tuple[KeptCopy, ...]
    """The copies of the tensor, or those that the operation reads."""

    decided_together: tuple[str, ...]
    """All names that this one decision is about."""

    moved: tuple[Contribution, ...]
    """The bytes between every such operation and its tensors, zeros included."""

    bytes: int
    """The sum of these bytes."""

    plan_bytes: int
    """The cost of the whole plan."""

    fed: bool
    """Whether a loader decides where the tensor is, so that its alternatives are copies for its readers."""

    read_as: Form
    """The choice that has alternatives: the copy for the readers of what is fed, if there is one."""

    alternatives: tuple[Alternative, ...]
    """The choices that were priced, the plan's own among them, by `following_bytes` from the cheapest on."""

    complete: bool
    """Whether the alternatives are all that exist."""

    unpriced: str
    """Why alternatives are not priced; empty if they are."""

    @property
    def chosen(self) -> Alternative | None:
        """Return the alternative that the plan chose; None if alternatives are not priced."""
        return next((entry for entry in self.alternatives if entry.choice == self.read_as), None)


def explain(graph: Graph, plan: Plan, name: str, what: What | None = None) -> Explanation:
    """Explain the operation or tensor `name`; `what` decides if both have that name.

    If `what` is None, the operation is explained. Raises GraphError for a value that is not a graph, and
    PlanError if the plan is not for `graph` or has no such name.
    """
    require_plan(plan)
    require(isinstance(name, str), name, "name", "the name of an operation or a tensor", PlanError)
    explainer = Explainer(graph, plan)
    operations = {operation.name: operation.index for operation in graph.operations}
    tensors = {tensor.name: tensor.index for tensor in graph.tensors}
    if name in operations and what != "tensor":
        return explainer.operator(operations[name])
    if name in tensors and what != "operator":
        return explainer.tensor(tensors[name])
    known = {"operator": operations, "tensor": tensors, None: {**operations, **tensors}}[what]
    raise PlanError(f"the plan has no {what or 'operator or tensor'} {name!r}{alternatives(name, known)}")


class Explainer:
    """Explains operations and tensors of one plan by their indices; shared results are computed once."""

    def __init__(self, graph: Graph, plan: Plan) -> None:
        """Prepare to explain a plan. Raises PlanError if it is not a plan for `graph`."""
        plan.check_forms(graph)
        problem = build_problem(graph, space=plan.space)
        self._graph = graph
        self._plan = plan
        self.unpriced = why_unpriced(plan, problem)
        """Why alternatives are not priced; empty if they are."""
        self._prices = None if self.unpriced else Prices(plan, problem)
        self._classes: dict[What, Sequence[int]] = {
            "operator": range(len(graph.operations)) if self.unpriced else problem.operation_class,
            "tensor": graph.roots if self.unpriced else problem.tensor_class,
        }
        self._members = {what: _members(classes) for what, classes in self._classes.items()}
        order = [operation.name for operation in in_order(graph, plan.written_order)]
        self._places = (
            {} if plan.written_order is None else {name: place for place, name in enumerate(order, 1)}
        )
        self._copies: dict[What, dict[str, list[KeptCopy]]] = {
            "operator": defaultdict(list),
            "tensor": defaultdict(list),
        }
        for copy in kept_copies(plan, order):
            self._copies["tensor"][copy.tensor].append(copy)
            for reader in copy.readers:
                self._copies["operator"][reader].append(copy)
        self._parts: dict[Layout | tuple[Bound, Form], tuple[Task, ...] | tuple[Holding, ...]] = {}
        self._moved: dict[What, dict[str, list[Contribution]]] = {
            "operator": defaultdict(list),
            "tensor": defaultdict(list),
        }
        for entry in plan.contributions(graph):
            self._moved["operator"][entry.operation].append(entry)
            self._moved["tensor"][entry.tensor].append(entry)

    def operator(self, index: int) -> Explanation:
        """Explain the operation with this index."""
        operation = self._graph.operations[index]
        form = self._plan.strategies[operation.name]
        key = operation.bound, form
        if key not in self._parts:
            self._parts[key] = tasks(*key, self._plan.factors)
        return self._explanation(
            "operator", index, tuple(operation.bound.extents.items()), (form, None), self._parts[key]
        )

    def tensor(self, index: int) -> Explanation:
        """Explain the tensor with this index."""
        tensor = self._graph.tensors[index]
        layout = self._plan.layouts[tensor.name]
        if layout not in self._parts:
            self._parts[layout] = holdings(layout)
        extents = tuple((str(axis), extent) for axis, extent in enumerate(tensor.shape))
        return self._explanation("tensor", index, extents, (layout.form, layout.via), self._parts[layout])

    def _explanation(
        self,
        what: What,
        index: int,
        shape: tuple[tuple[str, int], ...],
        choice: tuple[Form, Form | None],
        parts: tuple[Task, ...] | tuple[Holding, ...],
    ) -> Explanation:
        names = self._graph.operations if what == "operator" else self._graph.tensors
        name = names[index].name
        members = self._members[what][self._classes[what][index]]
        together = tuple(names[member].name for member in members)
        moved = tuple(entry for member in together for entry in self._moved[what][member])
        priced, complete = ((), False) if self._prices is None else self._prices.alternatives(what, index)
        fed = what == "tensor" and self._prices is not None and self._prices.fed(index)
        return Explanation(
            what=what,
            name=name,
            shape=shape,
            choice=choice[0],
            via=choice[1],
            parts=parts,
            idle=without_part(parts, self._plan.workers),
            place=self._places.get(name) if what == "operator" else None,
            copies=tuple(self._copies[what].get(name, ())),
            decided_together=together,
            moved=moved,
            bytes=sum(entry.bytes for entry in moved),
            plan_bytes=self._plan.cost_bytes,
            fed=fed,
            read_as=choice[0] if what == "operator" else read_as(self._plan, name, fed),
            alternatives=priced,
            complete=complete,
            unpriced=self.unpriced,
        )


def _members(classes: Sequence[int]) -> dict[int, list[int]]:
    """Return the indices that are in every class."""
    found: dict[int, list[int]] = defaultdict(list)
    for index, number in enumerate(classes):
        found[number].append(index)
    return found
