"""From a graph to a plan, by a method chosen by name."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise

from ..dataflow.fingerprint import fingerprint
from ..dataflow.graph import Graph
from ..dataflow.validate import validate
from ..errors import PlanError
from .alternatives import all_row, data_parallel, equal_chop, icml18, spartan
from .constraints import Constraint, parse_constraint, restricted
from .exact import exact
from .network import Network, build_network
from .plan import WORKER_LIMIT, Plan
from .recount import count_bytes
from .recursive import recursive, steps_of
from .refine import refine
from .solution import Solution
from .splits import SplitLayout

Method = Callable[[Network, int], Solution]

METHODS: Mapping[str, Method] = {
    "recursive": recursive,
    "refine": refine,
    "exact": exact,
    "all-row": all_row,
    "spartan": spartan,
    "equal-chop": equal_chop,
    "icml18": icml18,
    "data-parallel": data_parallel,
}

CONSTRAINABLE = frozenset({"recursive", "refine", "exact", "all-row", "icml18", "data-parallel"})
"""Methods that find plans within constraints."""


def partition(
    graph: Graph,
    workers: int,
    method: str = "recursive",
    *,
    constraints: Iterable[Constraint | str] = (),
) -> Plan:
    """Find a plan for `workers` workers; the same graph gives the same plan.

    `constraints` are pins and prohibitions, see `constraints`; the plan keeps to them, and its lower bound
    is one for plans that do. Raises PlanError for an unknown method, a worker count below 1 or above
    `WORKER_LIMIT`, constraints that clash or that the method cannot take, or a graph on which the method
    gives up; GraphError for a malformed graph.
    """
    if isinstance(workers, bool) or not isinstance(workers, int):
        raise PlanError(f"the number of workers must be an integer, not {workers!r}")
    if not 1 <= workers <= WORKER_LIMIT:
        raise PlanError(f"cannot partition over {workers} workers; use 1 to {WORKER_LIMIT}")
    if method not in METHODS:
        raise PlanError(f"there is no search method {method!r}; there are: {', '.join(sorted(METHODS))}")
    validate(graph)
    start = time.perf_counter()
    network = build_network(graph)
    given = [parse_constraint(c) if isinstance(c, str) else c for c in constraints]
    if given:
        if method not in CONSTRAINABLE:
            able = ", ".join(sorted(CONSTRAINABLE))
            raise PlanError(f"the method {method!r} cannot take constraints; those that can are {able}")
        network = restricted(network, steps_of(network, workers), given)
    solution = METHODS[method](network, workers)
    _check_kept(network, solution, method)
    layouts = {
        tensor.name: SplitLayout(tensor.shape, solution.dimensions[number], solution.factors)
        for tensor, number in zip(graph.tensors, network.tensor_class, strict=True)
    }
    strategies = {
        operation.name: solution.strategies[number]
        for operation, number in zip(graph.operations, network.operation_class, strict=True)
    }
    totals = count_bytes(graph, layouts, strategies, solution.factors)
    assert totals[-1] == solution.cost_bytes, "the search and the recount disagree"
    return Plan(
        fingerprint=fingerprint(graph),
        workers=workers,
        factors=solution.factors,
        method=method,
        layouts=layouts,
        strategies=strategies,
        cost_bytes=totals[-1],
        step_cost_bytes=tuple(after - before for before, after in pairwise(totals)),
        lower_bound_bytes=solution.lower_bound_bytes,
        search_seconds=time.perf_counter() - start,
    )


def _check_kept(network: Network, solution: Solution, method: str) -> None:
    operators, tensors = network.restrictions.broken(solution.strategies, solution.dimensions)
    if operators or tensors:
        classes, number = (
            (network.operation_class, operators[0]) if operators else (network.tensor_class, tensors[0])
        )
        named = network.graph.operations if operators else network.graph.tensors
        raise PlanError(
            f"the method {method!r} does not consider replicating {named[classes.index(number)].name!r}, "
            f"as the constraints ask; use the method 'refine'"
        )
