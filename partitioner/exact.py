"""All steps together, exactly: a choice is a sequence over all steps, and the plan is the best there is.

Starts from the refined plan. Sequences that no best plan needs are pruned, then everything is eliminated at
once; where a table would be too large, the refined plan is returned with a bound by mini-bucket elimination.
"""

from __future__ import annotations

from dataclasses import replace

from .dominance import Dominance
from .elimination import MIN_PLUS, Arithmetic, WidthError, eliminate, lower_bound
from .network import Network
from .recursive import factor_graph
from .refine import refine
from .sequences import all_sequences, sequence_count
from .solution import Solution, assigned
from .tables import Tables, operator_choices, splittable, tensor_choices

SEQUENCE_LIMIT = 512
"""Sequences of one operator or tensor beyond which the joint problem is not tried."""

TABLE_LIMIT = 1 << 26
"""Entries of the largest table that the joint elimination may combine."""

BOUND_TABLE_LIMIT = 1 << 24
"""The same for the bound that is proven where the joint elimination is too wide."""


def exact(network: Network, workers: int) -> Solution:
    """The best plan of all that recursion can make, proven so where `lower_bound_bytes` equals the cost."""
    plan = refine(network, workers)
    if plan.lower_bound_bytes == plan.cost_bytes:
        return plan
    counts = [sequence_count(splittable(bound), plan.factors) for bound in network.operators]
    counts += [sequence_count(dict(enumerate(shape)), plan.factors) for shape in network.shapes]
    if max(counts) > SEQUENCE_LIMIT:
        return plan
    return _solve(network, plan)


def _solve(network: Network, plan: Solution) -> Solution:
    """The best plan, or this one with a better bound."""
    factors = plan.factors
    tables = Tables(factors)
    of_bound = {
        bound: operator_choices(bound, all_sequences(splittable(bound), factors), factors)
        for bound in dict.fromkeys(network.operators)
    }
    of_shape = {
        shape: tensor_choices(shape, all_sequences(dict(enumerate(shape)), factors), factors)
        for shape in dict.fromkeys(network.shapes)
    }
    operators = [of_bound[bound] for bound in network.operators]
    tensors = [of_shape[shape] for shape in network.shapes]
    pruned = Dominance().prune(*factor_graph(network, tables, operators, tensors))
    arithmetic = Arithmetic(MIN_PLUS)
    try:
        solved = eliminate(pruned.domains, pruned.factors, arithmetic=arithmetic, table_limit=TABLE_LIMIT)
    except WidthError:
        bound = lower_bound(
            pruned.domains, pruned.factors, arithmetic=arithmetic, table_limit=BOUND_TABLE_LIMIT
        )
        return replace(plan, lower_bound_bytes=max(plan.lower_bound_bytes, bound))
    return assigned(
        factors,
        operators,
        tensors,
        pruned.original(solved.assignment),
        cost_bytes=solved.optimum,
        lower_bound_bytes=solved.optimum,
    )
