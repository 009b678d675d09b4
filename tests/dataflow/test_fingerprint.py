from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from tofu.dataflow.builder import GraphBuilder
from tofu.dataflow.graph import Graph, Phase, Role, fingerprint
from tofu.operators.stages.stage import Stage

PROGRAM = """
from tofu.dataflow import sym
from tofu.dataflow.graph import fingerprint
from tofu.dataflow.training import training_graph
net = sym.SoftmaxOutput(sym.FullyConnected(sym.Variable("data"), num_hidden=3, name="fc"), name="softmax")
print(fingerprint(training_graph(net, {"data": (4, 5), "softmax_label": (4,)})))
"""


@pytest.fixture
def graph(stage: Callable[[str], Stage]) -> Graph:
    builder = GraphBuilder("g")
    x = builder.tensor("x", (3, 4), Role.DATA)
    double = stage("def double(x):\n    return lambda i, j: x[i, j] * 2")
    (y,) = builder.apply("double", double, [x], ["y"])
    return builder.build([y])


def test_it_is_the_same_in_every_process() -> None:
    seen = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(seen) == 1
    assert len(seen.pop().strip()) == 64


def test_it_ignores_the_name_of_the_graph(graph: Graph) -> None:
    assert fingerprint(replace(graph, name="other")) == fingerprint(graph)


@pytest.mark.parametrize(
    "changed",
    [
        lambda g: replace(g, outputs=()),
        lambda g: replace(g, tensors=(replace(g.tensors[0], name="z"), g.tensors[1])),
        lambda g: replace(g, tensors=(replace(g.tensors[0], shape=(4, 3)), g.tensors[1])),
        lambda g: replace(g, tensors=(replace(g.tensors[0], dtype="float64"), g.tensors[1])),
        lambda g: replace(g, operations=(replace(g.operations[0], tie="t"),)),
        lambda g: replace(g, operations=(replace(g.operations[0], phase=Phase.UPDATE),)),
    ],
)
def test_it_changes_with_whatever_a_plan_depends_on(graph: Graph, changed: Callable[[Graph], Graph]) -> None:
    assert fingerprint(changed(graph)) != fingerprint(graph)


def test_it_changes_with_the_description(graph: Graph, stage: Callable[[str], Stage]) -> None:
    triple = stage("def double(x):\n    return lambda i, j: x[i, j] * 3").bind({"x": (3, 4)})
    other = replace(graph, operations=(replace(graph.operations[0], bound=triple),))
    assert fingerprint(other) != fingerprint(graph)
