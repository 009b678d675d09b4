"""Why a plan splits one operation or tensor as it does: what that costs, and what anything else would.

All bytes come from the tables of the search. An alternative is priced twice: with everything else in the
plan as it is, and with every neighbour free to choose again (the tensors of an operation, the operations
of a tensor), their own other neighbours held. Operations that are tied and tensors that share storage are
one decision, and change together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..analyzer.bound import Bound
from ..analyzer.region import Shape
from ..dataflow.graph import Graph
from ..dataflow.naming import suggestion
from ..errors import PlanError
from .constraints import What
from .cost import Counts
from .network import Link, build_network
from .plan import Plan
from .recount import Contribution, count
from .sequences import candidates
from .tables import (
    Choice,
    Dimensions,
    OperatorChoices,
    Strategies,
    Tables,
    TensorChoices,
    operator_choices,
    splittable,
    tensor_choices,
)

ALTERNATIVE_LIMIT = 512
"""Sequences beyond which only those are priced that differ from the chosen one in a step or in order."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """A choice per step, and the bytes of the whole plan with it.

    `held_bytes` where nothing else changes, `following_bytes` where the neighbours choose again.
    """

    choice: Choice
    held_bytes: int
    following_bytes: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a plan chose for one operation or tensor, what that moves, and what else there is.

    `decided_together` are all names under this decision, `moved` every pair of an operation and a tensor
    of theirs between which bytes may move (zeros included), `bytes` their sum. `alternatives` contain the
    chosen one and come cheapest first, neighbours following. `complete` says whether they are all there are.
    """

    what: What
    name: str
    shape: tuple[tuple[str, int], ...]
    choice: Choice
    decided_together: tuple[str, ...]
    moved: tuple[Contribution, ...]
    bytes: int
    plan_bytes: int
    alternatives: tuple[Alternative, ...]
    complete: bool

    @property
    def chosen(self) -> Alternative:
        """The alternative that the plan chose."""
        return next(entry for entry in self.alternatives if entry.choice == self.choice)


def explain(graph: Graph, plan: Plan, name: str, what: What | None = None) -> Explanation:
    """Explain the operation or tensor `name`; `what` decides where both have that name.

    An operation comes first where `what` is None. Raises PlanError where the plan is not for `graph`, or
    there is no such name.
    """
    operations = {operation.name: operation.index for operation in graph.operations}
    tensors = {tensor.name: tensor.index for tensor in graph.tensors}
    explainer = Explainer(graph, plan)
    if name in operations and what != "tensor":
        return explainer.operator(operations[name])
    if name in tensors and what != "operator":
        return explainer.tensor(tensors[name])
    known = {"operator": operations, "tensor": tensors, None: {**operations, **tensors}}[what]
    raise PlanError(f"the plan has no {what or 'operator or tensor'} {name!r}{suggestion(name, known)}")


class Explainer:
    """Explains operations and tensors of one plan by their indices; what they share is computed once."""

    def __init__(self, graph: Graph, plan: Plan) -> None:
        """Raises PlanError where the plan is not for `graph`."""
        plan.check_graph(graph)
        self._network = network = build_network(graph)
        self._graph = graph
        self._plan = plan
        self._tables = Tables(plan.factors)
        self._operations = _members(network.operation_class)
        self._tensors = _members(network.tensor_class)
        self._links_of_operator: dict[int, list[Link]] = defaultdict(list)
        self._links_of_tensor: dict[int, list[Link]] = defaultdict(list)
        for link in network.links:
            self._links_of_operator[link.operator].append(link)
            self._links_of_tensor[link.tensor].append(link)
        self._operator_choices: dict[tuple[Bound, Strategies], tuple[OperatorChoices, bool]] = {}
        self._tensor_choices: dict[tuple[Shape, Dimensions], tuple[TensorChoices, bool]] = {}
        self._of_operators: dict[int, Counts] = {}
        self._of_tensors: dict[int, Counts] = {}
        self._moved: dict[What, dict[str, list[Contribution]]] = {
            "operator": defaultdict(list),
            "tensor": defaultdict(list),
        }
        for entry in count(graph, plan.layouts, plan.strategies, plan.factors):
            self._moved["operator"][entry.operation].append(entry)
            self._moved["tensor"][entry.tensor].append(entry)

    def operator(self, index: int) -> Explanation:
        """Explain the operation with this index."""
        operation = self._graph.operations[index]
        number = self._network.operation_class[index]
        operator, complete = self._operator(number)
        held, following = np.zeros((2, len(operator.sequences)), np.int64)
        for neighbour, links in _by(self._links_of_operator[number], "tensor"):
            mine = self._sum(links, operator, self._tensor(neighbour)[0])
            elsewhere = self._tensor_bytes(neighbour) - mine[0]
            held += mine[:, 0]
            following += (mine + elsewhere).min(axis=1) - elsewhere[0]
        return self._explanation(
            "operator",
            operation.name,
            tuple(operation.bound.extents.items()),
            [self._graph.operations[member].name for member in self._operations[number]],
            operator.sequences,
            held,
            following,
            complete,
        )

    def tensor(self, index: int) -> Explanation:
        """Explain the tensor with this index."""
        tensor = self._graph.tensors[index]
        number = self._network.tensor_class[index]
        choices, complete = self._tensor(number)
        held, following = np.zeros((2, len(choices.sequences)), np.int64)
        for neighbour, links in _by(self._links_of_tensor[number], "operator"):
            mine = self._sum(links, self._operator(neighbour)[0], choices)
            elsewhere = self._operator_bytes(neighbour) - mine[:, 0]
            held += mine[0]
            following += (mine + elsewhere[:, None]).min(axis=0) - elsewhere[0]
        return self._explanation(
            "tensor",
            tensor.name,
            tuple((str(axis), extent) for axis, extent in enumerate(tensor.shape)),
            [self._graph.tensors[member].name for member in self._tensors[number]],
            choices.sequences,
            held,
            following,
            complete,
        )

    def _explanation(
        self,
        what: What,
        name: str,
        shape: tuple[tuple[str, int], ...],
        together: Sequence[str],
        sequences: Sequence[Choice],
        held: Counts,
        following: Counts,
        complete: bool,
    ) -> Explanation:
        moved = tuple(entry for member in together for entry in self._moved[what][member])
        base = self._plan.cost_bytes - int(held[0])
        priced = [
            Alternative(sequence, base + int(alone), base + int(together_bytes))
            for sequence, alone, together_bytes in zip(sequences, held, following, strict=True)
        ]
        order = sorted(range(len(priced)), key=lambda i: (priced[i].following_bytes, priced[i].held_bytes, i))
        return Explanation(
            what=what,
            name=name,
            shape=shape,
            choice=sequences[0],
            decided_together=tuple(together),
            moved=moved,
            bytes=sum(entry.bytes for entry in moved),
            plan_bytes=self._plan.cost_bytes,
            alternatives=tuple(priced[i] for i in order),
            complete=complete,
        )

    def _operator_bytes(self, number: int) -> Counts:
        """What an operator moves by its choice, all tensors held."""
        if number not in self._of_operators:
            choices = self._operator(number)[0]
            total = np.zeros(len(choices.sequences), np.int64)
            for link in self._links_of_operator[number]:
                total += self._bytes(link, choices, self._tensor(link.tensor)[0])[:, 0]
            self._of_operators[number] = total
        return self._of_operators[number]

    def _tensor_bytes(self, number: int) -> Counts:
        """What moves for a tensor by its choice, all operators held."""
        if number not in self._of_tensors:
            choices = self._tensor(number)[0]
            total = np.zeros(len(choices.sequences), np.int64)
            for link in self._links_of_tensor[number]:
                total += self._bytes(link, self._operator(link.operator)[0], choices)[0]
            self._of_tensors[number] = total
        return self._of_tensors[number]

    def _operator(self, number: int) -> tuple[OperatorChoices, bool]:
        """All choices of an operator, the chosen one first; whether they are all there are."""
        bound, factors = self._network.operators[number], self._plan.factors
        chosen = self._plan.strategies[self._graph.operations[self._operations[number][0]].name]
        key = (bound, chosen)
        if key not in self._operator_choices:
            sequences, complete = candidates(splittable(bound), factors, chosen, ALTERNATIVE_LIMIT)
            self._operator_choices[key] = operator_choices(bound, sequences, factors), complete
        return self._operator_choices[key]

    def _tensor(self, number: int) -> tuple[TensorChoices, bool]:
        """All choices of a tensor, the chosen one first; whether they are all there are."""
        shape, factors = self._network.shapes[number], self._plan.factors
        chosen = self._plan.layouts[self._graph.tensors[self._tensors[number][0]].name].dimensions
        key = (shape, chosen)
        if key not in self._tensor_choices:
            sequences, complete = candidates(dict(enumerate(shape)), factors, chosen, ALTERNATIVE_LIMIT)
            self._tensor_choices[key] = tensor_choices(shape, sequences, factors), complete
        return self._tensor_choices[key]

    def _sum(self, links: Sequence[Link], operator: OperatorChoices, tensor: TensorChoices) -> Counts:
        total = np.zeros((len(operator.sequences), len(tensor.sequences)), np.int64)
        for link in links:
            total += self._bytes(link, operator, tensor)
        return total

    def _bytes(self, link: Link, operator: OperatorChoices, tensor: TensorChoices) -> Counts:
        return self._tables.bytes(operator, tensor, link.source, link.weight)


def _members(classes: Sequence[int]) -> dict[int, list[int]]:
    """The indices that are in every class."""
    found: dict[int, list[int]] = defaultdict(list)
    for index, number in enumerate(classes):
        found[number].append(index)
    return found


def _by(links: Sequence[Link], side: What) -> Iterable[tuple[int, list[Link]]]:
    """Links by the class on one side, in order of appearance."""
    found: dict[int, list[Link]] = defaultdict(list)
    for link in links:
        found[link.operator if side == "operator" else link.tensor].append(link)
    return found.items()
