"""Find the frontier of time and memory by the cost model of TensorOpt (Cai et al., 2020, equations 1 to 3).

    variables    for every class of operations a strategy, for every class of tensors a layout
    objectives   time(x)    the sum over operations of the time in which the slowest worker computes, and over
                            what operations read and make of the time that its transfer takes: the tables of
                            `step-time`. Nothing overlaps.
                 memory(x)  the sum over tensors of the mean size of a worker's part. Tensors that last count
                            (the parameters of equation 1), and those that forward operations make and later
                            phases read (its tensors for backward propagation).
    result       plans at the points of the frontier of both sums (definition 1)

Memory ignores when tensors are live, and all else that operations hold. So every point has what its plan
takes as well. All choices are considered if tables are small enough. Then the frontier is exact, unless it is
thinned, and `lower` is what the solver proves. Otherwise choices are those of plans that a search finds for
weighted sums of both, and `lower` has the least time of all computations and the size of what counts.
Implemented in: `kept_bytes` (what counts), `_solved` and `_weighted` (choices), `_bounds` (`lower`),
`solvers.frontier` (the frontier).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ...analyzer.indices.region import volume
from ...dataflow.graph import Graph, Phase
from ...errors import PlanError
from ...machines.machine import Machine
from ...simulator.times import task_times
from ..layouts.choices import OperatorChoices, TensorChoices, tensor_choices
from ..plans.cost import PICOSECONDS_PER_SECOND
from ..plans.plan import Plan
from ..plans.space import Space
from ..problem.factor_graph import factor_graph, joint_choices
from ..problem.plan_choices import Choices, choices_made
from ..problem.problem import Chosen, Problem
from ..problem.sequences import all_sequences
from ..problem.solution import Solution, assigned
from ..problem.unpriced import Unpriced
from ..solvers.elimination import TABLE_LIMIT
from ..solvers.errors import WidthError
from ..solvers.frontier import FrontierOptimum, least_frontier
from ..solvers.supported import Point, split_widest
from .frontier import (
    WHOLE,
    Frontier,
    FrontierPoint,
    Measured,
    Measures,
    unbeaten,
    variants_of,
)
from .frontier_bounds import LowerPoint, has_equal_devices, least_seconds
from .method import Method, searching_method
from .recombine import most_choices, with_memory
from .search import plan_of, prepared, searched
from .settings import SearchSettings

MOST_CHOICES = 512
"""All choices are considered if no class has more."""

SEARCHES = 5
"""The number of weighted sums for which plans are searched if all choices are too many."""

MADE_POINTS = 16
"""The number of points that are kept of an entry if choices are those of such plans."""

MADE_ENTRIES = 1 << 19
"""The largest number of entries and points of a table then; if it is exceeded, there are fewer plans."""

PRICE_BITS = 12
"""The number of bits of a weight."""

POINTS = 64
"""The number of points that are kept of an entry of a table, if there are too many for an exact frontier."""


METHOD = Method("tensoropt", least_frontier, trusted=True)
"""The method that plans record."""


@dataclass(frozen=True, slots=True)
class Modelled:
    """The frontier of the model for a graph."""

    problem: Problem
    """The problem that was solved."""

    operators: Sequence[OperatorChoices]
    """The choices of every class of operations."""

    tensors: Sequence[TensorChoices]
    """The choices of every class of tensors."""

    optimum: FrontierOptimum
    """The frontier; memory is that of all workers."""

    every: bool
    """Whether all choices were considered."""


def find_modelled_frontier(
    graph: Graph,
    workers: int,
    machine: Machine,
    method: str | Method,
    measures: Measures,
    memory: int | None = None,
    recompute: Sequence[int] = (1,),
    space: Space = WHOLE,
) -> Frontier:
    """Find the frontier by the model, up to a limit of what it takes for memory. See `find_frontier`.

    Plans keep no copies. Raises PlanError if the model has no plan that fits.
    """
    settings = SearchSettings(
        searching_method(method),
        machine=machine,
        objective="step-time",
        replicate=space.replicate,
        feed=space.feed,
    )
    points: list[FrontierPoint] = []
    lower: list[LowerPoint] = []
    variants = variants_of(graph, recompute)
    measured = {segments: measures.of(variant) for segments, variant in variants.items()}
    for segments, variant in variants.items():
        found = _solved(variant, workers, settings)
        points += [
            FrontierPoint(_seconds(time), -(-held // workers), _plan(found, number, workers), segments)
            for number, (time, held) in enumerate(found.optimum.points.tolist())
        ]
        lower += _bounds(found, workers, machine)
    fitting = unbeaten(point for point in points if memory is None or point.peak_bytes <= memory)
    if not fitting:
        least = min(point.peak_bytes for point in points)
        raise PlanError(
            f"no plan was found that takes at most {memory:,} bytes by the cost model 'tensoropt': the least "
            f"is {least:,}"
        )
    taken = [_with_taken(point, settings, measured[point.recompute]) for point in fitting]
    return Frontier(workers, machine, tuple(taken), unbeaten(lower), "tensoropt")


def kept_bytes(problem: Problem) -> dict[int, int]:
    """Return the tensors that count as memory: for classes, the bytes of an element of all that do.

    They are those that last, and those that forward operations make and operations of later phases read.
    """
    operations = problem.graph.operations
    forward = {tensor for op in operations if op.phase is Phase.FORWARD for tensor in op.outputs}
    later = {
        op.inputs[place]
        for op in operations
        if op.phase is not Phase.FORWARD
        for place, _ in op.bound.read_places
    }
    found: Counter[int] = Counter()
    for tensor in problem.graph.tensors:
        if tensor.alias is None and (tensor.role.persistent or tensor.index in forward & later):
            found[problem.tensor_class[tensor.index]] += tensor.itemsize
    return dict(found)


def _solved(graph: Graph, workers: int, settings: SearchSettings) -> Modelled:
    """Return the frontier over all choices, or else over those of plans that searches find."""
    problem, _ = prepared(graph, workers, settings)
    factors = problem.objective.factors(workers)
    if most_choices(problem, factors) <= MOST_CHOICES:
        every = joint_choices(problem, factors, all_sequences)
        for limit in (None, POINTS):
            try:
                return Modelled(problem, *every, _optimum(problem, workers, *every, limit), True)
            except WidthError:
                continue
    plans = _weighted(problem, workers, settings.chosen_method())
    for count in reversed(range(2, len(plans) + 1)):
        made = choices_made(problem, factors, plans[:count])
        try:
            optimum = _optimum(problem, workers, *made, MADE_POINTS, MADE_ENTRIES)
        except WidthError as error:
            refused = error
            continue
        return Modelled(problem, *made, optimum, False)
    raise PlanError(
        f"the cost model 'tensoropt' finds no frontier: {refused}. Use fewer workers, or the cost model "
        f"'simulated'"
    )


def _weighted(problem: Problem, workers: int, method: Method) -> list[Choices]:
    """Return what plans choose that a search finds for weighted sums of time and memory."""
    kept, factors = kept_bytes(problem), problem.objective.factors(workers)
    found: list[Choices] = []

    def support(time_weight: int, memory_weight: int) -> Point:
        price = _few_bits(Fraction(memory_weight, time_weight or 1))
        sought = replace(problem, prices={n: nbytes * price for n, nbytes in kept.items()}, bounded=False)
        if not time_weight:
            sought = replace(sought, objective=Unpriced(factors))
        solution = searched(sought, workers, method)
        found.append((solution.strategies, solution.dimensions))
        time = problem.objective.total(Chosen.of(problem, solution))
        return time, sum(nbytes * _held(problem, solution, n) for n, nbytes in kept.items())

    split_widest(support, SEARCHES)
    return found


def _few_bits(price: Fraction) -> Fraction:
    """Round a price so that its products with sizes stay small."""
    unit = Fraction(2) ** (PRICE_BITS - math.frexp(price)[1])
    return Fraction(round(price * unit)) / unit


def _held(problem: Problem, solution: Solution, number: int) -> int:
    """Return the elements of a class of tensors that all workers hold."""
    layout = tensor_choices(problem.shapes[number], [solution.dimensions[number]], solution.factors)
    return int(volume(layout.regions).sum())


def _optimum(
    problem: Problem,
    workers: int,
    operators: Sequence[OperatorChoices],
    tensors: Sequence[TensorChoices],
    points: int | None,
    entries: int = TABLE_LIMIT,
) -> FrontierOptimum:
    """Return the frontier over choices, with at most `points` points of each of a table's `entries`."""
    held = replace(
        problem,
        objective=Unpriced(problem.objective.factors(workers)),
        prices={number: Fraction(nbytes) for number, nbytes in kept_bytes(problem).items()},
    )
    domains, times = factor_graph(problem, operators, tensors)
    pairs = with_memory(times, factor_graph(held, operators, tensors)[1])
    return least_frontier(domains, pairs, points_limit=points, table_limit=entries)


def _plan(found: Modelled, point: int, workers: int) -> Plan:
    """Return the plan of a point."""
    problem = found.problem
    factors = problem.objective.factors(workers)
    assignment = found.optimum.assignment(point)
    solution = assigned(factors, found.operators, found.tensors, assignment, cost=problem.cost(0))
    chosen = Chosen.of(problem, solution)
    scored = replace(solution, cost=problem.cost(problem.objective.total(chosen)))
    return plan_of(problem, scored, workers, METHOD, chosen)


def _with_taken(
    point: FrontierPoint, settings: SearchSettings, measure: Callable[[Plan], Measured]
) -> FrontierPoint:
    """Return a point with what its plan takes."""
    taken = measure(point.plan)
    plan = replace(point.plan, space=settings.space(), step_seconds=taken.seconds)
    return replace(point, plan=plan, taken=taken)


def _bounds(found: Modelled, workers: int, machine: Machine) -> list[LowerPoint]:
    """Return what no plan is below by the model."""
    if found.every:
        corners = found.optimum.lower.tolist()
        return [LowerPoint(_seconds(time), -(-held // workers)) for time, held in corners]
    problem = found.problem
    times = task_times(problem.graph, machine, workers)
    equal_devices = has_equal_devices(machine, workers)
    seconds = least_seconds(problem, workers, times, equal_devices=equal_devices)
    held = sum(nbytes * math.prod(problem.shapes[number]) for number, nbytes in kept_bytes(problem).items())
    return [LowerPoint(seconds, -(-held // workers))]


def _seconds(picoseconds: int) -> float:
    return picoseconds / PICOSECONDS_PER_SECOND
