"""The search against enumeration of all choices, with bytes counted element by element.

The counter here is independent of the project's: it splits boxes with Python integers and intersects
sets of elements.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tofu.errors import GraphError, PlanError
from tofu.partitioner import partition
from tofu.partitioner.layouts.step_split import prime_factors


def split(intervals, choices, factors):
    """Nested halving (or thirding, ...) of one box, in plain integers: one box per worker."""
    boxes = [tuple(intervals)]
    for choice, factor in zip(choices, factors, strict=True):
        parts = []
        for box in boxes:
            for part in range(factor):
                new = list(box)
                if choice is not None:
                    lower, upper = box[choice]
                    length = upper - lower
                    new[choice] = (lower + part * length // factor, lower + (part + 1) * length // factor)
                parts.append(tuple(new))
        boxes = parts
    return boxes


def element_set(region):
    return set(itertools.product(*(range(lower, upper) for lower, upper in region)))


def terms_of_workers(bound, strategies, factors):
    """Which partial result each worker holds: its digits at the steps that reduce."""
    digits = itertools.product(*map(range, factors))
    kinds = [None if v is None else bound.kind(v) for v in strategies]
    return [tuple(d for d, kind in zip(ds, kinds, strict=True) if kind == "reduce") for ds in digits]


def moved_bytes(graph, operation, strategies, layouts, factors):
    """Bytes that one operation moves, tensor by tensor: `{tensor: bytes}`."""
    bound = operation.bound
    axes = [None if v is None else bound.variables.index(v) for v in strategies]
    boxes = split([(0, extent) for extent in bound.extents.values()], axes, factors)
    owned = {
        t: [element_set(r) for r in split([(0, n) for n in graph.tensors[t].shape], layouts[t], factors)]
        for t in {*operation.inputs, *operation.outputs}
    }
    moved = dict.fromkeys(owned, 0)
    for worker, box in enumerate(boxes):
        regions = bound.input_regions(np.array([box], np.int64).reshape(1, -1, 2))
        needed = {}
        for name, tensor in zip(bound.description.tensor_names, operation.inputs, strict=True):
            if name in bound.reads:
                needed[tensor, tuple(map(tuple, regions[name][0].tolist()))] = tensor
        for (_, region), tensor in needed.items():
            moved[tensor] += len(element_set(region) - owned[tensor][worker])
    terms = terms_of_workers(bound, strategies, factors)
    for k, tensor in enumerate(operation.outputs):
        produced = [
            element_set(
                tuple(map(tuple, bound.output_regions(np.array([box], np.int64).reshape(1, -1, 2))[k][0]))
            )
            for box in boxes
        ]
        for worker, mine in enumerate(owned[tensor]):
            for term in set(terms):
                have = produced[worker] if terms[worker] == term else set()
                others = set().union(*(p for p, t in zip(produced, terms, strict=True) if t == term))
                assert mine <= others
                moved[tensor] += len(mine - have)
    return {t: count * np.dtype(graph.tensors[t].dtype).itemsize for t, count in moved.items()}


def plan_bytes(graph, plan, steps=None):
    factors = plan.factors[:steps]
    layouts = {t.index: plan.layouts[t.name].dimensions[:steps] for t in graph.tensors}
    return sum(
        sum(moved_bytes(graph, op, plan.strategies[op.name][:steps], layouts, factors).values())
        for op in graph.operations
    )


def tensor_choices(shape, earlier, factors):
    smallest = list(shape)
    for dimension, factor in zip(earlier, factors, strict=False):
        if dimension is not None:
            smallest[dimension] //= factor
    found = [(*earlier, d) for d, n in enumerate(smallest) if n >= factors[len(earlier)]]
    return found or [(*earlier, None)]


def operator_choices(bound, earlier, factors):
    smallest = dict(bound.extents)
    for variable, factor in zip(earlier, factors, strict=False):
        if variable is not None:
            smallest[variable] //= factor
    k = factors[len(earlier)]
    found = [(*earlier, v) for v, n in smallest.items() if n >= k and bound.kind(v) is not None]
    return found or [(*earlier, None)]


def best_next_step(graph, plan, step):
    """The least bytes that any choice of one step can move, the earlier steps being the plan's."""
    factors = plan.factors[: step + 1]
    layout_of = {}
    operator_of = {}
    for t in graph.tensors:
        layout_of[t.index] = t.index if t.alias is None else layout_of[t.alias]
    for op in graph.operations:
        key = (op.tie, op.bound)
        first = operator_of.setdefault(key, op) if op.tie else op
        if first is not op:
            for mine, its in zip(op.outputs, first.outputs, strict=True):
                layout_of = {t: layout_of[its] if c == layout_of[mine] else c for t, c in layout_of.items()}
    classes = sorted(set(layout_of.values()))
    tensors = [
        tensor_choices(graph.tensors[c].shape, plan.layouts[graph.tensors[c].name].dimensions[:step], factors)
        for c in classes
    ]
    groups = {}
    for op in graph.operations:
        groups.setdefault((op.tie, op.bound) if op.tie else op.index, []).append(op)
    best = None
    for choice in itertools.product(*tensors):
        chosen = dict(zip(classes, choice, strict=True))
        layouts = {t.index: chosen[layout_of[t.index]] for t in graph.tensors}
        total = 0
        for members in groups.values():
            bound = members[0].bound
            earlier = plan.strategies[members[0].name][:step]
            total += min(
                sum(sum(moved_bytes(graph, op, s, layouts, factors).values()) for op in members)
                for s in operator_choices(bound, earlier, factors)
            )
        best = total if best is None else min(best, total)
    return best


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_step_is_optimal(data, draw_graph):
    graph = data.draw(draw_graph(max_operations=2))
    plan = partition(graph, data.draw(st.sampled_from([2, 3, 4, 6])))
    before = 0
    for step, cost in enumerate(plan.step_cost_bytes):
        assert before + cost == best_next_step(graph, plan, step)
        before += cost


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_costs_are_what_elements_move(data, draw_graph):
    graph = data.draw(draw_graph(max_operations=4))
    plan = partition(graph, data.draw(st.integers(1, 8)))
    assert plan.cost_bytes == plan_bytes(graph, plan)
    assert sum(plan.step_cost_bytes) == plan.cost_bytes
    assert plan.lower_bound_bytes <= plan.cost_bytes


@pytest.mark.parametrize("workers", range(1, 9))
def test_costs_of_known_graphs(graph, workers):
    plan = partition(graph, workers)
    assert plan.cost_bytes == plan_bytes(graph, plan)
    for step in range(len(plan.factors) + 1):
        assert sum(plan.step_cost_bytes[:step]) == plan_bytes(graph, plan, step)
    plan.verify(graph)


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_exact_is_the_best_of_all_plans_and_none_beats_the_lower_bound(data, draw_graph):
    graph = data.draw(draw_graph(max_operations=1))
    factors = prime_factors(4)
    plan = partition(graph, 4)
    exact = partition(graph, 4, method="exact")
    (operation,) = graph.operations
    classes = {t.index: t.index if t.alias is None else t.alias for t in graph.tensors}

    def sequences(choices, subject):
        return [two for one in choices(subject, (), factors) for two in choices(subject, one, factors)]

    touched = sorted({classes[t] for t in (*operation.inputs, *operation.outputs)})
    layouts = [sequences(tensor_choices, graph.tensors[t].shape) for t in touched]
    best = None
    for strategy in sequences(operator_choices, operation.bound):
        for choice in itertools.product(*layouts):
            chosen = dict(zip(touched, choice, strict=True))
            of_tensor = {t: chosen.get(c) for t, c in classes.items()}
            moved = sum(moved_bytes(graph, operation, strategy, of_tensor, factors).values())
            assert plan.lower_bound_bytes <= moved
            best = moved if best is None else min(best, moved)
    assert exact.lower_bound_bytes == exact.cost_bytes == best


def test_the_bound_is_attained_where_one_step_is_all(graph):
    for workers in (2, 5, 7):
        plan = partition(graph, workers)
        assert plan.lower_bound_bytes == plan.cost_bytes


@pytest.mark.parametrize(
    ("workers", "factors"),
    [(1, ()), (2, (2,)), (7, (7,)), (12, (3, 2, 2)), (30, (5, 3, 2)), (97 * 2, (97, 2))],
)
def test_factors_are_primes_largest_first(workers, factors):
    assert prime_factors(workers) == factors


def test_one_worker_moves_nothing(graph):
    plan = partition(graph, 1)
    assert (plan.cost_bytes, plan.step_cost_bytes, plan.factors) == (0, (), ())
    assert all(len(layout.regions) == 1 for layout in plan.layouts.values())


def test_seven_workers_split_unevenly(toy, texts):
    graph = toy()
    graph.apply(texts["RELU"], graph.tensor(17, 2))
    plan = partition(graph.graph(), 7)
    assert plan.layouts["t0"].dimensions == (0,)
    assert [upper - lower for lower, upper in plan.layouts["t0"].regions[:, 0].tolist()] == [
        2,
        2,
        3,
        2,
        3,
        2,
        3,
    ]
    assert plan.cost_bytes == 0


def test_tensors_too_small_to_split_are_replicated(toy, texts):
    graph = toy()
    graph.apply(texts["ADD"], graph.tensor(1, 3), graph.tensor(1, 3))
    plan = partition(graph.graph(), 4)
    assert plan.layouts["t0"].dimensions == (1, None)
    assert plan.strategies["add0"] == ("j", None)
    assert plan.cost_bytes == 0


def test_tied_operations_agree(graph):
    plan = partition(graph, 4)
    seen = {}
    for op in graph.operations:
        if op.tie is not None:
            outputs = [plan.layouts[graph.tensors[t].name] for t in op.outputs]
            first = seen.setdefault((op.tie, op.bound), (plan.strategies[op.name], outputs))
            assert first == (plan.strategies[op.name], outputs)


def test_aliases_take_over_the_layout(graph):
    plan = partition(graph, 6)
    for tensor in graph.tensors:
        if tensor.alias is not None:
            assert plan.layouts[tensor.name] == plan.layouts[graph.tensors[tensor.alias].name]


def test_malformed_graphs_are_refused_before_the_search(toy, texts):
    graph = toy()
    target = graph.tensor(3, 3)
    graph.apply(texts["TRANSPOSE"], graph.tensor(3, 4), aliases=(target,))
    with pytest.raises(GraphError, match=r"'t2' of shape \(4, 3\) in .* cannot overwrite 't0' of"):
        partition(graph.graph(), 2)
    with pytest.raises(GraphError, match="no operations"):
        partition(toy().graph(), 2)


@pytest.mark.parametrize("workers", [0, -3, 1.0, True, "8", None, 1 << 40])
def test_impossible_worker_counts(graph, workers):
    with pytest.raises(PlanError, match="workers"):
        partition(graph, workers)


def test_an_unknown_method_lists_those_there_are(graph):
    with pytest.raises(PlanError, match="no search method 'None'"):
        partition(graph, 2, method=None)
    with pytest.raises(PlanError, match=r"no search method 'magic'; there are: .*recursive"):
        partition(graph, 2, method="magic")


TOYS = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("toys", sys.argv[1])
toys = importlib.util.module_from_spec(spec)
spec.loader.exec_module(toys)
from tofu.partitioner import METHODS, partition
from tofu.partitioner.plans.plan import encode_plan
for make in toys.GRAPHS.values():
    for method in METHODS:
        print(encode_plan(partition(make(), 6, method=method)))
"""

MODELS = """
import sys, tofu
for name in ("wresnet-10-2", "lstm"):
    for method in ("recursive", "refine"):
        graph = tofu.models.get(name, batch=8).training_graph()
        tofu.partition(graph, 8, method=method).save(sys.argv[1])
        print(open(sys.argv[1], encoding="utf-8").read())
"""


def printed(script, argument, seed):
    """What a process of its own prints."""
    ran = subprocess.run(
        [sys.executable, "-c", script, str(argument)],
        env={**os.environ, "PYTHONHASHSEED": seed},
        check=True,
        capture_output=True,
        text=True,
    )
    return ran.stdout


def test_plans_do_not_depend_on_the_hash_seed():
    conftest = os.path.join(os.path.dirname(__file__), "..", "conftest.py")
    texts = {printed(TOYS, conftest, seed) for seed in ("0", "1", "12345")}
    assert len(texts) == 1
    assert "cost_bytes" in texts.pop()


def test_plan_files_of_whole_models_are_the_same_bytes_in_every_process(tmp_path):
    texts = {printed(MODELS, tmp_path / "plan.json", seed) for seed in ("0", "random")}
    assert len(texts) == 1
    assert texts.pop().count("fingerprint") == 4
