"""From a graph to a plan: ties and aliases agree, requests are checked, processes agree to the byte."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tofu.errors import GraphError, PlanError
from tofu.partitioner import partition


def test_one_worker_moves_nothing(graph):
    plan = partition(graph, 1)
    assert (plan.cost_bytes, plan.step_cost_bytes, plan.factors) == (0, (), ())
    assert all(len(layout.regions) == 1 for layout in plan.layouts.values())


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
from tofu.partitioner.plans.plan_file import encode_plan
for make in toys.GRAPHS.values():
    for method in METHODS:
        print(encode_plan(partition(make(), 6, method=method)))
"""


MODELS = """
import sys, tofu
of_gru = tofu.models.get("gru", batch=8, steps=5)
of_lenet = tofu.models.get("lenet", batch=8)
for model, method in ((of_lenet, "recursive"), (of_lenet, "refine"), (of_gru, "recursive")):
    graph = model.training_graph()
    tofu.partition(graph, 8, method=method).save(sys.argv[1])
    print(open(sys.argv[1], encoding="utf-8").read())
"""


def printed(script, argument, seed):
    """Return the output of a separate process."""
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
    assert texts.pop().count("fingerprint") == 3
