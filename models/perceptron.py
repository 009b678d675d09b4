"""Multi-layer perceptron and LeNet, the networks of MXNet's first tutorials."""

from __future__ import annotations

from collections.abc import Sequence

from ..dataflow import sym
from ..dataflow.symbol import Symbol


def mlp(hidden: Sequence[int], classes: int) -> Symbol:
    """Fully connected layers with rectifiers over flattened data."""
    body = sym.Flatten(sym.Variable("data"), name="flatten")
    for number, width in enumerate(hidden, 1):
        body = sym.FullyConnected(body, num_hidden=width, name=f"fc{number}")
        body = sym.Activation(body, act_type="relu", name=f"relu{number}")
    body = sym.FullyConnected(body, num_hidden=classes, name=f"fc{len(hidden) + 1}")
    return sym.SoftmaxOutput(body, name="softmax")


def lenet(classes: int) -> Symbol:
    """Return two convolutions with pooling, two fully connected layers, tanh in between."""
    body = sym.Variable("data")
    for number, width in enumerate((20, 50), 1):
        body = sym.Convolution(body, kernel=(5, 5), num_filter=width, name=f"conv{number}")
        body = sym.Activation(body, act_type="tanh", name=f"tanh{number}")
        body = sym.Pooling(body, kernel=(2, 2), stride=(2, 2), pool_type="max", name=f"pool{number}")
    body = sym.FullyConnected(sym.Flatten(body, name="flatten"), num_hidden=500, name="fc1")
    body = sym.Activation(body, act_type="tanh", name="tanh3")
    body = sym.FullyConnected(body, num_hidden=classes, name="fc2")
    return sym.SoftmaxOutput(body, name="softmax")
