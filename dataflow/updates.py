"""Updates: an operation for each parameter that overwrites it, with the optimizer's state and scalars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from ..errors import GraphError
from ..operators.library import registry
from ..operators.operator import Operator
from .builder import GraphBuilder
from .graph import Phase, Role
from .node import Node
from .optimizer import Optimizer

LEARNING_RATE = "learning_rate"
MICRO_BATCH = "micro_batch"
UPDATE_COUNT = "update_count"
NORM_FACTOR = "norm_factor"

TERMS = 64
"""The most sums of squares that one operation adds."""


class Updates:
    """Adds updates to a graph in the making. `batch` counts the samples of one update.

    Gradients are `loss_scale` times as large as they should be. If it `accumulates`, a parameter learns
    from the sum of its gradients over several iterations.
    """

    def __init__(
        self, builder: GraphBuilder, optimizer: Optimizer, batch: int, loss_scale: float, accumulates: bool
    ) -> None:
        self.builder = builder
        self.optimizer = optimizer
        self.operator: Operator = registry.get(optimizer.operator)
        rescale = 1.0 / batch if optimizer.rescale is None else optimizer.rescale
        # as a float: 1 and 1.0 are one key where descriptions are kept, but two texts
        self.rescale = float(rescale) / loss_scale
        self.accumulates = accumulates
        self.scalars: dict[str, int] = {}
        self.rates: dict[float, int] = {}
        self.count: int | None = None

    def add(self, parameters: Mapping[Node, tuple[int, int]]) -> None:
        """Update each parameter's tensor by its gradient."""
        totals: Iterator[tuple[Node, int]] = (
            (node, self.accumulate(node, gradient) if self.accumulates else gradient)
            for node, (_, gradient) in parameters.items()
        )
        if self.optimizer.clip_norm is not None and parameters:
            totals = iter(self.shortened(dict(totals), self.optimizer.clip_norm).items())
        for node, gradient in totals:
            self.update(node, parameters[node][0], gradient)
        if self.count is not None:
            self.increment(self.count)

    def shortened(self, gradients: Mapping[Node, int], most: float) -> dict[Node, int]:
        """Return gradients times one factor, so that their norm together is at most `most`."""
        squares = [
            self.computed(f"squares(grad({node.name}))", "sum_of_squares", {"data": gradient})
            for node, gradient in gradients.items()
        ]
        while len(squares) > 1:
            squares = [self.added(squares[at : at + TERMS]) for at in range(0, len(squares), TERMS)]
        (total,) = squares
        settings = {"max_norm": most, "rescale_grad": self.rescale}
        factor = self.computed(NORM_FACTOR, "norm_factor", {"squares": total}, settings)
        return {
            node: self.computed(
                f"shortened(grad({node.name}))",
                "shortened",
                {"grad": gradient, "factor": factor},
                role=Role.GRADIENT,
            )
            for node, gradient in gradients.items()
        }

    def added(self, terms: Sequence[int]) -> int:
        """Return the sum of several tensors."""
        if len(terms) == 1:
            return terms[0]
        given = {f"arg{number}": term for number, term in enumerate(terms)}
        return self.computed("squares", "add_n", given, {"num_args": len(terms)})

    def computed(
        self,
        name: str,
        operator: str,
        given: Mapping[str, int],
        attributes: Mapping[str, object] = MappingProxyType({}),
        role: Role = Role.ACTIVATION,
    ) -> int:
        """Return what an operator of one stage makes of tensors, as a part of the update."""
        shapes = {argument: self.builder.tensors[index].shape for argument, index in given.items()}
        (stage,) = registry.get(operator).stages(attributes, shapes)
        name = self.builder.unique_tensor_name(name)
        inputs = [given[argument] for argument in stage.inputs]
        return self.builder.apply(name, stage, inputs, [name], phase=Phase.UPDATE, role=role)[0]

    def increment(self, count: int) -> None:
        """Count one more update."""
        (stage,) = registry.get("_plus_scalar").stages({"scalar": 1.0}, {"data": (1,)})
        name = self.builder.tensors[count].name
        self.builder.apply(
            f"update({name})", stage, [count], [f"updated({name})"], phase=Phase.UPDATE, aliases=[count]
        )

    def counted(self) -> int:
        """Return the number of updates so far: a state that all parameters share."""
        if self.count is None:
            name = self.builder.unique_tensor_name(UPDATE_COUNT)
            self.count = self.builder.tensor(name, (1,), Role.STATE)
        return self.count

    def accumulate(self, node: Node, gradient: int) -> int:
        """Return the sum of a parameter's gradients over the micro-batches so far."""
        builder = self.builder
        shape = builder.tensors[gradient].shape
        total = builder.tensor(f"total(grad({node.name}))", shape, Role.ACCUMULATOR)
        given = {"total": total, "grad": gradient, "micro_batch": self.scalar(MICRO_BATCH)}
        shapes = {argument: builder.tensors[index].shape for argument, index in given.items()}
        (stage,) = registry.get("accumulate_update").stages({}, shapes)
        (summed,) = builder.apply(
            f"accumulate(grad({node.name}))",
            stage,
            [given[argument] for argument in stage.inputs],
            [f"updated({builder.tensors[total].name})"],
            phase=Phase.UPDATE,
            aliases=[total],
        )
        return summed

    def update(self, node: Node, weight: int, gradient: int) -> None:
        builder = self.builder
        shape = builder.tensors[weight].shape
        attributes = self.operator.attributes(
            {
                **self.optimizer.attributes,
                "wd": self.optimizer.weight_decay * self.decay_multiplier(node),
                "rescale_grad": self.rescale,
            }
        )
        given = {"weight": weight, "grad": gradient}
        for argument in self.operator.arguments(attributes):
            if argument in given:
                continue
            if argument in self.operator.overwrites:
                given[argument] = builder.tensor(f"{argument}({node.name})", shape, Role.STATE)
            elif argument == "count":
                given[argument] = self.counted()
            else:
                rate = argument == "lr"
                given[argument] = self.rate(self.rate_multiplier(node)) if rate else self.scalar(argument)
        shapes = {argument: builder.tensors[index].shape for argument, index in given.items()}
        (stage,) = self.operator.stages(attributes, shapes)
        targets = [given[argument] for argument in self.operator.overwrites]
        builder.apply(
            f"update({node.name})",
            stage,
            [given[argument] for argument in stage.inputs],
            [f"updated({builder.tensors[target].name})" for target in targets],
            phase=Phase.UPDATE,
            aliases=targets,
        )

    def rate_multiplier(self, node: Node) -> float:
        own = self.optimizer.rate_multipliers.get(node.name)
        return _multiplier(node, "__lr_mult__", 1.0) if own is None else own

    def decay_multiplier(self, node: Node) -> float:
        own = self.optimizer.decay_multipliers.get(node.name)
        return _multiplier(node, "__wd_mult__", _decays(node.name)) if own is None else own

    def rate(self, multiplier: float) -> int:
        """Return the learning rate for parameters of one multiplier."""
        base = self.scalar(LEARNING_RATE)
        if multiplier == 1:
            return base
        if multiplier not in self.rates:
            name = f"{LEARNING_RATE} * {multiplier!r}"
            scalar = {"scalar": multiplier}
            self.rates[multiplier] = self.computed(name, "_mul_scalar", {"data": base}, scalar)
        return self.rates[multiplier]

    def scalar(self, name: str) -> int:
        if name not in self.scalars:
            self.scalars[name] = self.builder.tensor(self.builder.unique_tensor_name(name), (1,), Role.SCALAR)
        return self.scalars[name]


def _multiplier(node: Node, key: str, default: float) -> float:
    text = node.text.get(key)
    if text is None:
        return default
    try:
        return float(text)
    except ValueError:
        raise GraphError(f"{key} of {node.name!r} is {text!r}, expected a number") from None


def _decays(name: str) -> float:
    """MXNet's default: weights and scales decay, biases and offsets do not."""
    return 1.0 if name.endswith(("_weight", "_gamma")) else 0.0
