"""Search methods of a user's own."""

from dataclasses import replace

import pytest

from tofu import models
from tofu.errors import PlanError
from tofu.partitioner import partition
from tofu.partitioner.methods.recursive import recursive
from tofu.partitioner.problem.factor_graph import nothing_split
from tofu.partitioner.problem.problem import Problem, build_problem
from tofu.partitioner.problem.solution import Solution


def same(problem: Problem, workers: int) -> Solution:
    return recursive(problem, workers)


def test_a_function_is_a_method(graph):
    plan = partition(graph, 4, method=same)
    assert plan == replace(partition(graph, 4), method="same")
    plan.verify(graph)


def test_a_function_keeps_to_constraints(graph):
    tensor = next(t.name for t in graph.tensors if t.alias is None and max(t.shape, default=0) >= 4)
    plan = partition(graph, 4, method=same, constraints=[f"forbid {tensor}:0"])
    assert 0 not in plan.layouts[tensor].dimensions


def test_a_network_prints_shortly():
    problem = build_problem(models.get("mlp").training_graph())
    assert repr(problem) == "<problem of 'mlp': 29 classes of operations, 38 of tensors>"


def cheaper(problem: Problem, workers: int) -> Solution:
    solution = recursive(problem, workers)
    return replace(solution, cost_bytes=solution.cost_bytes + 1)


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
        (other_workers, r"'other_workers' split by \(5,\), which is not 4 workers"),
        (unsplit, "'unsplit', a tensor of shape .*: 0 choices for 1 steps"),
        (short, "'short' chose for .* tensor classes, the problem has"),
        (unknown_variable, "'unknown_variable', operator .* cannot be split along 'nowhere'"),
        (nothing, "'nothing' returned NoneType, expected a Solution"),
    ],
)
def test_what_is_no_plan_is_refused(graph, method, message):
    with pytest.raises(PlanError, match=message):
        partition(graph, 4, method=method)
