"""For those who write search methods: the problem, its choices and tables, the solvers, and the registry.

A method is a function of a `Problem` and a number of workers that returns a `Solution`. Tofu's own
methods are made of the functions here; `docs/tutorials/search.md` puts them together.
"""

from __future__ import annotations

from .partitioner.layouts.step_split import prime_factors
from .partitioner.methods.method import METHODS, Method, register
from .partitioner.methods.recursive import next_plan, recursion_bound
from .partitioner.methods.simulated import SearchProgress, SimulatedSearch
from .partitioner.plans.cost import Cost, CostUnit
from .partitioner.plans.space import Space
from .partitioner.plans.unproven import UnprovenStep
from .partitioner.problem.candidates import Tables
from .partitioner.problem.classes import build_problem
from .partitioner.problem.factor_graph import (
    factor_graph,
    joint_choices,
    next_choices,
    nothing_split,
    steps_of,
)
from .partitioner.problem.links import Link
from .partitioner.problem.moved_bytes import MovedBytes
from .partitioner.problem.problem import Objective, Problem
from .partitioner.problem.sequences import all_sequences
from .partitioner.problem.solution import Solution, assigned
from .partitioner.solvers.elimination import CostTable, eliminate
from .partitioner.solvers.frontier import least_frontier
from .partitioner.solvers.pair_table import PairTable
from .partitioner.solvers.solve import least_cost

__all__ = [
    "METHODS",
    "Cost",
    "CostTable",
    "CostUnit",
    "Link",
    "Method",
    "MovedBytes",
    "Objective",
    "PairTable",
    "Problem",
    "SearchProgress",
    "SimulatedSearch",
    "Solution",
    "Space",
    "Tables",
    "UnprovenStep",
    "all_sequences",
    "assigned",
    "build_problem",
    "eliminate",
    "factor_graph",
    "joint_choices",
    "least_cost",
    "least_frontier",
    "next_choices",
    "next_plan",
    "nothing_split",
    "prime_factors",
    "recursion_bound",
    "register",
    "steps_of",
]
