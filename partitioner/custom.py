"""What a search method of a user's own must return."""

from __future__ import annotations

from math import prod

from ..errors import PlanError
from .network import Network
from .solution import Solution
from .splits import SplitLayout, check_strategies


def check_solution(network: Network, solution: object, workers: int, method: str) -> None:
    """Raise PlanError unless a user's method returned legal choices for every class.

    That its cost is the one it states is counted for every method, see `methods`.
    """
    if not isinstance(solution, Solution):
        raise PlanError(f"the method {method!r} returned {type(solution).__name__}, expected a Solution")
    if prod(solution.factors) != workers:
        raise PlanError(f"the method {method!r} split by {solution.factors}, which is not {workers} workers")
    for what, chosen, expected in (
        ("operator", solution.strategies, network.operators),
        ("tensor", solution.dimensions, network.shapes),
    ):
        if len(chosen) != len(expected):
            raise PlanError(
                f"the method {method!r} chose for {len(chosen)} {what} classes, "
                f"the network has {len(expected)}"
            )
    for shape, dimensions in zip(network.shapes, solution.dimensions, strict=True):
        layout = SplitLayout(shape, dimensions, solution.factors)
        layout.check(f"the method {method!r}, a tensor of shape {shape}")
    for bound, strategies in zip(network.operators, solution.strategies, strict=True):
        place = f"the method {method!r}, operator {bound.description.name}"
        check_strategies(bound, strategies, solution.factors, place)
