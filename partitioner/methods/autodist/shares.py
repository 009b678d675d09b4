"""Bytes that synchronisation moves, by the kind of synchroniser that variables have."""

from __future__ import annotations

from dataclasses import dataclass

from ....dataflow.graph import Graph, Role
from ...plans.plan import Plan
from .strategy import AllReduce, Synchronisation, SyncStrategy
from .variables import find_variables

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


def shares(graph: Graph, plan: Plan, strategy: SyncStrategy) -> tuple[KindShare, ...]:
    """Return the share of each kind that the strategy uses."""
    moved: dict[str, int] = {}
    for each in plan.contributions(graph):
        moved[each.tensor] = moved.get(each.tensor, 0) + each.bytes
    role = {tensor.name: tensor.role for tensor in graph.tensors}
    found = []
    for kind in (ALL_REDUCE, SERVER, BOTH):
        mine = [v for v in find_variables(graph) if kind_of(strategy.variables[v.tensor.name]) == kind]
        gradients = [name for v in mine for name in v.together if role[name] is Role.GRADIENT]
        share = KindShare(
            kind,
            len(mine),
            sum(v.sparse for v in mine),
            sum(v.tensor.nbytes for v in mine),
            sum(moved.get(name, 0) for name in gradients),
            sum(moved.get(v.tensor.name, 0) for v in mine),
        )
        if mine:
            found.append(share)
    return tuple(found)
