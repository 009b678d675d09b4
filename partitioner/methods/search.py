"""From a graph to a plan, by a method chosen by name."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import prod

from ...dataflow.graph import Graph
from ...dataflow.validate import validate
from ...errors import PlanError
from ...machines.machine import WORKER_LIMIT, Machine
from ...machines.machine_file import load_machine
from ...support.gc_pause import gc_paused
from ...support.wording import alternatives
from ..costs.plan_bytes import count_bytes
from ..layouts.step_split import SplitLayout, check_strategies
from ..plans.plan import Plan, TransferSeconds, require_graph
from ..problem.constraints import Constraint, parse_constraint, restricted
from ..problem.factor_graph import steps_of
from ..problem.problem import Problem, build_problem
from ..problem.solution import Solution
from ..problem.transfer_time import PICOSECONDS, TransferTime
from ..solvers.anytime import Report
from .baselines import all_row, data_parallel, equal_chop, icml18, spartan
from .exact import exact
from .manual import Layouts, layout_pins, manual
from .recursive import recursion_bound, recursive
from .refine import refine

Method = Callable[[Problem, int], Solution]

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

OBJECTIVES = ("bytes", "time")

MANUAL = "manual"
"""The method that scores a user's layouts; the others in `METHODS` need none."""

CONSTRAINABLE = frozenset({"recursive", "refine", "exact", "all-row", "icml18", "data-parallel", MANUAL})
"""Methods that find plans within constraints."""


@gc_paused()
def partition(
    graph: Graph,
    workers: int,
    method: str | Method = "recursive",
    *,
    constraints: Iterable[Constraint | str] = (),
    layouts: Layouts | None = None,
    machine: Machine | str | None = None,
    objective: str = "bytes",
    report: Report | None = None,
) -> Plan:
    """Find a plan for `workers` workers; the same graph gives the same plan.

    `method` names one of `METHODS` or `manual`, or is a function of a `Problem` and a number of workers that
    returns a `Solution`; what a function returns is verified.
    `constraints` are pins and prohibitions, see `constraints`; the plan keeps to them, and its lower bound
    is one for plans that do. The method `manual` takes `layouts`, see `manual`.
    With the objective `time` the method minimises the time that the traffic takes over the links of `machine`
    (a preset's name, a file or a Machine), and splits the workers by its levels; see `objective`.
    `report` is told the cost and the proven bound, in bytes or in picoseconds, whenever `exact` improves one
    of them.
    Raises PlanError for an unknown method, a function whose plan is none, a worker count below 1 or above
    `WORKER_LIMIT`, constraints that clash or that the method cannot take, or a graph on which the method
    gives up; GraphError for a malformed graph.
    """
    require_graph(graph)
    own = method if callable(method) else None
    method = str(method) if own is None else getattr(own, "__name__", type(own).__name__)
    _check_workers(workers)
    _check_search(method, own, constraints, layouts, machine, objective)
    validate(graph)
    start = time.perf_counter()
    problem = build_problem(graph)
    if objective == "time":
        timed = TransferTime(_machine(machine), workers)
        problem = replace(problem, factors=timed.factors, objective=timed)
    given = [parse_constraint(c) if isinstance(c, str) else c for c in constraints]
    given += layout_pins(graph, layouts or {})
    if given:
        if own is None and method not in CONSTRAINABLE:
            able = ", ".join(sorted(CONSTRAINABLE))
            raise PlanError(f"the method {method!r} cannot take constraints; those that can are {able}")
        problem = restricted(problem, steps_of(problem, workers), given)
    solution = (own or _method(method, report))(problem, workers)
    if own is not None:
        check_solution(problem, solution, workers, method)
    _check_kept(problem, solution, method)
    plan = _plan(problem, solution, workers, method)
    return replace(plan, search_seconds=time.perf_counter() - start)


def _check_workers(workers: int) -> None:
    if isinstance(workers, bool) or not isinstance(workers, int):
        raise PlanError(f"the number of workers must be an integer, not {workers!r}")
    if not 1 <= workers <= WORKER_LIMIT:
        raise PlanError(f"cannot partition over {workers} workers; use 1 to {WORKER_LIMIT}")


def _check_search(
    method: str,
    own: Method | None,
    constraints: Iterable[Constraint | str],
    layouts: Layouts | None,
    machine: Machine | str | None,
    objective: str,
) -> None:
    """Raise PlanError where what is asked of the search does not go together."""
    if own is None and method not in METHODS and method != MANUAL:
        raise PlanError(f"there is no search method {method!r}{alternatives(method, (*METHODS, MANUAL))}")
    if objective not in OBJECTIVES:
        raise PlanError(f"there is no objective {objective!r}; there are: {', '.join(OBJECTIVES)}")
    if machine is not None and objective != "time":
        raise PlanError("a machine is for the objective 'time'; give objective='time' as well")
    if isinstance(constraints, str):
        raise PlanError(f"constraints are a list of pins and prohibitions; write [{constraints!r}]")
    if (layouts is None) == (own is None and method == MANUAL):
        raise PlanError(
            "the method 'manual' needs layouts, such as {'fc1_weight': 0}, or a file of them (--layouts)"
            if layouts is None
            else f"layouts are for the method 'manual', not {method!r}; choose that, or pin tensors"
        )


def _method(name: str, report: Report | None) -> Method:
    if name == "exact" and report is not None:
        return partial(exact, report=report)
    return manual if name == MANUAL else METHODS[name]


def _machine(machine: Machine | str | None) -> Machine:
    if machine is None:
        raise PlanError("the objective 'time' needs a machine")
    return load_machine(machine) if isinstance(machine, str) else machine


def _plan(problem: Problem, solution: Solution, workers: int, method: str) -> Plan:
    """A solution spread over the graph's names, its bytes counted again."""
    graph, factors = problem.graph, solution.factors
    layouts = {
        tensor.name: SplitLayout(tensor.shape, solution.dimensions[number], factors)
        for tensor, number in zip(graph.tensors, problem.tensor_class, strict=True)
    }
    strategies = {
        operation.name: solution.strategies[number]
        for operation, number in zip(graph.operations, problem.operation_class, strict=True)
    }
    totals = count_bytes(graph, layouts, strategies, factors)
    bound, transfer_time = solution.lower_bound_bytes, None
    if problem.objective is None:
        _check_cost(solution, totals[-1], method)
    else:
        timed = problem.objective.total(problem, solution.strategies, solution.dimensions)
        _check_cost(solution, timed, method)
        proven = bound / PICOSECONDS if method == "exact" and bound else None
        transfer_time = TransferSeconds(timed / PICOSECONDS, proven)
        bound = min(recursion_bound(replace(problem, objective=None), factors), totals[-1])
    return Plan(
        fingerprint=graph.fingerprint,
        workers=workers,
        factors=factors,
        method=method,
        layouts=layouts,
        strategies=strategies,
        cost_bytes=totals[-1],
        step_cost_bytes=tuple(after - before for before, after in pairwise(totals)),
        lower_bound_bytes=bound,
        unproven=solution.unproven,
        transfer_time=transfer_time,
    )


def _check_cost(solution: Solution, recounted: int, method: str) -> None:
    if recounted != solution.cost_bytes:
        raise PlanError(
            f"the method {method!r} states a cost of {solution.cost_bytes}, "
            f"but what it chose costs {recounted}"
        )


def _check_kept(problem: Problem, solution: Solution, method: str) -> None:
    operators, tensors = problem.restrictions.broken(solution.strategies, solution.dimensions)
    if operators or tensors:
        classes, number = (
            (problem.operation_class, operators[0]) if operators else (problem.tensor_class, tensors[0])
        )
        named = problem.graph.operations if operators else problem.graph.tensors
        raise PlanError(
            f"the method {method!r} finds no plan within the constraints on "
            f"{named[classes.index(number)].name!r}: it does not replicate what can be split; use 'refine'"
        )


def check_solution(problem: Problem, solution: object, workers: int, method: str) -> None:
    """Raise PlanError unless a user's method returned legal choices for every class.

    That its cost is the one it states is counted for every method, see `methods`.
    """
    if not isinstance(solution, Solution):
        raise PlanError(f"the method {method!r} returned {type(solution).__name__}, expected a Solution")
    if prod(solution.factors) != workers:
        raise PlanError(f"the method {method!r} split by {solution.factors}, which is not {workers} workers")
    for what, chosen, expected in (
        ("operator", solution.strategies, problem.operators),
        ("tensor", solution.dimensions, problem.shapes),
    ):
        if len(chosen) != len(expected):
            raise PlanError(
                f"the method {method!r} chose for {len(chosen)} {what} classes, "
                f"the problem has {len(expected)}"
            )
    for shape, dimensions in zip(problem.shapes, solution.dimensions, strict=True):
        layout = SplitLayout(shape, dimensions, solution.factors)
        layout.check(f"the method {method!r}, a tensor of shape {shape}")
    for bound, strategies in zip(problem.operators, solution.strategies, strict=True):
        place = f"the method {method!r}, operator {bound.description.name}"
        check_strategies(bound, strategies, solution.factors, place)
