"""Modules on the meta device are read without memory for weights; modules that need values are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tofu
from tofu.models.torch_module import of_module
from tofu.partitioner import layers
from tofu.partitioner.explaining.weights import folded

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


class Block(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Stack(torch.nn.Module):
    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(Block(width) for _ in range(depth))
        self.first, self.last = torch.nn.Linear(width, width), torch.nn.Linear(width, width)
        self.last.weight = self.first.weight

    def forward(self, x: Any) -> Any:
        x = self.first(x)
        for layer in self.layers:
            x = layer(x)
        return self.last(x).square().mean()


def stack(device: str, width: int = 16, depth: int = 3) -> Any:
    with torch.device(device):
        return Stack(width, depth)


def test_the_symbol_is_that_of_the_module_with_weights() -> None:
    x = torch.zeros(8, 16)
    without, values = tofu.from_torch(stack("meta"), (x,))
    symbol, real = tofu.from_torch(stack("cpu"), (x,))
    assert without.tojson() == symbol.tojson()
    assert {name: value.shape for name, value in values.items()} == {n: v.shape for n, v in real.items()}
    assert all(np.isnan(value).all() for value in values.values())


def test_weights_take_no_memory() -> None:
    module = stack("meta", width=8192, depth=2)
    _, values = tofu.from_torch(module, (torch.zeros(2, 8192),))
    assert sum(value.size for value in values.values()) > 1e9
    assert all(set(value.strides) == {0} for value in values.values())
    assert all(parameter.is_meta for parameter in module.parameters()), "the module itself is not changed"


def test_a_buffer_without_values_is_refused() -> None:
    module = stack("meta")
    module.register_buffer("angles", torch.zeros(3, device="meta"))
    with pytest.raises(tofu.GraphError, match="buffer 'angles' is on the meta device and has no values"):
        tofu.from_torch(module, (torch.zeros(8, 16),))


def test_layers_that_repeat_are_folded_under_the_names_of_the_module() -> None:
    model = of_module("stack", stack("meta", depth=5), (torch.zeros(8, 16),))
    graph = model.training_graph()
    plan = tofu.partition(graph, 4)
    blocks = folded(layers(graph, plan))
    repeated = max(blocks, key=lambda block: block.times)
    assert repeated.times * len(repeated.layers) >= 8, "5 blocks of 2 weights; those at the ends may differ"
    assert [layer.weight.split(".", 2)[2] for layer in repeated.layers] in (
        ["up.weight", "down.weight"],
        ["down.weight", "up.weight"],
    )
    assert sum(block.times * len(block.layers) for block in blocks) == 11, "one tied weight, 5 blocks of 2"
