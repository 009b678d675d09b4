"""ONNX's Resize, and Upsample of older versions: an index with a floor quotient for each dimension, which
regions follow from.

Other settings, such as cubic interpolation, are products with a matrix of weights (`resizing_weights`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from .compose import described
from .node import Adapter, OnnxNode
from .operand import OnnxOperand, UnsupportedNodeError, constant
from .resizing_weights import ResizedAxis, mode_of, rounding_of, transformation_of, weights_of

WHOLE = (0.0, 1.0)
"""All of a dimension."""

MOST_DENOMINATOR = 1 << 12
"""A scale that an index says is a fraction with at most this denominator."""


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
    data = node[0]
    axes = [axis % data.ndim for axis in node.integers("axes", None, range(data.ndim))]
    for axis, (extent, scale), roi in zip(axes, _targets(node, axes), _rois(node, axes), strict=True):
        if extent < 1:
            raise UnsupportedNodeError("tensor without elements")
        if extent != data.shape[axis] or scale != 1 or roi != WHOLE:
            data = _along(node, data, axis, ResizedAxis(data.shape[axis], extent, scale, roi))
    return [data]


def _rois(node: OnnxNode, axes: Sequence[int]) -> list[tuple[float, float]]:
    """Return the part of each dimension that is read, from 0 to 1."""
    if transformation_of(node) != "tf_crop_and_resize":
        return [WHOLE] * len(axes)
    starts, ends = node.value(1).reshape(2, -1).tolist()
    return list(zip(starts, ends, strict=True))


def _targets(node: OnnxNode, axes: Sequence[int]) -> list[tuple[int, Fraction]]:
    """Return the extent that each dimension gets, and the scale."""
    shape = [node[0].shape[axis] for axis in axes]
    scales, sizes = (1, None) if node.opset < 11 else (2, 3)
    if sizes is None or not node.has(sizes) or not node[sizes].size:
        given = node.attributes["scales"] if "scales" in node.attributes else node.value(scales).tolist()
        factors = [_simple(scale) for scale in given]
        return [(int(extent * scale), scale) for extent, scale in zip(shape, factors, strict=True)]
    wanted = node.integers("sizes", sizes)
    factors = [Fraction(size, extent) for size, extent in zip(wanted, shape, strict=True)]
    match node.text("keep_aspect_ratio_policy", "stretch"):
        case "stretch":
            return list(zip(wanted, factors, strict=True))
        case "not_larger":
            scale = min(factors)
        case "not_smaller":
            scale = max(factors)
        case other:
            raise UnsupportedNodeError(f"Resize with keep_aspect_ratio_policy {other}")
    return [(int(extent * scale + Fraction(1, 2)), scale) for extent in shape]


def _simple(given: float) -> Fraction:
    """Return a scale as the simple fraction that was rounded to it, if there is one."""
    if not 0 < given < float("inf"):
        raise UnsupportedNodeError(f"Resize by {given}")
    simple = Fraction(given).limit_denominator(MOST_DENOMINATOR)
    return simple if abs(float(simple) - given) <= 1e-6 * given else Fraction(given)


def _along(node: OnnxNode, data: OnnxOperand, axis: int, resized: ResizedAxis) -> OnnxOperand:
    """Resize one dimension: by an index that says where an element lies, if there is one, or by weights."""
    mode, line = mode_of(node), _line(node, resized)
    if line is None or mode not in ("nearest", "linear") or node.integer("antialias", 0):
        return _weighted(node, data, axis, resized)
    if mode == "nearest":
        body = _read(data, axis, _nearest(node, line))
    else:
        place = f"(({line.text()}) // {line.divisor})"
        share = f"((({line.text()}) % {line.divisor}) / {line.divisor})"
        low, high = _read(data, axis, place), _read(data, axis, f"{place} + 1")
        body = f"{low} * (1 - {share}) + {high} * {share}"
    variables = [f"i={resized.after}" if d == axis else f"n{d}" for d in range(data.ndim)]
    return described(f"def resize(a):\n    return lambda {', '.join(variables)}: {body}", data)


def _weighted(node: OnnxNode, data: OnnxOperand, axis: int, resized: ResizedAxis) -> OnnxOperand:
    """Resize one dimension by a matrix of weights."""
    weights, added = weights_of(node, resized)
    names = [f"n{d}" for d in range(data.ndim)]
    result = ["i" if d == axis else name for d, name in enumerate(names)]
    operands = [data, constant(weights)]
    body = f"Sum(lambda {names[axis]}: a[{', '.join(names)}] * weights[i, {names[axis]}])"
    if added.any():
        operands.append(constant(added))
        body += " + added[i]"
    inputs = ", ".join(("a", "weights", "added")[: len(operands)])
    return described(f"def resize({inputs}):\n    return lambda {', '.join(result)}: {body}", *operands)


def _read(data: OnnxOperand, axis: int, place: str) -> str:
    """Read an element at a place that is moved into the tensor."""
    inside = f"minimum(maximum({place}, 0), {data.shape[axis] - 1})"
    return f"a[{', '.join(inside if d == axis else f'n{d}' for d in range(data.ndim))}]"


def _line(node: OnnxNode, axis: ResizedAxis) -> SampleLine | None:
    """Return where an output index lies in the input; None if no simple fraction says it."""
    up, down = axis.scale.numerator, axis.scale.denominator
    if down > MOST_DENOMINATOR:
        return None
    match transformation_of(node):
        case "pytorch_half_pixel" if axis.after == 1:
            return SampleLine(0, 0, 1)
        case "half_pixel" | "pytorch_half_pixel":
            return SampleLine(2 * down, down - up, 2 * up)
        case "asymmetric":
            return SampleLine(down, 0, up)
        case "align_corners":
            steps = axis.before * axis.scale - 1
            ratio = (axis.before - 1) / steps if axis.after > 1 else Fraction(0)
            return SampleLine(ratio.numerator, 0, ratio.denominator)
        case _:
            return None


def _nearest(node: OnnxNode, line: SampleLine) -> str:
    """Round a place to a whole number."""
    divisor = line.divisor
    match rounding_of(node):
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


ADAPTERS: Mapping[str, Adapter] = dict.fromkeys(("Resize", "Upsample"), resized)
