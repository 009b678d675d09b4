"""Small models to train: the zoo's, and a residual network that has every kind of layer in it."""

from __future__ import annotations

from functools import cache

import tofu
from tofu.dataflow.graph import Graph
from tofu.dataflow.training import training_graph

from ..test_zoo_memory import FAMILIES, graph_of

ZOO = tuple(sorted(FAMILIES))
HOST = ("mlp-adam", "residual", "lstm", "gpt-1-16")
"""Those that the host runs too, where compiling their kernels takes seconds."""


@cache
def graph(name: str) -> Graph:
    """The training graph of this name; equal calls give the same one."""
    match name:
        case "mlp-adam":
            return tofu.models.get("mlp", batch=8).training_graph("adam")
        case "residual":
            return residual()
        case "sum":
            return of_a_sum()
        case _:
            return graph_of(name)


def of_a_sum() -> Graph:
    """A sum of all elements within an expression: an operator of its gradient has no index variables."""
    total = tofu.parse("def total(a): return lambda one=1: tanh(Sum(lambda i: a[i]))")
    symbol = tofu.sym.apply(total, tofu.sym.Variable("a", shape=(8,)), name="total")
    return training_graph(tofu.sym.MakeLoss(symbol), {}, "sgd")


def residual() -> Graph:
    """Convolutions, with and without a stride, batch normalisation, pooling, a shortcut."""
    data = tofu.sym.Variable("data")
    body = tofu.sym.Convolution(
        data, num_filter=4, kernel=(3, 3), pad=(1, 1), stride=(2, 2), no_bias=True, name="conv0"
    )
    body = tofu.sym.BatchNorm(body, name="bn0")
    body = tofu.sym.Activation(body, act_type="relu", name="relu0")
    inner = tofu.sym.Convolution(body, num_filter=4, kernel=(3, 3), pad=(1, 1), name="conv1")
    body = tofu.sym.Pooling(inner + body, kernel=(2, 2), stride=(2, 2), pool_type="max", name="pool0")
    body = tofu.sym.FullyConnected(tofu.sym.Flatten(body), num_hidden=4, name="fc0")
    network = tofu.sym.SoftmaxOutput(body, name="softmax")
    return training_graph(network, {"data": (4, 2, 8, 8), "softmax_label": (4,)}, "sgd")
