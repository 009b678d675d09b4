"""A module of PyTorch as a model: its inputs are data, and its loss or its scores have a label."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from ..dataflow import sym
from ..dataflow.optimizer import sgd
from ..errors import GraphError
from .model import Model

LABEL = "softmax_label"

FILES = (".pt2", ".pt", ".pth")
"""The ends of the names of PyTorch's files, which are not read: PyTorch evaluates text that they hold."""


def is_module(value: object) -> bool:
    """Return whether a value is a module of PyTorch. If PyTorch was not imported, nothing is one."""
    torch: Any = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def _is_loss(symbol: sym.Symbol) -> bool:
    operator = symbol.heads[0].node.operator
    return operator is not None and operator.is_loss


def of_module(name: str, module: object, example_inputs: object, batch: int | None = None) -> Model:
    """Return the model of a module, for batches of `batch` samples, or as many as the examples have.

    If the module returns its loss, the last of several inputs is the label, and gradients are not divided by
    the batch, since a loss in PyTorch is a mean. If it returns scores `[rows, classes]`, SoftmaxOutput is put
    on top. Raises GraphError for other outputs, and for examples whose first dimensions are not a batch.
    """
    if batch is not None:
        example_inputs = _of_batch(name, example_inputs, batch)
    from ..importers.torch import from_torch

    symbol, values = from_torch(module, example_inputs)
    arguments, outputs, _ = symbol.infer_shape()
    shapes = {
        argument: shape
        for argument, shape in zip(symbol.list_arguments(), arguments, strict=True)
        if argument not in values
    }
    if _is_loss(symbol):
        names = list(shapes)
        labels = {names[-1]: shapes.pop(names[-1])} if len(names) > 1 else {}
        return Model(name, symbol, shapes, labels, sgd(rescale=1.0), values)
    scores = outputs[0]
    if len(scores) != 2:
        raise GraphError(
            f"{name} returns a tensor of shape {scores}; return the loss, or scores [rows, classes]"
        )
    rows = scores[:1]
    return Model(name, sym.SoftmaxOutput(symbol[0], name="softmax"), shapes, {LABEL: rows}, start=values)


def _of_batch(name: str, inputs: Any, batch: int) -> Any:
    """Return examples with `batch` samples: the given ones, over and over. A first dimension is the batch."""
    if isinstance(inputs, Mapping):
        return dict(zip(inputs, _of_batch(name, tuple(inputs.values()), batch), strict=True))
    if not isinstance(inputs, tuple | list):
        return _of_batch(name, (inputs,), batch)
    torch: Any = sys.modules["torch"]
    shapes = [tuple(each.shape) if isinstance(each, torch.Tensor) else None for each in inputs]
    if (
        len({shape[0] if shape else 0 for shape in shapes}) != 1
        or not all(shapes)
        or 0 in (shapes[0] or (0,))
    ):
        listed = ", ".join("another value" if shape is None else str(shape) for shape in shapes)
        raise GraphError(
            f"the examples of {name} are {listed}, which have no batch in common; return examples of a "
            f"batch of {batch} instead of giving the batch"
        )
    return tuple(each[torch.arange(batch) % each.shape[0]] for each in inputs)
