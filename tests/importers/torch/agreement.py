"""Hold a module that was read against PyTorch: outputs, and gradients of all parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import tofu
from tofu.dataflow.training import gradient_graph

Array = npt.NDArray[Any]

ROUNDING = 2e-4
"""The difference allowed, relative to the largest element: sums of float32 in another order."""


@dataclass(frozen=True)
class Computed:
    """Outputs and gradients of one run."""

    outputs: list[Array]
    gradients: dict[str, Array]


def fed(symbol: Any, parameters: Mapping[str, Array], inputs: Sequence[Any]) -> dict[str, Array]:
    """Return the arrays of the inputs that the symbol reads, by name."""
    names = [name for name in symbol.list_arguments() if name not in parameters]
    arrays = [np.asarray(each.detach().numpy(), dtype="float32") for each in inputs]
    return {name: array.reshape(array.shape or (1,)) for name, array in zip(names, arrays, strict=True)}


def by_tofu(
    symbol: Any, parameters: Mapping[str, Array], feeds: Mapping[str, Array], workers: int = 1
) -> Computed:
    """Compute outputs and gradients; outputs that are not losses have gradients of one."""
    graph = gradient_graph(symbol, {name: array.shape for name, array in feeds.items()})
    tensors = {tensor.name: tensor for tensor in graph.tensors}
    with tofu.Executor(tofu.lower(graph, tofu.partition(graph, workers=workers))) as executor:
        for name, value in {**parameters, **feeds}.items():
            if name in tensors:
                executor.write(name, value)
        for name, tensor in tensors.items():
            if name.startswith("head("):
                executor.write(name, np.ones(tensor.shape, "float32"))
        executor.run()
        found = [executor.read(graph.tensors[index].name) for index in graph.outputs]
    count = len(symbol.list_outputs())
    names = [graph.tensors[index].name for index in graph.outputs[count:]]
    wanted = [name for name in symbol.list_arguments() if name in parameters]
    gradients = {}
    for name, value in zip(names, found[count:], strict=True):
        known = [each for each in wanted if f"grad({each})" in name or f"({each})" in name]
        if known:
            gradients[max(known, key=len)] = value
    return Computed(found[:count], gradients)


def by_torch(module: Any, inputs: Sequence[Any]) -> Computed:
    """Compute the same with PyTorch."""
    found = module(*inputs)
    outputs = [found] if not isinstance(found, tuple | list) else list(found)
    module.zero_grad()
    heads = [outputs[0]] if outputs[0].dim() == 0 else [each for each in outputs if each.requires_grad]
    if heads and heads[0].requires_grad:
        sum(each.sum() for each in heads).backward()
    gradients = {
        name: parameter.grad.numpy().copy()
        for name, parameter in module.named_parameters()
        if parameter.grad is not None
    }
    return Computed([each.detach().numpy() for each in outputs], gradients)


def require_close(expected: Array, found: Array, what: str, rounding: float = ROUNDING) -> None:
    """Fail if two arrays differ by more than rounding."""
    assert expected.size == found.size, (what, expected.shape, found.shape)
    expected = np.asarray(expected, "float64").reshape(found.shape)
    finite = np.isfinite(expected)
    assert np.array_equal(expected[~finite], found[~finite]), what
    worst = np.abs(expected - found)[finite].max(initial=0.0)
    assert worst <= rounding * max(1.0, np.abs(expected[finite]).max(initial=0.0)), (what, worst)


def require_agreement(module: Any, *inputs: Any, workers: Sequence[int] = (1,), **options: Any) -> Any:
    """Read a module, and compare with PyTorch on each number of workers. Return symbol and parameters."""
    symbol, parameters = tofu.from_torch(module, inputs, **options)
    feeds = fed(symbol, parameters, inputs)
    runs = [by_tofu(symbol, parameters, feeds, count) for count in workers]
    expected = by_torch(module, inputs)
    for found in runs:
        assert len(found.outputs) == len(expected.outputs)
        for number, (one, other) in enumerate(zip(expected.outputs, found.outputs, strict=True)):
            require_close(one, other, f"output {number}")
        for name, gradient in expected.gradients.items():
            other = found.gradients.get(name, np.zeros_like(gradient))
            require_close(gradient, other, f"gradient of {name}")
    return symbol, parameters
