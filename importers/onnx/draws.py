"""ONNX's random numbers. They depend on positions and the seed of the step, and are not those of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...analyzer.indices.region import Shape
from .compose import apply, elementwise, shaped
from .node import Adapter, OnnxNode
from .operand import OnnxOperand, UnsupportedNodeError


def _shape(node: OnnxNode) -> Shape:
    """Return the shape of the input, or that of the attribute."""
    shape = node[0].shape if node.has(0) else node.integers("shape", None)
    if min(shape, default=1) < 1:
        raise UnsupportedNodeError("tensor without elements")
    return shape


def uniform(node: OnnxNode) -> Sequence[OnnxOperand]:
    shape = _shape(node)
    low, high = node.number("low", 0.0), node.number("high", 1.0)
    return [shaped(apply("random_uniform", shape=shape or (1,), low=low, high=high), shape)]


def normal(node: OnnxNode) -> Sequence[OnnxOperand]:
    shape = _shape(node)
    mean, deviation = node.number("mean", 0.0), node.number("scale", 1.0)
    return [shaped(apply("random_normal", shape=shape or (1,), loc=mean, scale=deviation), shape)]


def bernoulli(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Return ones with the probabilities of the input."""
    shape = node[0].shape
    drawn = shaped(apply("random_uniform", shape=shape or (1,)), shape)
    return [elementwise("bernoulli", "where({0} < {1}, 1, 0)", drawn, node[0])]


ADAPTERS: Mapping[str, Adapter] = {
    "RandomUniform": uniform,
    "RandomUniformLike": uniform,
    "RandomNormal": normal,
    "RandomNormalLike": normal,
    "Bernoulli": bernoulli,
}
