"""ATen's random numbers. They depend on positions and the seed of the step, and are not PyTorch's."""

from __future__ import annotations

from collections.abc import Mapping

from .call import AtenCall, TensorValue, elementwise
from .converter import Converter


def _drawn(operator: str) -> Converter:
    def convert(call: AtenCall) -> TensorValue:
        shape = call.result.shape
        return TensorValue(call.apply(operator, shape=shape or (1,)), shape, "float")

    return convert


def bernoulli(call: AtenCall) -> TensorValue:
    """Return ones with a probability, or with that of each element of a tensor."""
    shape = call.result.shape
    drawn = TensorValue(call.apply("random_uniform", shape=shape or (1,), step="drawn"), shape, "float")
    chance = call.get("p") if call.has("p") else call.operand("self")
    return elementwise(call, "where({0} < {1}, 1, 0)", drawn, chance)


def uniform(call: AtenCall) -> TensorValue:
    """Return numbers of an interval."""
    shape, low, high = call.result.shape, call.get("from", 0), call.get("to", 1)
    drawn = TensorValue(call.apply("random_uniform", shape=shape or (1,), step="drawn"), shape, "float")
    return elementwise(call, "{1} + {0} * {2}", drawn, low, high - low)


CONVERTERS: Mapping[str, Converter] = {
    **dict.fromkeys(("rand", "rand_like"), _drawn("random_uniform")),
    **dict.fromkeys(("randn", "randn_like"), _drawn("random_normal")),
    "bernoulli": bernoulli,
    "uniform": uniform,
}
