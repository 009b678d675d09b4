"""ONNX's Resize: an index with a floor quotient for each dimension, which regions follow from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from .compose import described
from .node import Adapter, OnnxNode
from .operand import OnnxOperand, UnsupportedNodeError

MOST_DENOMINATOR = 1 << 12
"""A scale is a fraction with at most this denominator."""


class SampleLine(NamedTuple):
    """The place in the input that an output index `i` reads: `(slope * i + offset) / divisor`."""

    slope: int
    """The factor of the index."""

    offset: int
    """The numerator at index 0."""

    divisor: int
    """The denominator."""

    def text(self, offset: int = 0, factor: int = 1) -> str:
        """Write the numerator times a factor, plus an offset."""
        return f"{self.slope * factor} * i + {self.offset * factor + offset}"


def resized(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Resize every dimension whose extent changes, one after the other."""
    for name in ("antialias", "exclude_outside"):
        if node.integer(name, 0):
            raise UnsupportedNodeError(f"Resize with {name}")
    node.only(keep_aspect_ratio_policy=b"stretch")
    mode = node.text("mode", "nearest")
    if mode not in ("nearest", "linear"):
        raise UnsupportedNodeError(f"Resize with mode {mode}")
    data = node[0]
    axes = [axis % data.ndim for axis in node.integers("axes", None, range(data.ndim))]
    for axis, (extent, scale) in zip(axes, _targets(node, axes), strict=True):
        if extent != data.shape[axis] or scale != 1:
            data = _along(node, data, axis, extent, scale, mode)
    return [data]


def _targets(node: OnnxNode, axes: Sequence[int]) -> list[tuple[int, Fraction]]:
    """Return the extent that each dimension gets, and the scale."""
    shape = [node[0].shape[axis] for axis in axes]
    scales, sizes = (1, None) if node.opset < 11 else (2, 3)
    if sizes is not None and node.has(sizes) and node[sizes].size:
        wanted = node.integers("sizes", sizes)
        return [(size, Fraction(size, extent)) for size, extent in zip(wanted, shape, strict=True)]
    found = []
    for extent, given in zip(shape, node.value(scales).tolist(), strict=True):
        scale = Fraction(given).limit_denominator(MOST_DENOMINATOR)
        if abs(float(scale) - given) > 1e-6 * given or scale <= 0:
            raise UnsupportedNodeError(f"Resize by {given}, which is not a simple fraction")
        found.append((int(extent * scale), scale))
    return found


def _along(
    node: OnnxNode, data: OnnxOperand, axis: int, extent: int, scale: Fraction, mode: str
) -> OnnxOperand:
    """Resize one dimension."""
    if extent < 1:
        raise UnsupportedNodeError("tensor without elements")
    line = _line(node, data.shape[axis], extent, scale)
    if mode == "nearest":
        body = _read(data, axis, _nearest(node, line))
    else:
        place = f"(({line.text()}) // {line.divisor})"
        share = f"((({line.text()}) % {line.divisor}) / {line.divisor})"
        low, high = _read(data, axis, place), _read(data, axis, f"{place} + 1")
        body = f"{low} * (1 - {share}) + {high} * {share}"
    variables = [f"i={extent}" if d == axis else f"n{d}" for d in range(data.ndim)]
    return described(f"def resize(a):\n    return lambda {', '.join(variables)}: {body}", data)


def _read(data: OnnxOperand, axis: int, place: str) -> str:
    """Read an element at a place that is moved into the tensor."""
    inside = f"minimum(maximum({place}, 0), {data.shape[axis] - 1})"
    return f"a[{', '.join(inside if d == axis else f'n{d}' for d in range(data.ndim))}]"


def _line(node: OnnxNode, before: int, after: int, scale: Fraction) -> SampleLine:
    """Return where an output index lies in the input."""
    up, down = scale.numerator, scale.denominator
    default = "half_pixel" if node.opset >= 11 else "asymmetric"
    match node.text("coordinate_transformation_mode", default):
        case "pytorch_half_pixel" if after == 1:
            return SampleLine(0, 0, 1)
        case "half_pixel" | "pytorch_half_pixel":
            return SampleLine(2 * down, down - up, 2 * up)
        case "asymmetric":
            return SampleLine(down, 0, up)
        case "align_corners":
            steps = before * scale - 1
            ratio = (before - 1) / steps if after > 1 else Fraction(0)
            return SampleLine(ratio.numerator, 0, ratio.denominator)
        case other:
            raise UnsupportedNodeError(f"Resize with coordinate_transformation_mode {other}")


def _nearest(node: OnnxNode, line: SampleLine) -> str:
    """Round a place to a whole number."""
    divisor = line.divisor
    default = "round_prefer_floor" if node.opset >= 11 else "floor"
    match node.text("nearest_mode", default):
        case "round_prefer_floor":
            return f"({line.text(divisor - 1, 2)}) // {2 * divisor}"
        case "round_prefer_ceil":
            return f"({line.text(divisor, 2)}) // {2 * divisor}"
        case "floor":
            return f"({line.text()}) // {divisor}"
        case "ceil":
            return f"({line.text(divisor - 1)}) // {divisor}"
        case other:
            raise UnsupportedNodeError(f"Resize with nearest_mode {other}")


ADAPTERS: Mapping[str, Adapter] = {"Resize": resized}
