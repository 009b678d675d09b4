"""Why a plan splits one operation or tensor as it does: what that costs, and what anything else would.

All bytes come from the tables of the search. An alternative is priced twice: with everything else in the
plan as it is, and with every neighbour free to choose again (the tensors of an operation, the operations
of a tensor), their own other neighbours held. Operations that are tied and tensors that share storage are
one decision, and change together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..dataflow.graph import Graph
from ..dataflow.naming import suggestion
from ..errors import PlanError
from .constraints import What
from .cost import Counts
from .network import Link, Network, build_network
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
    plan.check_graph(graph)
    operations = {operation.name: operation.index for operation in graph.operations}
    tensors = {tensor.name: tensor.index for tensor in graph.tensors}
    network = build_network(graph)
    if name in operations and what != "tensor":
        return _Explainer(network, plan).operator(operations[name])
    if name in tensors and what != "operator":
        return _Explainer(network, plan).tensor(tensors[name])
    known = {"operator": operations, "tensor": tensors, None: {**operations, **tensors}}[what]
    raise PlanError(f"the plan has no {what or 'operator or tensor'} {name!r}{suggestion(name, known)}")


class _Explainer:
    def __init__(self, network: Network, plan: Plan) -> None:
        self._network = network
        self._graph = network.graph
        self._plan = plan
        self._tables = Tables(plan.factors)
        self._complete = True

    def operator(self, index: int) -> Explanation:
        operation = self._graph.operations[index]
        number = self._network.operation_class[index]
        together = [
            op.name for op in self._graph.operations if self._network.operation_class[op.index] == number
        ]
        links = [link for link in self._network.links if link.operator == number]
        operator, complete = self._operator(number)
        held, following = np.zeros((2, len(operator.sequences)), np.int64)
        for neighbour in dict.fromkeys(link.tensor for link in links):
            tensor, _ = self._tensor(neighbour)
            mine = self._sum([link for link in links if link.tensor == neighbour], operator, tensor)
            elsewhere = np.zeros(len(tensor.sequences), np.int64)
            for link in self._network.links:
                if link.tensor == neighbour and link.operator != number:
                    elsewhere += self._bytes(link, self._held_operator(link.operator), tensor)[0]
            held += mine[:, 0]
            following += (mine + elsewhere).min(axis=1) - elsewhere[0]
        return self._explanation(
            "operator",
            operation.name,
            tuple(operation.bound.extents.items()),
            together,
            operator.sequences,
            held,
            following,
            complete,
        )

    def tensor(self, index: int) -> Explanation:
        tensor = self._graph.tensors[index]
        number = self._network.tensor_class[index]
        together = [t.name for t in self._graph.tensors if self._network.tensor_class[t.index] == number]
        links = [link for link in self._network.links if link.tensor == number]
        choices, complete = self._tensor(number)
        held, following = np.zeros((2, len(choices.sequences)), np.int64)
        for neighbour in dict.fromkeys(link.operator for link in links):
            operator, _ = self._operator(neighbour)
            mine = self._sum([link for link in links if link.operator == neighbour], operator, choices)
            elsewhere = np.zeros(len(operator.sequences), np.int64)
            for link in self._network.links:
                if link.operator == neighbour and link.tensor != number:
                    elsewhere += self._bytes(link, operator, self._held_tensor(link.tensor))[:, 0]
            held += mine[0]
            following += (mine + elsewhere[:, None]).min(axis=0) - elsewhere[0]
        shape = tuple((str(axis), extent) for axis, extent in enumerate(tensor.shape))
        return self._explanation(
            "tensor", tensor.name, shape, together, choices.sequences, held, following, complete
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
        names, plan = set(together), self._plan
        moved = tuple(
            entry
            for entry in count(self._graph, plan.layouts, plan.strategies, plan.factors)
            if (entry.operation if what == "operator" else entry.tensor) in names
        )
        base = plan.cost_bytes - int(held[0])
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
            plan_bytes=plan.cost_bytes,
            alternatives=tuple(priced[i] for i in order),
            complete=complete,
        )

    def _operator(self, number: int) -> tuple[OperatorChoices, bool]:
        """All choices of an operator, the chosen one first; whether they are all there are."""
        bound = self._network.operators[number]
        sequences, complete = candidates(
            splittable(bound), self._plan.factors, self._strategies(number), ALTERNATIVE_LIMIT
        )
        return operator_choices(bound, sequences, self._plan.factors), complete

    def _tensor(self, number: int) -> tuple[TensorChoices, bool]:
        shape = self._network.shapes[number]
        extents = dict(enumerate(shape))
        sequences, complete = candidates(
            extents, self._plan.factors, self._dimensions(number), ALTERNATIVE_LIMIT
        )
        return tensor_choices(shape, sequences, self._plan.factors), complete

    def _held_operator(self, number: int) -> OperatorChoices:
        return operator_choices(
            self._network.operators[number], [self._strategies(number)], self._plan.factors
        )

    def _held_tensor(self, number: int) -> TensorChoices:
        return tensor_choices(self._network.shapes[number], [self._dimensions(number)], self._plan.factors)

    def _strategies(self, number: int) -> Strategies:
        index = self._network.operation_class.index(number)
        return self._plan.strategies[self._graph.operations[index].name]

    def _dimensions(self, number: int) -> Dimensions:
        index = self._network.tensor_class.index(number)
        return self._plan.layouts[self._graph.tensors[index].name].dimensions

    def _sum(self, links: Sequence[Link], operator: OperatorChoices, tensor: TensorChoices) -> Counts:
        total = np.zeros((len(operator.sequences), len(tensor.sequences)), np.int64)
        for link in links:
            total += self._bytes(link, operator, tensor)
        return total

    def _bytes(self, link: Link, operator: OperatorChoices, tensor: TensorChoices) -> Counts:
        return self._tables.bytes(operator, tensor, link.source, link.weight)
