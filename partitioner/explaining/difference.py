"""Compare two plans for one graph: their different choices, and the bytes that move for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...dataflow.graph import Graph
from ...errors import PlanError
from ..layouts.step_split import Choice
from ..plans.plan import Plan


@dataclass(frozen=True, slots=True)
class Change:
    """An operation or tensor that differs between two plans."""

    name: str
    """The name of the operation or tensor."""

    choices: tuple[Choice, Choice]
    """Its choice in each plan."""

    bytes: tuple[int, int]
    """The bytes that move for it in each plan."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Everything that differs; pairs are (first plan, second plan)."""

    methods: tuple[str, str]
    """The methods that found the plans."""

    factors: tuple[tuple[int, ...], tuple[int, ...]]
    """The factors of the plans."""

    cost_bytes: tuple[int, int]
    """The costs of the plans."""

    step_cost_bytes: tuple[tuple[int, ...], tuple[int, ...]]
    """The costs of their steps."""

    operators: tuple[Change, ...]
    """Operations that are split differently, or whose tensors are laid out so that other bytes move.

    The largest change in bytes comes first.
    """

    tensors: tuple[Change, ...]
    """Tensors that are laid out differently, the largest change in bytes first."""


def difference(graph: Graph, first: Plan, second: Plan) -> Difference:
    """Compare two plans for `graph`, which may be for different numbers of workers.

    Raises PlanError if either is for another graph.
    """
    if first.fingerprint != second.fingerprint:
        raise PlanError(
            f"the plans are for different graphs, with fingerprints {first.fingerprint[:16]} and "
            f"{second.fingerprint[:16]}; compare plans of one model, batch size and optimizer"
        )
    first.check_graph(graph)
    second.check_graph(graph)
    by_operation, by_tensor = zip(*(_moved(graph, plan) for plan in (first, second)), strict=True)
    operators = [
        Change(o.name, (first.split_along(o.name), second.split_along(o.name)), _pair(by_operation, o.name))
        for o in graph.operations
    ]
    tensors = [
        Change(
            t.name,
            (first.layouts[t.name].dimensions, second.layouts[t.name].dimensions),
            _pair(by_tensor, t.name),
        )
        for t in graph.tensors
    ]
    return Difference(
        (first.method, second.method),
        (first.factors, second.factors),
        (first.cost_bytes, second.cost_bytes),
        (first.step_cost_bytes, second.step_cost_bytes),
        _largest_first(o for o in operators if o.choices[0] != o.choices[1] or o.bytes[0] != o.bytes[1]),
        _largest_first(t for t in tensors if t.choices[0] != t.choices[1]),
    )


def _pair(moved: Sequence[Counter[str]], name: str) -> tuple[int, int]:
    return moved[0][name], moved[1][name]


def _largest_first(changes: Iterable[Change]) -> tuple[Change, ...]:
    return tuple(sorted(changes, key=lambda change: -abs(change.bytes[1] - change.bytes[0])))


def _moved(graph: Graph, plan: Plan) -> tuple[Counter[str], Counter[str]]:
    """Count the bytes by operation and by tensor."""
    by_operation: Counter[str] = Counter()
    by_tensor: Counter[str] = Counter()
    for entry in plan.contributions(graph):
        by_operation[entry.operation] += entry.bytes
        by_tensor[entry.tensor] += entry.bytes
    return by_operation, by_tensor
