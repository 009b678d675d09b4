"""Networks with operations that could be one, and what an iteration of their graphs computes."""

from __future__ import annotations

import numpy as np

from tofu.dataflow import sym
from tofu.dataflow.graph import Graph, Role
from tofu.dataflow.naming import NameScope
from tofu.dataflow.rnn import LSTMCell
from tofu.dataflow.symbol import Symbol
from tofu.operators.kernels.kernel import Array
from tofu.partitioner import lower, partition
from tofu.runtime.executor import Executor

Network = tuple[Symbol, dict[str, tuple[int, ...]]]


def recurrent() -> Network:
    """Two layers of an LSTM over 4 steps; products of inputs have a weight of 24 x 16 or 24 x 24."""
    with NameScope():
        outputs, _ = LSTMCell(24, prefix="l0_").unroll(4, sym.Variable("data"))
        outputs, _ = LSTMCell(24, prefix="l1_").unroll(4, outputs)
        net = sym.FullyConnected(outputs[-1], num_hidden=8, name="fc1")
        net = sym.LinearRegressionOutput(net, sym.Variable("label"), name="out")
    return net, {"data": (2, 4, 16), "label": (2, 8)}


def siamese() -> Network:
    """One layer applied to three inputs, which are added up."""
    with NameScope():
        weight, bias = sym.Variable("w"), sym.Variable("b")
        ends = [
            sym.FullyConnected(
                sym.Variable(f"data{k}"), weight=weight, bias=bias, num_hidden=32, name=f"fc{k}"
            )
            for k in range(3)
        ]
        net = sym.LinearRegressionOutput(ends[0] * ends[1] + ends[2], sym.Variable("label"), name="out")
    return net, {**{f"data{k}": (2, 32) for k in range(3)}, "label": (2, 32)}


def projections() -> Network:
    """Three products of the same large activations with weights of their own, of few columns."""
    with NameScope():
        data = sym.Variable("data")
        query, key, value = (
            sym.FullyConnected(data, num_hidden=2, no_bias=True, name=name) for name in ("q", "k", "v")
        )
        net = sym.LinearRegressionOutput(query * key + value, sym.Variable("label"), name="out")
    return net, {"data": (32, 64), "label": (32, 2)}


def crossed() -> Network:
    """Two groups of siblings, of which each has one that waits for one of the other."""
    with NameScope():
        first, second = sym.Variable("first_weight"), sym.Variable("second_weight")

        def layer(data: Symbol, weight: Symbol, name: str) -> Symbol:
            return sym.FullyConnected(data, weight=weight, num_hidden=32, no_bias=True, name=name)

        ahead = layer(layer(sym.Variable("data"), first, "a1"), second, "b1")
        back = layer(layer(sym.Variable("other"), second, "b2"), first, "a2")
        net = sym.LinearRegressionOutput(ahead + back, sym.Variable("label"), name="out")
    return net, {"data": (2, 32), "other": (2, 32), "label": (2, 32)}


NETWORKS = {"recurrent": recurrent, "siamese": siamese, "projections": projections, "crossed": crossed}


def after(graph: Graph, steps: int = 2, workers: int = 1) -> dict[str, Array]:
    """Train from the same small numbers, and return the outputs and all that was learned."""
    with Executor(lower(graph, partition(graph, workers))) as executor:
        for tensor in graph.tensors:
            if tensor.role is Role.SCALAR:
                executor.write(tensor.name, np.full(tensor.shape, 0.1))
            elif tensor.role in (Role.DATA, Role.PARAMETER) and tensor.alias is None:
                draw = np.random.default_rng(sum(map(ord, tensor.name)))
                executor.write(tensor.name, draw.standard_normal(tensor.shape) * 0.5)
        for _ in range(steps):
            executor.run()
        names = [graph.tensors[index].name for index in graph.outputs]
        names += [each.name for each in graph.tensors if each.role is Role.PARAMETER and each.alias is None]
        return {name: executor.read(name) for name in names}
