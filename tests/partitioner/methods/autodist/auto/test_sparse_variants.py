"""The search chooses how a table is exchanged, by its size, its width and the number of indices."""

from __future__ import annotations

import pytest

import tofu
from tofu.dataflow import sym
from tofu.dataflow.graph import Graph
from tofu.dataflow.naming import NameScope
from tofu.dataflow.training import training_graph
from tofu.partitioner.methods.autodist.strategy import Synchronisation
from tofu.sync import auto, rewrite

WORKERS = 4


def table(rows: int, width: int, batch: int) -> Graph:
    with NameScope():
        net = sym.Embedding(sym.Variable("data"), input_dim=rows, output_dim=width, name="table")
        net = sym.LinearRegressionOutput(net, sym.Variable("label"), name="out")
    return training_graph(net, {"data": (batch,), "label": (batch, width)}, "sgd")


def kind(how: Synchronisation) -> str:
    """Return a word for a way to exchange a table."""
    if how.masked:
        return "masked sums"
    if not how.rows:
        return "dense"
    return "rows" if how.partition is None else "columns" if how.cuts[0].axis else "rows of parts"


@pytest.mark.parametrize(
    ("rows", "width", "batch", "machine", "expected"),
    [
        (12, 5, 512, "pcie-8", "dense"),
        (200_000, 2, 32, "pcie-8", "rows"),
        (200_000, 2, 32, "dgx-1-v100", "rows of parts"),
        (200_000, 64, 32, "pcie-8", "columns"),
        (2_000_000, 2, 32, "pcie-8", "masked sums"),
    ],
)
def test_each_way_is_the_fastest_somewhere(
    rows: int, width: int, batch: int, machine: str, expected: str
) -> None:
    """A table of two columns is not cut by columns; a large one has its updates shared by all workers."""
    graph = table(rows, width, batch)
    found = auto(graph, WORKERS, machine)
    assert kind(found.strategy.variables["table_weight"]) == expected
    assert found.seconds == min(each.seconds for each in found.search.candidates) < found.plain_seconds
    trained = rewrite(graph, WORKERS, found.plan)
    assert (trained is graph) == (expected != "masked sums")
    tofu.verify(trained, found.plan)
    assert expected == "dense" or any(each.feature == "sparsity" for each in found.reasons)


def test_the_method_leaves_the_graph_as_it_is() -> None:
    graph = table(2_000_000, 2, 32)
    plan = tofu.partition(graph, WORKERS, "auto", machine="pcie-8")
    assert not plan.rewrites
    tofu.verify(graph, plan)
    assert plan.step_seconds == tofu.simulate(tofu.lower(graph, plan), "pcie-8").seconds
