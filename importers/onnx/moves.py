"""ONNX nodes that move, repeat, pick or make elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .node import Adapter, Array, OnnxNode, UnsupportedNodeError, apply, outputs, ranked, reshape


def concat(node: OnnxNode) -> Sequence[Array]:
    arrays = [array for array in node.inputs if array is not None]
    return [apply("Concat", *arrays, num_args=len(arrays), dim=node.integer("axis", 0))]


def split(node: OnnxNode) -> Sequence[Array]:
    """Equal parts by SliceChannel, others one slice each."""
    axis = node.integer("axis", 0) % node[0].ndim
    extent = node[0].shape[axis]
    parts = node.integers("split", 1)
    if not parts:
        count = node.integer("num_outputs", node.outputs)
        width = -(-extent // count)
        parts = (*(width for _ in range(count - 1)), extent - width * (count - 1))
    if 0 in parts:
        raise UnsupportedNodeError("tensor without elements")
    if len(set(parts)) == 1:
        return outputs("SliceChannel", node[0], num_outputs=len(parts), axis=axis)
    ends = np.cumsum(parts).tolist()
    return [
        apply("slice_axis", node[0], axis=axis, begin=end - part, end=end)
        for part, end in zip(parts, ends, strict=True)
    ]


def slices(node: OnnxNode) -> Sequence[Array]:
    """Ends far beyond the tensor stand for open ones."""
    data = node[0]
    starts, ends = node.integers("starts", 1), node.integers("ends", 2)
    axes = node.integers("axes", 3, range(len(starts)))
    steps = node.integers("steps", 4, [1] * len(starts))
    cuts: list[tuple[int | None, int | None, int]] = [(None, None, 1)] * data.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        extent = data.shape[axis]
        chosen = range(*slice(start, end, step).indices(extent))
        if not chosen:
            raise UnsupportedNodeError("tensor without elements")
        last = chosen[-1] + (1 if step > 0 else -1)
        cuts[axis] = (chosen[0], None if last < 0 else last, step)
    begin, stop, stride = zip(*cuts, strict=True)
    return [apply("slice", data, begin=begin, end=stop, step=stride)]


def transpose(node: OnnxNode) -> Sequence[Array]:
    return [apply("transpose", node[0], axes=node.integers("perm", 1))]


def reshaped(node: OnnxNode) -> Sequence[Array]:
    node.only(allowzero=0)
    shape = node.integers("shape", 1)
    if -1 not in shape and 0 in node[0].shape:
        raise UnsupportedNodeError("tensor without elements")
    return [reshape(node[0], shape)]


def flattened(node: OnnxNode) -> Sequence[Array]:
    """MXNet's own Flatten is that from dimension 1."""
    data, axis = node[0], node.integer("axis", 1)
    if axis % max(data.ndim, 1) == 1 and axis != data.ndim:
        return [apply("Flatten", data)]
    axis = axis + data.ndim if axis < 0 else axis
    return [reshape(data, (int(np.prod(data.shape[:axis])), -1))]


def squeezed(node: OnnxNode) -> Sequence[Array]:
    data, axes = node[0], node.integers("axes", 1)
    dropped = {axis % data.ndim for axis in axes} or {d for d, e in enumerate(data.shape) if e == 1}
    return [reshape(data, [extent for d, extent in enumerate(data.shape) if d not in dropped])]


def unsqueezed(node: OnnxNode) -> Sequence[Array]:
    data, axes = node[0], node.integers("axes", 1)
    rank = data.ndim + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        data = apply("expand_dims", data, axis=axis)
    return [data]


def padded(node: OnnxNode) -> Sequence[Array]:
    data, mode = node[0], node.text("mode", "constant")
    if mode == "wrap":
        raise UnsupportedNodeError("Pad with mode wrap")
    width = node.integers("pads", 1)
    axes = node.integers("axes", 3, range(data.ndim))
    before, after = [0] * data.ndim, [0] * data.ndim
    for place, axis in enumerate(axes):
        before[axis], after[axis] = width[place], width[place + len(axes)]
    value = float(node[2]) if node.has(2) else node.number("value", 0.0)
    interleaved = [count for pair in zip(before, after, strict=True) for count in pair]
    return [apply("Pad", data, mode=mode, pad_width=interleaved, constant_value=value)]


def gather(node: OnnxNode) -> Sequence[Array]:
    """Negative indices count from the back, which is to wrap."""
    if not node[1].ndim:
        raise UnsupportedNodeError("tensor without dimensions")
    return [apply("take", node[0], node[1], axis=node.integer("axis", 0), mode="wrap")]


def one_hot(node: OnnxNode) -> Sequence[Array]:
    """MXNet's classes are the last dimension; negative indices count from the back."""
    depth, (off, on) = int(node[1].reshape(())), node[2].tolist()
    axis, places = node.integer("axis", -1), np.atleast_1d(node[0])
    above = apply("_greater_equal_scalar", places, scalar=depth)
    beyond = apply("_maximum", above, apply("_lesser_scalar", places, scalar=-depth))
    outside = apply("_mul_scalar", apply("ones_like", places), scalar=-1)
    indices = apply("where", beyond, outside, apply("_mod_scalar", places, scalar=depth))
    found = apply("one_hot", indices, depth=depth, on_value=on, off_value=off)
    order = list(range(found.ndim - 1))
    order.insert(axis % found.ndim, found.ndim - 1)
    return [apply("transpose", found, axes=order)]


def tile(node: OnnxNode) -> Sequence[Array]:
    return [apply("tile", node[0], reps=node.integers("repeats", 1))]


def expand(node: OnnxNode) -> Sequence[Array]:
    shape = np.broadcast_shapes(node[0].shape, node.integers("shape", 1))
    return [apply("broadcast_to", ranked(node[0], len(shape)), shape=shape)]


def arange(node: OnnxNode) -> Sequence[Array]:
    start, stop, step = (float(node[k]) for k in range(3))
    return [apply("_arange", start=start, stop=stop, step=step)]


def filled(node: OnnxNode) -> Sequence[Array]:
    shape = node.integers("shape", 0)
    if not shape or 0 in shape:
        raise UnsupportedNodeError("tensor without elements")
    value = node.attributes.get("value")
    number = 0.0 if value is None else float(np.asarray(value).reshape(()))
    return [apply("_mul_scalar", apply("_ones", shape=shape), scalar=number)]


def depth_to_space(node: OnnxNode) -> Sequence[Array]:
    batch, channels, height, width = node[0].shape
    block = node.integer("blocksize", 1)
    inner = channels // block**2
    deep = node.text("mode", "DCR") == "DCR"
    split_channels = (block, block, inner) if deep else (inner, block, block)
    order = (0, 3, 4, 1, 5, 2) if deep else (0, 1, 4, 2, 5, 3)
    blocks = reshape(node[0], (batch, *split_channels, height, width))
    return [reshape(apply("transpose", blocks, axes=order), (batch, inner, height * block, width * block))]


def space_to_depth(node: OnnxNode) -> Sequence[Array]:
    batch, channels, height, width = node[0].shape
    block = node.integer("blocksize", 1)
    rows, columns = height // block, width // block
    order = (0, 3, 5, 1, 2, 4) if node.text("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    blocks = reshape(node[0], (batch, channels, rows, block, columns, block))
    return [reshape(apply("transpose", blocks, axes=order), (batch, channels * block**2, rows, columns))]


def reverse_sequence(node: OnnxNode) -> Sequence[Array]:
    """MXNet's time is the first dimension."""
    batch_first = (node.integer("batch_axis", 1), node.integer("time_axis", 0)) == (0, 1)
    data = apply("SwapAxis", node[0], dim1=0, dim2=1) if batch_first else node[0]
    found = apply("SequenceReverse", data, node[1].astype(data.dtype), use_sequence_length=True)
    return [apply("SwapAxis", found, dim1=0, dim2=1) if batch_first else found]


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
    "Gather": gather,
    "OneHot": one_hot,
    "Tile": tile,
    "Expand": expand,
    "Range": arange,
    "ConstantOfShape": filled,
    "DepthToSpace": depth_to_space,
    "SpaceToDepth": space_to_depth,
    "ReverseSequence": reverse_sequence,
}
