"""A model of the zoo: a symbol together with the shapes of its data and labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from ..analyzer.indices.region import Shape
from ..dataflow.graph import Graph
from ..dataflow.optimizer import Optimizer
from ..dataflow.symbol import Symbol
from ..dataflow.training import inference_graph, micro_shapes, training_graph
from ..operators.kernels.kernel import Array

BYTES_PER_WEIGHT = 4
WEIGHT_STATE_COPIES = 3
"""The weight, its gradient and its history (Tofu, Table 2)."""


@dataclass(frozen=True)
class Model:
    """A symbol with the shapes of all that is fed in every iteration."""

    name: str
    """The model's name."""

    symbol: Symbol
    """The model's outputs."""

    data: Mapping[str, Shape]
    """By name, the shapes of the data, the batch first."""

    labels: Mapping[str, Shape] = field(default_factory=dict)
    """By name, the shapes of the labels, the batch first."""

    optimizer: Optimizer | str = "sgd"
    """The optimizer that trains it if no other is named."""

    start: Mapping[str, Array] = field(default_factory=dict)
    """By name, start values of parameters and states; an initializer makes the others."""

    @property
    def shapes(self) -> dict[str, Shape]:
        """Data and label shapes together."""
        return {**self.data, **self.labels}

    @property
    def batch(self) -> int:
        return next(iter(self.data.values()))[0]

    @cached_property
    def parameters(self) -> dict[str, Shape]:
        """The shape of every parameter, by name."""
        arguments, _, _ = self.symbol.infer_shape(**self.shapes)
        named = zip(self.symbol.list_arguments(), arguments, strict=True)
        return {name: shape for name, shape in named if name not in self.shapes}

    @property
    def weight_count(self) -> int:
        """Trained numbers in all parameters."""
        fixed = {node.name for node in self.symbol.nodes if node.text.get("__lr_mult__") == "0"}
        return sum(prod(shape) for name, shape in self.parameters.items() if name not in fixed)

    @property
    def weight_state_bytes(self) -> int:
        """Weights, gradients and history in float32, the measure of Tofu's Table 2."""
        return WEIGHT_STATE_COPIES * BYTES_PER_WEIGHT * self.weight_count

    def training_graph(
        self,
        optimizer: Optimizer | str | None = None,
        *,
        dtype: str = "float32",
        accumulate: int = 1,
        unroll: bool = False,
        recompute: int = 1,
    ) -> Graph:
        """Return one training iteration: forward, backward and updates by `optimizer`, or the model's own.

        The iteration is over one of `accumulate` equal parts of the batch, see `micro_batches` of
        `training_graph`, or over all of them if `unroll`; `recompute` is what it is there. Raises DataError
        if the batch has no such parts.
        """
        shapes = micro_shapes(self.shapes, accumulate)
        return training_graph(
            self.symbol,
            shapes,
            self.optimizer if optimizer is None else optimizer,
            name=self.name,
            dtype=dtype,
            micro_batches=accumulate,
            unroll=unroll,
            recompute=recompute,
        )

    def inference_graph(self, *, dtype: str = "float32") -> Graph:
        """Return the forward pass as used after training."""
        return inference_graph(self.symbol, self.shapes, name=self.name, dtype=dtype)
