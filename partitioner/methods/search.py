"""Find a plan for a graph by a method chosen by name."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from math import prod
from typing import Any, TypeAlias

from ...dataflow.graph import Graph
from ...dataflow.validate import validate
from ...errors import MachineError, PlanError
from ...support.checked_argument import require
from ...support.gc_pause import gc_paused
from ..layouts.forms import Form
from ..layouts.step_split import Layout, check_strategies
from ..plans.compose import compose
from ..plans.plan import Plan, require_graph, require_workers
from ..plans.plan_record import TransferSeconds
from ..plans.space import Space
from ..plans.unproven import unbounded
from ..plans.written_plan import WrittenPlan
from ..problem.classes import build_problem
from ..problem.constraints import parse_constraint, restricted
from ..problem.factor_graph import steps_of
from ..problem.moved_bytes import MovedBytes
from ..problem.problem import Chosen, Problem
from ..problem.sequences import by_batch
from ..problem.solution import Solution
from ..problem.transfer_time import TransferTime
from ..solvers.anytime import Report
from ..solvers.errors import SolverError
from .autodist.methods import COMPOSITIONS
from .baselines import all_row, equal_chop, icml18, spartan
from .exact import exact
from .imported_later import (
    anneal,
    data_parallel,
    flexflow,
    heuristic_1,
    heuristic_2,
    megatron,
    megatron_sp,
    one_weird_trick,
    pardnn,
    place,
    wu_2016,
    zero_3,
)
from .manual import layout_pins, manual, read_layouts
from .method import Method, Search, every_method, register
from .placement.groups import parse_groups
from .recursive import recursion_bound, recursive
from .refine import refine
from .settings import SearchSettings
from .simulated import SimulatedSearch

BASELINES = "methods/baselines.md"
FLEXFLOW = "methods/flexflow.md"
PLACEMENT = "methods/placement.md"
AUTODIST = "methods/autodist.md"

SMALL = 512
"""The most operations times workers for which `exact` takes seconds."""

FIRST = "all-reduce", "wu-2016", "ps", "ps-load-balancing", "one-weird-trick", "recursive"
"""The methods of which searches start first: they take little time, and each is good for some graphs."""

for _method in (
    Method(
        "recursive",
        recursive,
        takes_constraints=True,
        takes_prices=True,
        keeps=True,
        page="methods/recursive.md",
        trusted=True,
    ),
    Method(
        "refine",
        refine,
        takes_constraints=True,
        takes_prices=True,
        keeps=True,
        page="methods/refine.md",
        trusted=True,
    ),
    Method(
        "exact",
        exact,
        takes_constraints=True,
        takes_prices=True,
        keeps=True,
        closes_gap=True,
        reports_progress=True,
        slow=True,
        page="methods/exact.md",
        trusted=True,
    ),
    Method("all-row", all_row, takes_constraints=True, page=BASELINES, trusted=True),
    Method("spartan", spartan, page=BASELINES, trusted=True),
    Method("equal-chop", equal_chop, page=BASELINES, trusted=True),
    Method("icml18", icml18, takes_constraints=True, page=BASELINES, trusted=True),
    Method("data-parallel", data_parallel, composes=True, page=BASELINES),
    Method("zero-3", zero_3, composes=True, page=BASELINES),
    Method("megatron", megatron, composes=True, takes_mesh=True, page=BASELINES),
    Method("megatron-sp", megatron_sp, composes=True, takes_mesh=True, page=BASELINES),
    Method("one-weird-trick", one_weird_trick, composes=True, page=FLEXFLOW),
    Method("wu-2016", wu_2016, composes=True, page=FLEXFLOW),
    Method("flexflow", flexflow, simulates=True, draws=True, slow=True, page=FLEXFLOW),
    Method("anneal", anneal, simulates=True, draws=True, keeps=True, lightens=True, slow=True, page=FLEXFLOW),
    Method("pardnn", pardnn, simulates=True, slow=True, page=PLACEMENT),
    Method("pardnn-heuristic-1", heuristic_1, simulates=True, slow=True, page=PLACEMENT),
    Method("pardnn-heuristic-2", heuristic_2, simulates=True, slow=True, page=PLACEMENT),
    Method("place", place, simulates=True, takes_groups=True, slow=True, page=PLACEMENT),
    *(Method(name, composing, composes=True, page=AUTODIST) for name, composing in COMPOSITIONS.items()),
    Method("manual", manual, takes_constraints=True, takes_layouts=True, page=BASELINES, trusted=True),
):
    register(_method)


def partition(graph: Graph, workers: int, method: str | Method | Search = "recursive", **others: Any) -> Plan:
    """Find a plan for `workers` workers; `others` are those of `SearchSettings`. See `find_plan`."""
    return find_plan(graph, workers, SearchSettings(method, **others))


Prepared: TypeAlias = tuple[Problem, Method]
"""A problem, and the method that is to solve it."""


@gc_paused()
def find_plan(
    graph: Graph, workers: int, settings: SearchSettings, prepare: Callable[[], Prepared] | None = None
) -> Plan:
    """Find a plan for `workers` workers; the same graph gives the same plan.

    `prepare` returns the problem of these settings if the caller has it, or uses it for further searches.

    The solution of a user's method is verified.
    Raises PlanError for an unknown method, a function that does not return a solution, a worker count below 1
    or above `WORKER_LIMIT`, constraints that clash or that the method cannot take, or a graph on which the
    method gives up. Raises GraphError for a malformed graph.
    """
    start = time.perf_counter()
    require_graph(graph)
    require_workers(workers)
    if settings.layouts is not None:
        written = read_layouts(settings.layouts, workers)
        if written.operations is not None:
            plan = _composed(graph, workers, settings, written, written.operations)
            return replace(plan, search_seconds=time.perf_counter() - start)
        settings = replace(settings, layouts=written)
    method = settings.chosen_method()
    if method.composes:
        _require_free(settings, f"the method {method.name!r} makes a whole plan")
        validate(graph)
        made: Plan = method.search(graph, workers, settings.space())
        return replace(made, space=settings.space(), search_seconds=time.perf_counter() - start)
    if method.simulates:
        _require_free(
            settings,
            f"the method {method.name!r} searches by the simulated time of an iteration",
            "nothing else",
        )
        validate(graph)
        made = method.search(
            SimulatedSearch(
                graph,
                workers,
                settings.space(),
                settings.simulated_machine(workers),
                settings.sampling,
                settings.watch,
                partial(_quick_plans, graph, workers, settings),
                settings.memory,
                cache(partial(_inside, graph, settings)),
                None if settings.groups is None else parse_groups(settings.groups, workers),
                _inside_memory(settings),
            )
        )
        return replace(made, space=settings.space(), search_seconds=time.perf_counter() - start)
    problem, method = prepared(graph, workers, settings) if prepare is None else prepare()
    solution = searched(problem, workers, method, settings.report)
    plan = plan_of(problem, solution, workers, method)
    return replace(plan, space=settings.space(), search_seconds=time.perf_counter() - start)


def _inside(graph: Graph, settings: SearchSettings, workers: int) -> Plan:
    """Return the plan by which the workers of a group share operations."""
    return find_plan(graph, workers, _inside_settings(settings))


def _inside_settings(settings: SearchSettings) -> SearchSettings:
    """Return the settings for plans by which workers share operations."""
    return SearchSettings("refine", replicate=settings.replicate, keep=False, feed="anywhere")


def _inside_memory(settings: SearchSettings) -> Callable[[], Plan] | None:
    """Return what finds the plan by which all workers share operations within the memory, if there is one."""
    within = None if settings.memory is None else settings.memory.within
    return None if within is None else partial(within, _inside_settings(settings))


def _quick_plans(graph: Graph, workers: int, settings: SearchSettings) -> Iterator[Plan]:
    """Yield the plans of the methods that take seconds, of those that can make one.

    Methods that take prices minimise the time of steps, if levels of the machine divide the workers evenly,
    and then bytes. For small graphs, those among them that take long for others are quick as well. Those of
    `FIRST` come first, then other methods that make a whole plan, then those that choose a mesh for it, and
    then those that search.
    """
    small = len(graph.operations) * workers <= SMALL
    problems: dict[tuple[str, Space], Problem] = {}

    def prepare(others: SearchSettings) -> Prepared:
        key = others.objective, others.space()
        if key not in problems:
            problems[key], _ = prepared(graph, workers, others)
        return problems[key], others.chosen_method()

    def delay(method: Method) -> tuple[int, bool, bool]:
        early = FIRST.index(method.name) if method.name in FIRST else len(FIRST)
        return early, not method.composes, method.takes_mesh

    for method in sorted(every_method().values(), key=delay):
        slow = method.slow and not (small and method.takes_prices)
        if slow or method.simulates or method.takes_layouts:
            continue
        for objective in ("step-time", "bytes") if method.takes_prices else ("bytes",):
            machine = None if objective == "bytes" else settings.machine
            others = SearchSettings(
                method,
                machine=machine,
                objective=objective,
                replicate=settings.replicate,
                keep=settings.keep,
                feed=settings.feed,
            )
            try:
                yield find_plan(graph, workers, others, partial(prepare, others))
            except (PlanError, MachineError):
                continue


def _composed(
    graph: Graph,
    workers: int,
    settings: SearchSettings,
    written: WrittenPlan,
    operations: Mapping[str, Form],
) -> Plan:
    """Return a plan in which operations have forms as well. Raises PlanError for what needs a search."""
    method = settings.chosen_method()
    _require_free(settings, "operations have forms")
    validate(graph)
    plan = compose(graph, workers, operations, written.tensors, copies=written.copies, order=written.order)
    return replace(plan, method=method.name)


def _require_free(settings: SearchSettings, why: str, what: str = "nothing") -> None:
    """Raise PlanError if settings ask for another search than the one that there is."""
    if settings.constraints or settings.objective != "bytes":
        raise PlanError(
            f"{why}, so {what} is searched; leave out constraints and the objective, or choose another "
            "method, such as 'refine'"
        )


def prepared(graph: Graph, workers: int, settings: SearchSettings) -> Prepared:
    """Return the problem that settings describe, and the method that is to solve it."""
    require_graph(graph)
    require_workers(workers)
    method = settings.chosen_method()
    validate(graph)
    problem = build_problem(graph, settings.made_objective(graph, workers), settings.space())
    fits = isinstance(settings.constraints, Iterable)
    require(fits, settings.constraints, "constraints", "a list of constraints", PlanError)
    constraints = [parse_constraint(c) if isinstance(c, str) else c for c in settings.constraints]
    if settings.layouts is not None:
        constraints += layout_pins(graph, read_layouts(settings.layouts, workers).tensors)
    if constraints:
        if not method.takes_constraints:
            able = ", ".join(sorted(name for name, each in every_method().items() if each.takes_constraints))
            raise PlanError(f"the method {method.name!r} cannot take constraints; use one of {able}")
        problem = restricted(problem, steps_of(problem, workers), constraints)
    return problem, method


def plan_of(
    problem: Problem, solution: Solution, workers: int, method: Method, chosen: Chosen | None = None
) -> Plan:
    """Check a solution, and spread it over the graph's names. `chosen` are its choices, if made before."""
    if not method.trusted:
        check_solution(problem, solution, workers, method.name)
    _check_kept(problem, solution, method.name)
    if chosen is None:
        chosen = Chosen.of(problem, solution)
    return _plan(problem, solution, workers, method.name, chosen)


def searched(problem: Problem, workers: int, method: Method, report: Report | None = None) -> Solution:
    """Run the search. Raises PlanError if a solver gives up and the method does not handle that.

    If activations may have copies, the plan is never worse than the one that is found without them.
    """
    search: Search = method.search
    if method.reports_progress and report is not None:
        search = partial(search, report=report)
    try:
        found = search(problem, workers)
        if not problem.activations:
            return found
        without = replace(problem, copied=problem.copied - problem.activations, activations=frozenset())
        other: Solution = method.search(without, workers)
    except SolverError as error:
        raise PlanError(f"the method {method.name!r} finds no plan: {error}") from error
    if found.cost.value <= other.cost.value:
        return found
    return replace(other, lower_bound=found.lower_bound, unproven=found.unproven)


def _plan(problem: Problem, solution: Solution, workers: int, method: str, chosen: Chosen) -> Plan:
    """Spread a solution over the graph's names, and count its cost again."""
    factors = solution.factors
    cost, bound = problem.cost(problem.objective.total(chosen)), solution.lower_bound
    if cost != solution.cost:
        raise PlanError(
            f"the method {method!r} states a cost of {solution.cost}, but what it chose costs {cost}"
        )
    totals = chosen.moved_bytes
    in_bytes = len(totals) > len(factors) and not chosen.repeated_bytes
    bound_bytes = bound.bytes
    if bound_bytes is not None:
        bound_bytes = min(max(bound_bytes - chosen.repeated_bytes, 0), totals[-1])
    else:
        if factors not in problem.least_moved:
            of_bytes = replace(problem, objective=MovedBytes())
            problem.least_moved[factors] = recursion_bound(of_bytes, factors)
        bound_bytes = min(problem.least_moved[factors], totals[-1])
    return Plan(
        graph=problem.graph,
        fingerprint=problem.graph.fingerprint,
        workers=workers,
        factors=factors,
        method=method,
        layouts=chosen.layouts,
        strategies=chosen.operations,
        copies=chosen.copies,
        cost_bytes=totals[-1],
        step_cost_bytes=tuple(after - before for before, after in pairwise(totals)),
        lower_bound_bytes=bound_bytes,
        unproven=solution.unproven if in_bytes else unbounded(solution.unproven),
        transfer_time=(
            None
            if cost.seconds is None or not isinstance(problem.objective, TransferTime)
            else TransferSeconds(cost.seconds, bound.seconds if bound.value else None)
        ),
    )


def _check_kept(problem: Problem, solution: Solution, method: str) -> None:
    for number in sorted(problem.unmoved):
        chosen, fed = solution.dimensions[number], by_batch(problem.shapes[number], solution.factors)
        if chosen != fed:
            tensor = problem.graph.tensors[problem.tensor_class.index(number)].name
            raise PlanError(
                f"the method {method!r} splits the input {tensor!r} along {chosen}, but it is fed along "
                f"{fed}; use feed='anywhere' (--feed anywhere)"
            )
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

    `find_plan` checks the stated cost, of every method.
    """
    if not isinstance(solution, Solution):
        raise PlanError(f"the method {method!r} returned a {type(solution).__name__}, expected a Solution")
    if prod(solution.factors) != workers:
        raise PlanError(
            f"the method {method!r} split by {solution.factors}, which does not multiply to {workers} workers"
        )
    for what, chosen, expected in (
        ("operator", solution.strategies, problem.operators),
        ("tensor", solution.dimensions, problem.shapes),
    ):
        if len(chosen) != len(expected):
            raise PlanError(
                f"the method {method!r} chose for {len(chosen)} {what} classes, "
                f"but the problem has {len(expected)}"
            )
    for shape, dimensions in zip(problem.shapes, solution.dimensions, strict=True):
        layout = Layout(shape, dimensions, solution.factors)
        layout.check(f"the method {method!r}, a tensor of shape {shape}")
    for bound, strategies in zip(problem.operators, solution.strategies, strict=True):
        place = f"the method {method!r}, operator {bound.description.name}"
        check_strategies(bound, strategies, solution.factors, place)
