"""Bytes that synchronisation moves, by the kind of synchroniser that variables have."""

from __future__ import annotations

from dataclasses import dataclass

from ....dataflow.graph import Graph, Role
from ...plans.plan import Plan
from .strategy import AllReduce, Synchronisation, SyncStrategy
from .variables import TrainedVariable, find_variables

ALL_REDUCE, SERVER, BOTH = "all-reduce", "server", "both"


@dataclass(frozen=True, slots=True)
class KindShare:
    """The variables with one kind of synchroniser."""

    kind: str
    """`all-reduce`, `server`, or `both` for variables with parts of either kind."""

    variables: int
    """The number of variables."""

    sparse: int
    """The number of those whose rows are chosen by data."""

    variable_bytes: int
    """The bytes of the variables."""

    gradient_bytes: int
    """The bytes that their gradients move in an iteration."""

    fetched_bytes: int
    """The bytes that readers of the variables, and copies for them, fetch in an iteration."""


def kind_of(how: Synchronisation) -> str:
    """Return the kind of synchronisers that a variable's parts have."""
    reduced = sum(isinstance(part, AllReduce) for part in how.parts)
    return ALL_REDUCE if reduced == len(how.parts) else BOTH if reduced else SERVER


def shares(
    graph: Graph, plan: Plan, strategy: SyncStrategy, before: Graph | None = None
) -> tuple[KindShare, ...]:
    """Return the share of each kind that the strategy uses.

    If the graph is rewritten, `before` is the graph that it was made from: tensors that it lacks count for
    the variables to which they lead.
    """
    moved: dict[str, int] = {}
    for each in plan.contributions(graph):
        moved[each.tensor] = moved.get(each.tensor, 0) + each.bytes
    exchanged = _Exchanged(graph, graph if before is None else before)
    found = []
    for kind in (ALL_REDUCE, SERVER, BOTH):
        mine = [v for v in find_variables(graph) if kind_of(strategy.variables[v.tensor.name]) == kind]
        gradients = [name for v in mine for name in exchanged.for_gradients(v)]
        fetched = [name for v in mine for name in exchanged.for_readers(v)]
        share = KindShare(
            kind,
            len(mine),
            sum(v.sparse for v in mine),
            sum(v.tensor.nbytes for v in mine),
            sum(moved.get(name, 0) for name in gradients),
            sum(moved.get(name, 0) for name in fetched),
        )
        if mine:
            found.append(share)
    return tuple(found)


class _Exchanged:
    """Finds the tensors that are exchanged for a variable: its own, and those that a rewrite added."""

    def __init__(self, graph: Graph, before: Graph) -> None:
        self._graph = graph
        self._known = {tensor.name for tensor in before.tensors}
        self._number = {tensor.name: tensor.index for tensor in graph.tensors}
        self._maker = {tensor: each for each in graph.operations for tensor in each.outputs}
        self._operations = {operation.name: operation for operation in graph.operations}

    def for_gradients(self, variable: TrainedVariable) -> list[str]:
        """Return the gradients of a variable, and what was added before them."""
        role = {name: self._graph.tensors[self._number[name]].role for name in variable.together}
        waiting = [self._number[name] for name in variable.together if role[name] is Role.GRADIENT]
        found: dict[int, None] = {}
        while waiting:
            tensor = waiting.pop()
            if tensor in found:
                continue
            found[tensor] = None
            read = self._maker[tensor].inputs if tensor in self._maker else ()
            waiting += [each for each in read if self._is_added(each, Role.GRADIENT)]
        return [self._graph.tensors[tensor].name for tensor in found]

    def for_readers(self, variable: TrainedVariable) -> list[str]:
        """Return a variable and the copies of it that were added for its readers."""
        made = [tensor for name in variable.readers for tensor in self._operations[name].outputs]
        copies = [self._graph.tensors[t].name for t in made if self._is_added(t, Role.ACTIVATION)]
        return [variable.tensor.name, *copies]

    def _is_added(self, tensor: int, role: Role) -> bool:
        found = self._graph.tensors[tensor]
        return found.role is role and found.name not in self._known
