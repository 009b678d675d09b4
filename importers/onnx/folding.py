"""Nodes whose inputs are constants, computed by NumPy at import: shape arithmetic above all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from ...errors import GraphError
from .node import OnnxNode
from .operand import Array, OnnxOperand, UnsupportedNodeError, constant

MOST_FOLDED = 1 << 26
"""A constant that would have more elements is refused."""

FOLDED_AT_ONCE = 1 << 14
"""Computing this many elements takes as long as about one node."""

SCATTERED = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
"""By the reduction of a ScatterND, how what is written joins what is there."""

Fold = Callable[..., Any]
"""Computes a node's output, or the list of its outputs, from the node and the arrays of its inputs."""


def fold(node: OnnxNode) -> Sequence[OnnxOperand] | None:
    """Return the outputs of a node; None if an input is not a constant or the node is not folded.

    Raises GraphError if a constant would be too large.
    """
    function = FOLDS.get(node.kind)
    known = [operand.known for operand in node.given]
    if function is None or any(value is None for value in known):
        return None
    if node.kind in ELEMENTWISE:
        _check(prod(np.broadcast_shapes(*(operand.shape for operand in node.given))))
    with np.errstate(all="ignore"):
        found = function(node, *known)
    arrays = [np.asarray(each) for each in (found if isinstance(found, list) else [found])]
    return [constant(each, each.dtype) for each in arrays]


def _check(elements: int) -> None:
    if elements > MOST_FOLDED:
        raise GraphError(f"a constant would have {elements:,} elements; {MOST_FOLDED:,} is the most")


def split_extents(node: OnnxNode, extent: int) -> tuple[int, ...]:
    """Return the extents of the parts of a Split. Raises UnsupportedNodeError."""
    parts = node.integers("split", 1)
    if not parts:
        count = node.integer("num_outputs", node.outputs)
        width = -(-extent // count)
        parts = (*(width for _ in range(count - 1)), extent - width * (count - 1))
    if sum(parts) != extent or min(parts) < 0:
        raise UnsupportedNodeError(f"parts {parts} of an extent of {extent}")
    return parts


def _extents(values: Array) -> tuple[int, ...]:
    shape = tuple(int(extent) for extent in values.reshape(-1))
    if min(shape, default=0) < 0:
        raise GraphError(f"{shape} is not a shape")
    _check(prod(shape))
    return shape


def _reshape(node: OnnxNode, data: Array, shape: Array) -> Array:
    target = [int(extent) for extent in shape]
    kept = node.integer("allowzero", 0)
    return data.reshape([data.shape[d] if e == 0 and not kept else e for d, e in enumerate(target)])


def _unsqueeze(node: OnnxNode, data: Array, *_: Array) -> Array:
    return np.expand_dims(data, node.integers("axes", 1))


def _squeeze(node: OnnxNode, data: Array, *_: Array) -> Array:
    return np.squeeze(data, node.integers("axes", 1) or None)


def _slice(node: OnnxNode, data: Array, *_: Array) -> Array:
    starts, ends = node.integers("starts", 1), node.integers("ends", 2)
    axes = node.integers("axes", 3, range(len(starts)))
    steps = node.integers("steps", 4, [1] * len(starts))
    cuts = [slice(None)] * data.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        whole = end if step > 0 or end >= -data.shape[axis] else None
        cuts[axis] = slice(start, whole, step)
    return data[tuple(cuts)]


def _range(node: OnnxNode, start: Array, stop: Array, step: Array) -> Array:
    first, last, by = (each.reshape(()).item() for each in (start, stop, step))
    if by == 0 or not np.isfinite([first, last, by]).all():
        raise GraphError(f"a range from {first} to {last} by {by} does not end")
    _check(int(max(np.ceil((last - first) / by), 0)))
    return np.asarray(np.arange(first, last, by)).astype(start.dtype)


def _filled(node: OnnxNode, shape: Array) -> Array:
    value = np.asarray(node.attributes.get("value", np.zeros(1, np.float32)))
    return np.full(_extents(shape), value.reshape(()), value.dtype)


def _split(node: OnnxNode, data: Array, *_: Array) -> list[Array]:
    axis = node.axis(0)
    ends = np.cumsum(split_extents(node, data.shape[axis]))
    return np.split(data, ends[:-1], axis)


def _cumulative(node: OnnxNode, data: Array, axis: Array) -> Array:
    number, backwards = int(axis.reshape(())), bool(node.integer("reverse", 0))
    given = np.flip(data, number) if backwards else data
    total = np.cumsum(given, number) - (given if node.integer("exclusive", 0) else 0)
    return np.asarray(np.flip(total, number) if backwards else total, data.dtype)


def _clip(node: OnnxNode, data: Array, *_: Array) -> Array:
    least, most = (
        node.value(position).reshape(()) if node.has(position) else node.attributes.get(name)
        for position, name in ((1, "min"), (2, "max"))
    )
    return np.asarray(np.clip(data, least, most), data.dtype)


def _one_hot(node: OnnxNode, places: Array, depth: Array, values: Array) -> Array:
    count = int(depth.reshape(()))
    _check(places.size * count)
    hot = np.expand_dims(np.where(places < 0, places + count, places), axis := node.integer("axis", -1))
    numbers = np.arange(count).reshape([-1 if d == axis % hot.ndim else 1 for d in range(hot.ndim)])
    return np.asarray(np.where(hot == numbers, values[1], values[0]))


def _gather_vectors(node: OnnxNode, data: Array, places: Array) -> Array:
    first = node.integer("batch_dims", 0)
    _check(prod(places.shape[:-1]) * prod(data.shape[first + places.shape[-1] :]))
    batches = zip(
        data.reshape(-1, *data.shape[first:]), places.reshape(-1, *places.shape[first:]), strict=True
    )
    found = [each[tuple(np.moveaxis(at.astype(np.int64), -1, 0))] for each, at in batches]
    return np.stack(found).reshape(*data.shape[:first], *found[0].shape)


def _nonzero(node: OnnxNode, data: Array) -> Array:
    return np.stack(np.nonzero(np.atleast_1d(data))).astype(np.int64)


def _tile(node: OnnxNode, data: Array, times: Array) -> Array:
    _check(data.size * prod(_extents(times)))
    return np.tile(data, times)


def _concatenated(node: OnnxNode, *arrays: Array) -> Array:
    _check(sum(each.size for each in arrays))
    return np.concatenate(arrays, node.integer("axis", 0))


def _expand(node: OnnxNode, data: Array, shape: Array) -> Array:
    whole = np.broadcast_shapes(data.shape, _extents(shape))
    _check(prod(whole))
    return np.broadcast_to(data, whole)


def _gather(node: OnnxNode, data: Array, indices: Array) -> Array:
    axis = node.axis(0)
    _check(data.size // max(data.shape[axis], 1) * indices.size)
    return np.take(data, indices.astype(np.int64), axis)


def _scatter(node: OnnxNode, data: Array, indices: Array, updates: Array) -> Array:
    found, places = data.copy(), tuple(np.moveaxis(indices.astype(np.int64), -1, 0))
    reduction = node.text("reduction", "none")
    if reduction == "none":
        found[places] = updates
    elif reduction in SCATTERED:
        SCATTERED[reduction].at(found, places, updates)
    else:
        raise UnsupportedNodeError(f"ScatterND with reduction {reduction}")
    return found


def _cast(node: OnnxNode, data: Array) -> Array:
    from .tensors import element_type

    wanted = element_type(node.integer("to", 0))
    if wanted is None:
        raise GraphError(f"Cast to the type {node.integer('to', 0)}, which is not one of numbers")
    return data.astype(wanted)


def _divide(node: OnnxNode, lhs: Array, rhs: Array) -> Array:
    if lhs.dtype.kind not in "iu":
        return lhs / rhs
    if not rhs.all():
        raise GraphError("a whole number is divided by zero")
    return (np.sign(lhs) * np.sign(rhs) * (abs(lhs) // abs(rhs))).astype(lhs.dtype)


def _power(node: OnnxNode, lhs: Array, rhs: Array) -> Array:
    return np.asarray(np.power(lhs.astype(float) if rhs.dtype.kind == "f" else lhs, rhs), lhs.dtype)


def _reduced(function: Callable[..., Any]) -> Fold:
    """Return a reduction along the node's axes."""

    def run(node: OnnxNode, data: Array, *_: Array) -> Array:
        axes = node.integers("axes", 1)
        if not axes and node.integer("noop_with_empty_axes", 0):
            return data
        found = function(data, axis=axes or None, keepdims=bool(node.integer("keepdims", 1)))
        return np.asarray(found, data.dtype)

    return run


def _greatest(data: Array, **along: Any) -> Any:
    """Return the maximum along axes; that of nothing is the lowest number of the type."""
    return np.max(data, initial=_limits(data.dtype)[0], **along)


def _least(data: Array, **along: Any) -> Any:
    """Return the minimum along axes; that of nothing is the highest number of the type."""
    return np.min(data, initial=_limits(data.dtype)[1], **along)


def _limits(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    match dtype.kind:
        case "f":
            return -np.inf, np.inf
        case "b":
            return False, True
        case _:
            return np.iinfo(dtype).min, np.iinfo(dtype).max


def _elements(function: Callable[..., Any]) -> Fold:
    """Return a function of elements that keeps the type of the first."""
    return lambda node, *arrays: np.asarray(reduce(function, arrays), arrays[0].dtype)


def _compared(function: Callable[..., Any]) -> Fold:
    return lambda node, *arrays: function(*arrays)


def _one(function: Callable[..., Any]) -> Fold:
    """Return a function of one number in the type of its input."""
    return lambda node, data: np.asarray(function(data), data.dtype)


ELEMENTWISE: Mapping[str, Fold] = {
    "Add": _elements(np.add),
    "Sub": _elements(np.subtract),
    "Mul": _elements(np.multiply),
    "Max": _elements(np.maximum),
    "Min": _elements(np.minimum),
    "Sum": _elements(np.add),
    "Div": _divide,
    "Mod": lambda node, a, b: np.fmod(a, b) if node.integer("fmod", 0) else np.mod(a, b),
    "Pow": _power,
    "Equal": _compared(np.equal),
    "Greater": _compared(np.greater),
    "GreaterOrEqual": _compared(np.greater_equal),
    "Less": _compared(np.less),
    "LessOrEqual": _compared(np.less_equal),
    "And": _compared(np.logical_and),
    "Or": _compared(np.logical_or),
    "Xor": _compared(np.logical_xor),
    "Not": _compared(np.logical_not),
    "Where": _compared(np.where),
    "Neg": _one(np.negative),
    "Abs": _one(np.abs),
    "Sqrt": _one(np.sqrt),
    "Exp": _one(np.exp),
    "Log": _one(np.log),
    "Floor": _one(np.floor),
    "Ceil": _one(np.ceil),
    "Round": _one(np.round),
    "Reciprocal": _one(np.reciprocal),
    "Relu": _one(lambda data: np.maximum(data, 0)),
    "Sign": _one(np.sign),
    "Sin": _one(np.sin),
    "Cos": _one(np.cos),
}
"""Nodes whose outputs have the shape of their inputs, stretched to each other."""

FOLDS: Mapping[str, Fold] = {
    **ELEMENTWISE,
    "Identity": lambda node, data: data,
    "Cast": _cast,
    "Concat": _concatenated,
    "Transpose": lambda node, data: np.transpose(data, node.integers("perm", None) or None),
    "Reshape": _reshape,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Slice": _slice,
    "Split": _split,
    "NonZero": _nonzero,
    "CumSum": _cumulative,
    "Gather": _gather,
    "GatherElements": lambda node, data, places: np.take_along_axis(data, places, node.axis(0)),
    "GatherND": _gather_vectors,
    "OneHot": _one_hot,
    "Clip": _clip,
    "Flatten": lambda node, data: data.reshape(prod(data.shape[: node.integer("axis", 1)]), -1),
    "Range": _range,
    "ConstantOfShape": _filled,
    "Expand": _expand,
    "Tile": _tile,
    "ScatterND": _scatter,
    "Trilu": lambda node, data, *k: (np.triu if node.integer("upper", 1) else np.tril)(
        data, int(k[0].reshape(())) if k else 0
    ),
    "ReduceSum": _reduced(np.sum),
    "ReduceMean": _reduced(np.mean),
    "ReduceProd": _reduced(np.prod),
    "ReduceMax": _reduced(_greatest),
    "ReduceMin": _reduced(_least),
}
"""By a node's kind, how NumPy computes it."""
