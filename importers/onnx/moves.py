"""ONNX nodes that move, repeat, pick or make elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from .compose import apply, broadcast, described, empty, joined, outputs, reshape, stretched
from .folding import split_extents
from .node import Adapter, OnnxNode
from .operand import OnnxOperand, UnsupportedNodeError, constant
from .tensors import element_type


def concat(node: OnnxNode) -> Sequence[OnnxOperand]:
    return [joined(node.given, node.axis(0))]


def split(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Equal parts by SliceChannel, others one slice each."""
    axis = node.axis(0)
    extent = node[0].shape[axis]
    parts = split_extents(node, extent)
    if len(parts) == 1:
        return [node[0]]
    if len(set(parts)) == 1 and parts[0]:
        return outputs("SliceChannel", node[0], num_outputs=len(parts), axis=axis)
    ends = np.cumsum(parts).tolist()
    return [
        apply("slice_axis", node[0], axis=axis, begin=end - part, end=end) if part else empty(node[0], axis)
        for part, end in zip(parts, ends, strict=True)
    ]


def slices(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Ends far beyond the tensor stand for open ones."""
    data = node[0]
    starts, ends = node.integers("starts", 1), node.integers("ends", 2)
    axes = node.integers("axes", 3, range(len(starts)))
    steps = node.integers("steps", 4, [1] * len(starts))
    cuts: list[tuple[int | None, int | None, int]] = [(None, None, 1)] * data.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        chosen = range(*slice(start, end, step).indices(data.shape[axis]))
        if not chosen:
            return [empty(data, axis)]
        last = chosen[-1] + (1 if step > 0 else -1)
        cuts[axis] = (chosen[0], None if last < 0 else last, step)
    begin, stop, stride = zip(*cuts, strict=True)
    return [apply("slice", data, begin=begin, end=stop, step=stride)]


def transpose(node: OnnxNode) -> Sequence[OnnxOperand]:
    return [transposed(node[0], node.integers("perm", None))]


def transposed(data: OnnxOperand, axes: Sequence[int]) -> OnnxOperand:
    """Return the dimensions in another order."""
    return data if data.ndim < 2 else apply("transpose", data, axes=tuple(axes))


def reshaped(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Return another shape, in which 0 keeps a dimension."""
    shape = list(node.integers("shape", 1))
    if node.integer("allowzero", 0) and 0 in shape:
        raise UnsupportedNodeError("tensor without elements")
    for axis, extent in enumerate(shape):
        if extent == 0:
            if axis >= node[0].ndim:
                raise UnsupportedNodeError(f"0 in place {axis} of the shape for {node[0].shape}")
            shape[axis] = node[0].shape[axis]
    return [reshape(node[0], shape)]


def flattened(node: OnnxNode) -> Sequence[OnnxOperand]:
    data, axis = node[0], node.integer("axis", 1)
    axis = axis + data.ndim if axis < 0 else axis
    return [reshape(data, (prod(data.shape[:axis]), prod(data.shape[axis:])))]


def squeezed(node: OnnxNode) -> Sequence[OnnxOperand]:
    data, axes = node[0], node.integers("axes", 1)
    dropped = {axis % data.ndim for axis in axes} or {d for d, e in enumerate(data.shape) if e == 1}
    return [reshape(data, [extent for d, extent in enumerate(data.shape) if d not in dropped])]


def unsqueezed(node: OnnxNode) -> Sequence[OnnxOperand]:
    data, axes = node[0], node.integers("axes", 1)
    rank = data.ndim + len(axes)
    ones, extents = {axis % rank for axis in axes}, iter(data.shape)
    if len(ones) != len(axes) or max(axes, default=0) >= rank or min(axes, default=0) < -rank:
        raise UnsupportedNodeError(f"Unsqueeze of {data.shape} with axes {axes}")
    return [reshape(data, [1 if axis in ones else next(extents) for axis in range(rank)])]


def padded(node: OnnxNode) -> Sequence[OnnxOperand]:
    data, mode = node[0], node.text("mode", "constant")
    width = node.integers("pads", 1)
    axes = node.integers("axes", 3, range(data.ndim))
    pairs = [(0, 0)] * data.ndim
    for place, axis in enumerate(axes):
        pairs[axis] = (width[place], width[place + len(axes)])
    value = float(node.value(2).reshape(())) if node.has(2) else node.number("value", 0.0)
    for axis, pair in enumerate(pairs):
        if min(pair) < 0:
            data = cut(data, axis, [max(-count, 0) for count in pair])
            pairs[axis] = (max(pair[0], 0), max(pair[1], 0))
    flat = [count for pair in pairs for count in pair]
    if not any(flat):
        return [data]
    if mode == "wrap":
        return [wrapped(data, pairs)]
    if not np.isfinite(value):
        return [surrounded_by(data, pairs, str(value))]
    return [apply("Pad", data, mode=mode, pad_width=flat, constant_value=value)]


def cut(data: OnnxOperand, axis: int, less: Sequence[int]) -> OnnxOperand:
    """Return a tensor without elements at both ends of a dimension."""
    before, after = less
    return apply("slice_axis", data, axis=axis, begin=before, end=data.shape[axis] - after)


def surrounded_by(data: OnnxOperand, pairs: Sequence[tuple[int, int]], value: str) -> OnnxOperand:
    """Return a tensor with a value around it that attributes do not hold, such as an infinite one."""
    binders = [f"i{d}={sum(pair) + data.shape[d]}" for d, pair in enumerate(pairs)]
    at = ", ".join(f"i{d} - {pair[0]}" for d, pair in enumerate(pairs))
    return described(f"def around(a):\n    return lambda {', '.join(binders)}: pad(a[{at}], {value})", data)


def wrapped(data: OnnxOperand, pairs: Sequence[tuple[int, int]]) -> OnnxOperand:
    """Return a tensor that repeats at its ends."""
    binders = [f"i{d}={sum(pair) + data.shape[d]}" for d, pair in enumerate(pairs)]
    at = [f"(i{d} + {-pair[0] % data.shape[d]}) % {data.shape[d]}" for d, pair in enumerate(pairs)]
    return described(f"def wrap(a):\n    return lambda {', '.join(binders)}: a[{', '.join(at)}]", data)


def one_hot(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Negative classes count from the back."""
    depth = int(node.value(1).reshape(()))
    off, on = (float(each) for each in node.value(2).tolist())
    places, rank = node[0], node[0].ndim + 1
    axis = node.axis(-1, rank)
    variables = [f"i{d}" for d in range(node[0].ndim)]
    read = f"a[{', '.join(variables or ['0'])}]"
    arguments = [*variables]
    arguments.insert(axis, f"k={depth}")
    hit = f"{read} == k or {read} + {depth} == k"
    text = f"def one_hot(a):\n    return lambda {', '.join(arguments)}: where({hit}, {on!r}, {off!r})"
    return [described(text, places)]


def tile(node: OnnxNode) -> Sequence[OnnxOperand]:
    return [apply("tile", node[0], reps=node.integers("repeats", 1))]


def expand(node: OnnxNode) -> Sequence[OnnxOperand]:
    shape = broadcast(node[0].shape, node.integers("shape", 1))
    return [constant(np.zeros(shape), node[0].dtype) if 0 in shape else stretched(node[0], shape)]


def depth_to_space(node: OnnxNode) -> Sequence[OnnxOperand]:
    batch, channels, height, width = node[0].shape
    block = node.integer("blocksize", 1)
    inner = channels // block**2
    deep = node.text("mode", "DCR") == "DCR"
    split_channels = (block, block, inner) if deep else (inner, block, block)
    order = (0, 3, 4, 1, 5, 2) if deep else (0, 1, 4, 2, 5, 3)
    blocks = reshape(node[0], (batch, *split_channels, height, width))
    return [reshape(apply("transpose", blocks, axes=order), (batch, inner, height * block, width * block))]


def space_to_depth(node: OnnxNode) -> Sequence[OnnxOperand]:
    batch, channels, height, width = node[0].shape
    block = node.integer("blocksize", 1)
    rows, columns = height // block, width // block
    order = (0, 3, 5, 1, 2, 4) if node.text("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    blocks = reshape(node[0], (batch, channels, rows, block, columns, block))
    return [reshape(apply("transpose", blocks, axes=order), (batch, channels * block**2, rows, columns))]


def reverse_sequence(node: OnnxNode) -> Sequence[OnnxOperand]:
    """MXNet's time is the first dimension."""
    batch_first = (node.integer("batch_axis", 1), node.integer("time_axis", 0)) == (0, 1)
    data = apply("SwapAxis", node[0], dim1=0, dim2=1) if batch_first else node[0]
    found = apply("SequenceReverse", data, node[1], use_sequence_length=True)
    return [apply("SwapAxis", found, dim1=0, dim2=1) if batch_first else found]


def triangle(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Keep elements from a diagonal on, or up to it."""
    diagonal = int(node.value(1).reshape(())) if node.has(1) else 0
    relation = ">=" if node.integer("upper", 1) else "<="
    batch = ", ".join(f"n{d}" for d in range(node[0].ndim - 2))
    at = f"{batch}, i, j" if batch else "i, j"
    text = f"def triangle(a):\n    return lambda {at}: where(j - i {relation} {diagonal}, a[{at}], 0)"
    return [described(text, node[0])]


def cumulative(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Return sums or products of all elements up to each along a dimension, with or without it, from either
    end.
    """
    data = node[0]
    if not data.ndim:
        raise UnsupportedNodeError(f"{node.kind} of a tensor without dimensions")
    axis = int(node.value(1).reshape(())) % data.ndim
    variables = [f"i{d}" for d in range(data.ndim)]
    at = [*variables[:axis], "k", *variables[axis + 1 :]]
    relation = (">" if node.integer("reverse", 0) else "<") + ("" if node.integer("exclusive", 0) else "=")
    sized = ", ".join(f"{v}={e}" for v, e in zip(variables, data.shape, strict=True))
    reducer, neutral = ("Sum", 0) if node.kind == "CumSum" else ("Prod", 1)
    body = f"{reducer}(lambda k: where(k {relation} {variables[axis]}, a[{', '.join(at)}], {neutral}))"
    return [described(f"def cumulative(a):\n    return lambda {sized}: {body}", data)]


def unit_matrix(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Return ones along a diagonal: a constant, because only the shape of the input counts."""
    rows, columns = node[0].shape
    dtype = element_type(node.integer("dtype", 0)) if "dtype" in node.attributes else node[0].dtype
    return [constant(np.eye(rows, columns, node.integer("k", 0)), dtype)]


def shape_of(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Return the shape, or a part of it: a constant."""
    shape = node[0].shape
    part = shape[slice(*slice(node.integer("start", 0), node.attributes.get("end")).indices(len(shape)))]
    return [constant(np.array(part, np.int64), np.int64)]


def size_of(node: OnnxNode) -> Sequence[OnnxOperand]:
    return [constant(node[0].size, np.int64)]


ADAPTERS: Mapping[str, Adapter] = {
    "Concat": concat,
    "Split": split,
    "Slice": slices,
    "Transpose": transpose,
    "Reshape": reshaped,
    "Flatten": flattened,
    "Squeeze": squeezed,
    "Unsqueeze": unsqueezed,
    "Pad": padded,
    "OneHot": one_hot,
    "Tile": tile,
    "Expand": expand,
    "DepthToSpace": depth_to_space,
    "SpaceToDepth": space_to_depth,
    "ReverseSequence": reverse_sequence,
    "Trilu": triangle,
    "CumSum": cumulative,
    "CumProd": cumulative,
    "EyeLike": unit_matrix,
    "Shape": shape_of,
    "Size": size_of,
}
