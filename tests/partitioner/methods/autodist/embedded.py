"""A small network with a table of which data choose rows."""

from __future__ import annotations

from tofu.dataflow import sym
from tofu.dataflow.graph import Graph
from tofu.dataflow.naming import NameScope
from tofu.dataflow.optimizer import sgd
from tofu.dataflow.training import training_graph

ROWS, WIDTH, HIDDEN, BATCH = 12, 5, 8, 8


def embedded(dtype: str = "float64") -> Graph:
    """Return the training graph; its variables are `table_weight`, `fc_weight` and `fc_bias`, in order."""
    with NameScope():
        net = sym.Embedding(sym.Variable("data"), input_dim=ROWS, output_dim=WIDTH, name="table")
        net = sym.FullyConnected(net, num_hidden=HIDDEN, name="fc")
        net = sym.LinearRegressionOutput(net, sym.Variable("label"), name="out")
    shapes = {"data": (BATCH,), "label": (BATCH, HIDDEN)}
    return training_graph(net, shapes, sgd(momentum=0, rescale=0.25), dtype=dtype)
