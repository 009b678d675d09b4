"""Search methods of a user's own."""

from dataclasses import replace

import pytest

from tofu import models
from tofu.errors import PlanError
from tofu.partitioner import partition
from tofu.partitioner.methods import method as method_room
from tofu.partitioner.methods.recursive import recursive
from tofu.partitioner.problem.classes import build_problem
from tofu.partitioner.problem.factor_graph import nothing_split
from tofu.partitioner.problem.problem import Problem
from tofu.partitioner.problem.solution import Solution
from tofu.partitioner.solvers.errors import SolverLimitError
from tofu.search import METHODS, Method, register


def same(problem: Problem, workers: int) -> Solution:
    return recursive(problem, workers)


def test_a_function_is_a_method(graph):
    plan = partition(graph, 4, method=same)
    assert plan == replace(partition(graph, 4, keep=False), method="same")
    plan.verify(graph)


def test_a_function_keeps_to_constraints(graph):
    tensor = next(t.name for t in graph.tensors if t.alias is None and max(t.shape, default=0) >= 4)
    plan = partition(graph, 4, method=same, constraints=[f"forbid {tensor}:0"])
    assert 0 not in plan.layouts[tensor].dimensions


def test_a_problem_prints_shortly():
    problem = build_problem(models.get("mlp").training_graph())
    assert repr(problem) == "<problem of 'mlp': 29 classes of operations, 38 of tensors>"


def cheaper(problem: Problem, workers: int) -> Solution:
    solution = recursive(problem, workers)
    return replace(solution, cost=problem.cost(solution.cost.value + 1))


def other_workers(problem: Problem, workers: int) -> Solution:
    return recursive(problem, workers + 1)


def unsplit(problem: Problem, workers: int) -> Solution:
    return nothing_split(problem, (workers,))


def short(problem: Problem, workers: int) -> Solution:
    solution = recursive(problem, workers)
    return replace(solution, dimensions=solution.dimensions[1:])


def unknown_variable(problem: Problem, workers: int) -> Solution:
    solution = recursive(problem, workers)
    return replace(solution, strategies=(("nowhere",) * len(solution.factors), *solution.strategies[1:]))


def nothing(problem: Problem, workers: int) -> Solution:
    return None  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (cheaper, "'cheaper' states a cost of .*, but what it chose costs"),
        (other_workers, r"'other_workers' split by \(5,\), which does not multiply to 4 workers"),
        (unsplit, "'unsplit', a tensor of shape .*: 0 choices for 1 step"),
        (short, "'short' chose for .* tensor classes, but the problem has"),
        (unknown_variable, "'unknown_variable', operator .* cannot be split along 'nowhere'"),
        (nothing, "'nothing' returned a NoneType, expected a Solution"),
    ],
)
def test_what_is_no_plan_is_refused(graph, method, message):
    with pytest.raises(PlanError, match=message):
        partition(graph, 4, method=method)


def test_a_registered_method_is_chosen_by_its_name(graph):
    registered = register(Method("same", same, takes_constraints=True))
    try:
        assert METHODS["same"] is registered
        assert partition(graph, 4, method="same") == partition(graph, 4, method=registered)
        with pytest.raises(PlanError, match="the name 'same' is taken"):
            register(Method("same", same))
    finally:
        del method_room._searching["same"]
    with pytest.raises(PlanError, match="there is no search method 'same'"):
        partition(graph, 4, method="same")


def test_only_methods_are_registered():
    with pytest.raises(PlanError, match=r"register takes a tofu.search.Method, not a function"):
        register(same)


def test_what_a_registered_method_returns_is_checked(graph):
    with pytest.raises(PlanError, match=r"'wrong' split by \(5,\), which does not multiply to 4 workers"):
        partition(graph, 4, method=Method("wrong", other_workers))


def wide(problem: Problem, workers: int) -> Solution:
    raise SolverLimitError("a table of 99 entries; the limit is 9")


def test_a_solver_that_gives_up_ends_in_a_plan_error(graph):
    with pytest.raises(PlanError, match="'wide' finds no plan: a table of 99 entries"):
        partition(graph, 4, method=wide)
