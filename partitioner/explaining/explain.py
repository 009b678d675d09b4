"""Explain why a plan splits an operation or tensor as it does: the cost of its choice and of all others.

All bytes come from the tables of the search. An alternative is priced twice. The first price leaves
everything else in the plan unchanged. The second lets every neighbour (the tensors of an operation, the
operations of a tensor) choose again, while the neighbours of those stay unchanged. Tied operations, and
tensors that share storage, are one decision and change together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Shape
from ...dataflow.graph import Graph
from ...errors import PlanError
from ...support.wording import alternatives
from ..costs.plan_bytes import Contribution
from ..layouts.choices import (
    Counts,
    OperatorChoices,
    TensorChoices,
    operator_choices,
    splittable,
    tensor_choices,
)
from ..layouts.step_split import Choice, Dimensions, Strategies
from ..plans.plan import Plan
from ..problem.classes import build_problem
from ..problem.constraints import What
from ..problem.moved_bytes import MovedBytes
from ..problem.problem import Link
from ..problem.sequences import candidates

ALTERNATIVE_LIMIT = 512
"""If there are more sequences, only those near the chosen one are priced, see `near_sequences`."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another choice, and the bytes of the whole plan with it."""

    choice: Choice
    """The choice at each step."""

    held_bytes: int
    """The bytes if nothing else changes."""

    following_bytes: int
    """The bytes if the neighbours choose again."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """A plan's choice for one operation or tensor, the bytes that move for it, and the alternatives."""

    what: What
    """Whether this explains an operation or a tensor."""

    name: str
    """Its name."""

    shape: tuple[tuple[str, int], ...]
    """The labels along which it could be split, with their extents."""

    choice: Choice
    """The plan's choice at each step."""

    decided_together: tuple[str, ...]
    """All names that this one decision is about."""

    moved: tuple[Contribution, ...]
    """The bytes between every such operation and its tensors, zeros included."""

    bytes: int
    """The sum of these bytes."""

    plan_bytes: int
    """The cost of the whole plan."""

    alternatives: tuple[Alternative, ...]
    """The choices that were priced, the plan's own among them, by `following_bytes` from the cheapest on."""

    complete: bool
    """Whether the alternatives are all that exist."""

    @property
    def chosen(self) -> Alternative:
        """Return the alternative that the plan chose."""
        return next(entry for entry in self.alternatives if entry.choice == self.choice)


def explain(graph: Graph, plan: Plan, name: str, what: What | None = None) -> Explanation:
    """Explain the operation or tensor `name`; `what` decides if both have that name.

    If `what` is None, the operation is explained. Raises PlanError if the plan is not for `graph` or has no
    such name.
    """
    operations = {operation.name: operation.index for operation in graph.operations}
    tensors = {tensor.name: tensor.index for tensor in graph.tensors}
    explainer = Explainer(graph, plan)
    if name in operations and what != "tensor":
        return explainer.operator(operations[name])
    if name in tensors and what != "operator":
        return explainer.tensor(tensors[name])
    known = {"operator": operations, "tensor": tensors, None: {**operations, **tensors}}[what]
    raise PlanError(f"the plan has no {what or 'operator or tensor'} {name!r}{alternatives(name, known)}")


class Explainer:
    """Explains operations and tensors of one plan by their indices; shared results are computed once."""

    def __init__(self, graph: Graph, plan: Plan) -> None:
        """Prepare to explain a plan. Raises PlanError if it is not for `graph`."""
        plan.check_graph(graph)
        self._problem = problem = build_problem(graph)
        self._graph = graph
        self._plan = plan
        self._objective = MovedBytes()
        self._classes: dict[What, Sequence[int]] = {
            "operator": problem.operation_class,
            "tensor": problem.tensor_class,
        }
        self._members = {what: _members(classes) for what, classes in self._classes.items()}
        self._links = {what: _by_class(problem.links, what) for what in self._classes}
        self._operator_choices: dict[tuple[Bound, Strategies], tuple[OperatorChoices, bool]] = {}
        self._tensor_choices: dict[tuple[Shape, Dimensions], tuple[TensorChoices, bool]] = {}
        self._totals: dict[tuple[What, int], Counts] = {}
        self._moved: dict[What, dict[str, list[Contribution]]] = {
            "operator": defaultdict(list),
            "tensor": defaultdict(list),
        }
        for entry in plan.contributions(graph):
            self._moved["operator"][entry.operation].append(entry)
            self._moved["tensor"][entry.tensor].append(entry)

    def operator(self, index: int) -> Explanation:
        """Explain the operation with this index."""
        extents = self._graph.operations[index].bound.extents
        return self._explanation("operator", index, tuple(extents.items()))

    def tensor(self, index: int) -> Explanation:
        """Explain the tensor with this index."""
        shape = self._graph.tensors[index].shape
        return self._explanation("tensor", index, tuple((str(axis), n) for axis, n in enumerate(shape)))

    def _explanation(self, what: What, index: int, shape: tuple[tuple[str, int], ...]) -> Explanation:
        number = self._classes[what][index]
        choices, complete = self._operator(number) if what == "operator" else self._tensor(number)
        held, following = self._priced(what, number, len(choices.sequences))
        names = self._graph.operations if what == "operator" else self._graph.tensors
        together = tuple(names[member].name for member in self._members[what][number])
        moved = tuple(entry for member in together for entry in self._moved[what][member])
        base = self._plan.cost_bytes - int(held[0])
        priced = [
            Alternative(sequence, base + int(alone), base + int(both))
            for sequence, alone, both in zip(choices.sequences, held, following, strict=True)
        ]
        order = sorted(range(len(priced)), key=lambda i: (priced[i].following_bytes, priced[i].held_bytes, i))
        return Explanation(
            what=what,
            name=names[index].name,
            shape=shape,
            choice=choices.sequences[0],
            decided_together=together,
            moved=moved,
            bytes=sum(entry.bytes for entry in moved),
            plan_bytes=self._plan.cost_bytes,
            alternatives=tuple(priced[i] for i in order),
            complete=complete,
        )

    def _priced(self, what: What, number: int, choices: int) -> tuple[Counts, Counts]:
        """Price each choice of a class: with all else held, and with the neighbours choosing again."""
        other: What = "tensor" if what == "operator" else "operator"
        held, following = np.zeros((2, choices), np.int64)
        for neighbour, links in _by_class(self._links[what][number], other).items():
            mine = np.sum([self._table(link, what) for link in links], axis=0)
            elsewhere = self._total(other, neighbour) - mine[0]
            held += mine[:, 0]
            following += (mine + elsewhere).min(axis=1) - elsewhere[0]
        return held, following

    def _total(self, what: What, number: int) -> Counts:
        """Count the bytes that move for each choice of a class, with all neighbours held."""
        key = (what, number)
        if key not in self._totals:
            self._totals[key] = np.sum(
                [self._table(link, what)[:, 0] for link in self._links[what][number]], axis=0
            )
        return self._totals[key]

    def _table(self, link: Link, what: What) -> Counts:
        """Tabulate bytes by the choices of one side of a link, then the other, the plan's choices first."""
        operator, tensor = self._operator(link.operator)[0], self._tensor(link.tensor)[0]
        table = self._objective.table(operator, tensor, link.use, link.weight)
        return table if what == "operator" else table.T

    def _operator(self, number: int) -> tuple[OperatorChoices, bool]:
        """Return choices of an operator, the chosen one first, and whether they are all that exist."""
        bound, factors = self._problem.operators[number], self._plan.factors
        chosen = self._plan.split_along(self._graph.operations[self._members["operator"][number][0]].name)
        key = (bound, chosen)
        if key not in self._operator_choices:
            sequences, complete = candidates(splittable(bound), factors, chosen, ALTERNATIVE_LIMIT)
            self._operator_choices[key] = operator_choices(bound, sequences, factors), complete
        return self._operator_choices[key]

    def _tensor(self, number: int) -> tuple[TensorChoices, bool]:
        """Return choices of a tensor, the chosen one first, and whether they are all that exist."""
        shape, factors = self._problem.shapes[number], self._plan.factors
        chosen = self._plan.layouts[self._graph.tensors[self._members["tensor"][number][0]].name].dimensions
        key = (shape, chosen)
        if key not in self._tensor_choices:
            sequences, complete = candidates(
                dict(enumerate(shape)), factors, chosen, ALTERNATIVE_LIMIT, self._plan.space.replicate
            )
            self._tensor_choices[key] = tensor_choices(shape, sequences, factors), complete
        return self._tensor_choices[key]


def _members(classes: Sequence[int]) -> dict[int, list[int]]:
    """Return the indices that are in every class."""
    found: dict[int, list[int]] = defaultdict(list)
    for index, number in enumerate(classes):
        found[number].append(index)
    return found


def _by_class(links: Iterable[Link], side: What) -> dict[int, list[Link]]:
    """Group links by the class on one side, in order of appearance."""
    found: dict[int, list[Link]] = defaultdict(list)
    for link in links:
        found[link.operator if side == "operator" else link.tensor].append(link)
    return found
