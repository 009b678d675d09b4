"""The weights of elements in ONNX's Resize along one dimension, for settings that an index cannot say.

A row for each element of the result holds the weights of the elements of the input. They are a function of
the distance from the place that the element lies at: linear, cubic, or that of the nearest. With antialiasing
and a scale below one, distances shrink by the scale, so more elements count.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ...errors import GraphError
from .folding import MOST_FOLDED
from .node import OnnxNode
from .operand import Array, UnsupportedNodeError

REACH = {"linear": 1, "cubic": 2}
"""How far elements count, in elements of the input."""


@dataclass(frozen=True, slots=True)
class ResizedAxis:
    """A dimension that a Resize changes."""

    before: int
    """Its extent in the input."""

    after: int
    """Its extent in the result."""

    scale: Fraction
    """By how much it grows."""

    roi: tuple[float, float]
    """The part of the input that `tf_crop_and_resize` reads, from 0 to 1."""


def mode_of(node: OnnxNode) -> str:
    """Return which elements count."""
    return node.text("mode", "nearest")


def transformation_of(node: OnnxNode) -> str:
    """Return the rule by which an element of the result lies in the input."""
    return node.text("coordinate_transformation_mode", "half_pixel" if node.opset >= 11 else "asymmetric")


def rounding_of(node: OnnxNode) -> str:
    """Return the rule by which the nearest element is found."""
    return node.text("nearest_mode", "round_prefer_floor" if node.opset >= 11 else "floor")


def weights_of(node: OnnxNode, axis: ResizedAxis) -> tuple[Array, Array]:
    """Return the matrix of weights, and what is added to each element of the result.

    Raises UnsupportedNodeError for unknown settings, and GraphError if the matrix would be too large.
    """
    count = axis.before * axis.after
    if count > MOST_FOLDED:
        raise GraphError(
            f"resizing {axis.before:,} elements to {axis.after:,} takes {count:,} weights; "
            f"{MOST_FOLDED:,} is the most"
        )
    places = _places(node, axis)
    weights = _nearest(node, axis, places) if mode_of(node) == "nearest" else _mixed(node, axis, places)
    added = np.zeros(axis.after)
    if transformation_of(node) == "tf_crop_and_resize":
        outside = (places < 0) | (places > axis.before - 1)
        weights[outside] = 0
        added[outside] = node.number("extrapolation_value", 0.0)
    return weights, added


def _places(node: OnnxNode, axis: ResizedAxis) -> Array:
    """Return where each element of the result lies in the input."""
    numbers, last, scale = np.arange(axis.after), axis.before - 1, float(axis.scale)
    middle: Array = (numbers + 0.5) / scale - 0.5
    length = axis.before * scale
    match transformation_of(node):
        case "half_pixel":
            return middle
        case "pytorch_half_pixel":
            return middle if axis.after > 1 else np.zeros(1)
        case "half_pixel_symmetric":
            return middle + axis.before / 2 * (1 - axis.after / length)
        case "asymmetric":
            return numbers / scale
        case "align_corners":
            return numbers * (last / (length - 1)) if axis.after > 1 else np.zeros(1)
        case "tf_crop_and_resize":
            start, end = axis.roi
            if axis.after == 1:
                return np.full(1, (start + end) * last / 2)
            return start * last + numbers * ((end - start) * last / (length - 1))
        case other:
            raise UnsupportedNodeError(f"Resize with coordinate_transformation_mode {other}")


def _nearest(node: OnnxNode, axis: ResizedAxis, places: Array) -> Array:
    """Return the weights of the nearest elements."""
    match rounding_of(node):
        case "round_prefer_floor":
            rounded = np.ceil(places - 0.5)
        case "round_prefer_ceil":
            rounded = np.floor(places + 0.5)
        case "floor":
            rounded = np.floor(places)
        case "ceil":
            rounded = np.ceil(places)
        case other:
            raise UnsupportedNodeError(f"Resize with nearest_mode {other}")
    found = np.zeros((axis.after, axis.before))
    found[np.arange(axis.after), np.clip(rounded, 0, axis.before - 1).astype(int)] = 1
    return found


def _mixed(node: OnnxNode, axis: ResizedAxis, places: Array) -> Array:
    """Return the weights of all elements within reach; those outside of the input count for its ends."""
    mode = mode_of(node)
    if mode not in REACH:
        raise UnsupportedNodeError(f"Resize with mode {mode}")
    shrinking = min(float(axis.scale), 1.0) if node.integer("antialias", 0) else 1.0
    reach = int(np.ceil(REACH[mode] / shrinking))
    numbers = np.floor(places).astype(int)[:, None] + np.arange(1 - reach, reach + 1)
    distances = abs(numbers - places[:, None]) * shrinking
    if mode == "linear":
        shares = np.maximum(1 - distances, 0)
    else:
        shares = _cubic(distances, node.number("cubic_coeff_a", -0.75))
    if node.integer("exclude_outside", 0):
        shares = np.where((numbers >= 0) & (numbers < axis.before), shares, 0)
    shares = shares / shares.sum(axis=1, keepdims=True)
    found = np.zeros((axis.after, axis.before))
    np.add.at(found, (np.arange(axis.after)[:, None], np.clip(numbers, 0, axis.before - 1)), shares)
    return found


def _cubic(distances: Array, steepness: float) -> Array:
    """Return the weights of cubic interpolation (Keys 1981)."""
    near = ((steepness + 2) * distances - (steepness + 3)) * distances**2 + 1
    far = ((steepness * distances - 5 * steepness) * distances + 8 * steepness) * distances - 4 * steepness
    return np.where(distances <= 1, near, np.where(distances < 2, far, 0))
