"""ONNX nodes that are layers of networks: windows, normalisation, images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ..folded_columns import FoldedAxis, folded, windows_shape
from ..grid_sampling import GridSampling, Interpolation, Outside
from .compose import apply, described, elementwise, outputs, reshape
from .elementwise import ADD, MUL, binary
from .node import Adapter, OnnxNode
from .operand import Constants, OnnxOperand, UnsupportedNodeError, constant
from .windows import averaged, dilated, places, windows_of, written_back

INTERPOLATIONS = {each.name.lower(): each for each in Interpolation}
OUTSIDE = {each.value: each for each in Outside}

LOWEST = float(np.finfo(np.float32).min)
"""Padding of a maximum; attributes are finite."""


def paddings(node: OnnxNode, kernel: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Before and after every dimension of space; `SAME` keeps the extents, divided by the stride."""
    rank, space = len(kernel), node[0].shape[2:]
    strides = node.integers("strides", None, [1] * rank)
    dilations = node.integers("dilations", None, [1] * rank)
    mode = node.text("auto_pad", "NOTSET")
    if mode in ("NOTSET", "VALID"):
        pads = node.integers("pads", None, [0] * 2 * rank)
        return pads[:rank], pads[rank:]
    totals = [
        max((-(-extent // stride) - 1) * stride + dilation * (k - 1) + 1 - extent, 0)
        for extent, stride, dilation, k in zip(space, strides, dilations, kernel, strict=True)
    ]
    less, more = [total // 2 for total in totals], [-(-total // 2) for total in totals]
    return (tuple(less), tuple(more)) if mode == "SAME_UPPER" else (tuple(more), tuple(less))


def surrounded(
    data: OnnxOperand, before: Sequence[int], after: Sequence[int], value: float = 0.0
) -> OnnxOperand:
    """MXNet pads both sides of a dimension alike, so the difference is padded apart."""
    width = [0, 0, 0, 0, *(count for pair in zip(before, after, strict=True) for count in pair)]
    return apply("Pad", data, mode="constant", pad_width=width, constant_value=value) if any(width) else data


def convolution(node: OnnxNode) -> Sequence[OnnxOperand]:
    data, weight = node[0], node[1]
    if data.ndim < 3 or weight.ndim != data.ndim:
        raise UnsupportedNodeError(f"Conv of {data.shape} by {weight.shape}")
    kernel = weight.shape[2:]
    before, after = paddings(node, kernel)
    if before != after:
        data, before = surrounded(data, before, after), (0,) * len(kernel)
    tensors = [data, weight, *([node[2]] if node.has(2) else [])]
    return [
        apply(
            "Convolution",
            *tensors,
            kernel=kernel,
            stride=node.integers("strides", None),
            dilate=node.integers("dilations", None),
            pad=before,
            num_filter=weight.shape[0],
            num_group=node.integer("group", 1),
            no_bias=not node.has(2),
        )
    ]


def transposed_convolution(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Without padding; what ONNX's padding cuts off is sliced, as MXNet cuts both sides alike."""
    data, weight = node[0], node[1]
    kernel, groups = weight.shape[2:], node.integer("group", 1)
    rank = len(kernel)
    strides = node.integers("strides", None, [1] * rank)
    extra = node.integers("output_padding", None, [0] * rank)
    less = all(count < stride for count, stride in zip(extra, strides, strict=True))
    tensors = [data, weight, *([node[2]] if node.has(2) else [])]
    full = apply(
        "Deconvolution",
        *tensors,
        kernel=kernel,
        stride=strides,
        dilate=node.integers("dilations", None),
        adj=extra if less else (),
        num_filter=weight.shape[1] * groups,
        num_group=groups,
        no_bias=not node.has(2),
    )
    full = full if less else _extended(node, full, extra)
    wanted = node.integers("output_shape", None)[-rank:]
    mode = node.text("auto_pad", "NOTSET")
    # with a shape, the versions before 11 exchange both sides
    less_before = (mode == "SAME_UPPER") == (not wanted or node.opset >= 11)
    if not wanted and mode.startswith("SAME"):
        wanted = tuple(extent * stride for extent, stride in zip(data.shape[2:], strides, strict=True))
    if not wanted:
        pads = node.integers("pads", None, [0] * 2 * rank)
        ends = [extent - cut for extent, cut in zip(full.shape[2:], pads[rank:], strict=True)]
        return [apply("slice", full, begin=(None, None, *pads[:rank]), end=(None, None, *ends))]
    missing = [max(extent - size, 0) for size, extent in zip(full.shape[2:], wanted, strict=True)]
    full = _extended(node, full, missing)
    surplus = [size - extent for size, extent in zip(full.shape[2:], wanted, strict=True)]
    starts = [cut // 2 if less_before else -(-cut // 2) for cut in surplus]
    ends = [start + extent for start, extent in zip(starts, wanted, strict=True)]
    return [apply("slice", full, begin=(None, None, *starts), end=(None, None, *ends))]


def _extended(node: OnnxNode, full: OnnxOperand, counts: Sequence[int]) -> OnnxOperand:
    """Return the result of a ConvTranspose with more elements behind, which no input reaches."""
    if any(counts) and node.has(2):
        raise UnsupportedNodeError("ConvTranspose with bias in padding")
    return surrounded(full, [0] * len(counts), counts)


def within(found: OnnxOperand, node: OnnxNode, before: Sequence[int]) -> OnnxOperand:
    """Without last windows that begin behind the tensor, which MXNet keeps."""
    strides = node.integers("strides", None, [1] * len(before))
    ends = [
        min(count, -(-(extent + pad) // stride))
        for count, extent, pad, stride in zip(
            found.shape[2:], node[0].shape[2:], before, strides, strict=True
        )
    ]
    return apply("slice", found, begin=(None,) * found.ndim, end=(None, None, *ends))


def pooled(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Pool, and tell where the maxima are if that is an output."""
    kernel = node.integers("kernel_shape", None)
    before, after = paddings(node, kernel)
    found = _pooled(node, kernel, before, after)
    if node.outputs == 1:
        return [found]
    windows = windows_of(node, kernel, before, after)
    return [found, places(node[0], found, windows, bool(node.integer("storage_order", 0)))]


def _pooled(
    node: OnnxNode, kernel: Sequence[int], before: Sequence[int], after: Sequence[int]
) -> OnnxOperand:
    """Add uneven padding before; then an average needs the number of elements that are not padding."""
    kind = "max" if node.kind == "MaxPool" else "avg"
    if max(node.integers("dilations", None, [1])) > 1:
        return dilated_pooling(node, kernel, before, after)
    counts = kind == "max" or bool(node.integer("count_include_pad", 0))
    full = bool(node.integer("ceil_mode", 0))
    windows = {
        "kernel": kernel,
        "stride": node.integers("strides", None),
        "pooling_convention": "full" if full else "valid",
    }

    def reduced(data: OnnxOperand, **options: Any) -> OnnxOperand:
        found = apply("Pooling", data, **windows, **options)
        return within(found, node, before) if full else found

    if before == after:
        return reduced(node[0], pool_type=kind, pad=before, count_include_pad=counts)
    data = surrounded(node[0], before, after, LOWEST if kind == "max" else 0.0)
    if counts:
        return reduced(data, pool_type=kind)
    inside = surrounded(apply("ones_like", node[0]), before, after)
    total, count = (reduced(each, pool_type="sum") for each in (data, inside))
    return apply("_div", total, count)


def unpooled(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Write maxima back; a larger shape that is asked for has zeros behind."""
    data, kernel = node[0], node.integers("kernel_shape", None)
    rank = len(kernel)
    strides, pads = node.integers("strides", None, [1] * rank), node.integers("pads", None, [0] * 2 * rank)
    space = [
        (count - 1) * stride + size - pads[d] - pads[d + rank]
        for d, (count, stride, size) in enumerate(zip(data.shape[2:], strides, kernel, strict=True))
    ]
    found = written_back(data, node[1], space)
    wanted = node.value(2).tolist()[2:] if node.has(2) else space
    more = [extent - own for extent, own in zip(wanted, space, strict=True)]
    if min(more) < 0:
        raise UnsupportedNodeError(f"MaxUnpool of {data.shape} to {tuple(wanted)}")
    return [surrounded(found, [0] * rank, more)]


def dilated_pooling(
    node: OnnxNode, kernel: Sequence[int], before: Sequence[int], after: Sequence[int]
) -> OnnxOperand:
    """Pool windows with gaps. An average counts the elements of the tensor, or of its padding as well."""
    windows = windows_of(node, kernel, before, after)
    if node.kind == "MaxPool":
        return dilated(node[0], windows, "Max", "-inf")
    space = node[0].shape[2:]
    if not node.integer("count_include_pad", 0):
        before, after = [0] * len(space), [0] * len(space)
    ends = [extent + more for extent, more in zip(space, after, strict=True)]
    total = dilated(node[0], windows, "Sum", "0")
    return averaged(total, windows, [-count for count in before], ends)


def power_pooled(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Return the root of a sum of powers."""
    kernel, power = node.integers("kernel_shape", None), node.number("p", 2)
    before, after = paddings(node, kernel)
    powers = apply("_power_scalar", apply("abs", node[0]), scalar=power)
    if max(node.integers("dilations", None, [1])) > 1:
        total = dilated(powers, windows_of(node, kernel, before, after), "Sum", "0")
        return [apply("_power_scalar", total, scalar=1 / power)]
    full = bool(node.integer("ceil_mode", 0))
    total = apply(
        "Pooling",
        surrounded(powers, before, after),
        kernel=kernel,
        stride=node.integers("strides", None),
        pool_type="sum",
        pooling_convention="full" if full else "valid",
    )
    total = within(total, node, before) if full else total
    return [apply("_power_scalar", total, scalar=1 / power)]


def pooled_everywhere(node: OnnxNode) -> Sequence[OnnxOperand]:
    kind = "max" if node.kind == "GlobalMaxPool" else "avg"
    if node[0].ndim < 3:
        return [node[0]]
    return [apply("Pooling", node[0], pool_type=kind, global_pool=True)]


def batch_normalization(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Apply the library's operator, which updates the statistics in training, if they are values.

    With `training_mode`, and if statistics are inputs or computed, the node computes what it says instead.
    """
    affine, statistics = [node[1], node[2]], [node[3], node[4]]
    if node[0].ndim < 2:
        raise UnsupportedNodeError("BatchNormalization of one dimension")
    if node.integer("training_mode", 0):
        return _with_statistics_of_batch(node)
    if any(each.array is None for each in statistics):
        return [_normalised(node, *statistics)]
    states = Constants.innermost.get().states(affine, statistics)
    epsilon, momentum = node.number("epsilon", 1e-5), node.number("momentum", 0.9)
    return [apply("BatchNorm", node[0], *affine, *states, fix_gamma=False, eps=epsilon, momentum=momentum)]


def _with_statistics_of_batch(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Normalise by the statistics of the batch, and mix them with those of the inputs."""
    data, momentum = node[0], node.number("momentum", 0.9)
    axes = [axis for axis in range(data.ndim) if axis != 1]
    mean = apply("mean", data, axis=axes)
    centred = elementwise("centred", "{0} - {1}", data, _of_channels(mean, data))
    var = apply("mean", apply("square", centred), axis=axes)
    mixed = [
        elementwise("mix", f"{{0}} * {momentum!r} + {{1}} * {1 - momentum!r}", before, now)
        for before, now in ((node[3], mean), (node[4], var))
        if node.outputs > 1
    ]
    return [_normalised(node, mean, var), *mixed]


def _normalised(node: OnnxNode, mean: OnnxOperand, var: OnnxOperand) -> OnnxOperand:
    """Normalise by given statistics, then scale and shift each channel."""
    scale, offset, mean, var = (_of_channels(each, node[0]) for each in (node[1], node[2], mean, var))
    expression = f"({{0}} - {{1}}) * rsqrt({{2}} + {node.number('epsilon', 1e-5)!r}) * {{3}} + {{4}}"
    return elementwise("normalise", expression, node[0], mean, var, scale, offset)


def _of_channels(operand: OnnxOperand, data: OnnxOperand) -> OnnxOperand:
    """Return a number for each channel under a shape that is stretched to that of the data."""
    return reshape(operand, (-1, *(1 for _ in data.shape[2:])))


def instance_normalization(node: OnnxNode) -> Sequence[OnnxOperand]:
    return [apply("InstanceNorm", *(node[k] for k in range(3)), eps=node.number("epsilon", 1e-5))]


def group_normalization(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Groups are the channels of an InstanceNorm. Before version 21 it has their scales and offsets, and
    those of the channels are applied after it from then on.
    """
    data, groups = node[0], node.integer("num_groups", 1)
    grouped, epsilon = reshape(data, (data.shape[0], groups, -1)), node.number("epsilon", 1e-5)
    if node.opset < 21:
        return [reshape(apply("InstanceNorm", grouped, node[1], node[2], eps=epsilon), data.shape)]
    ones, zeros = constant(np.ones(groups)), constant(np.zeros(groups))
    normal = apply("InstanceNorm", grouped, ones, zeros, eps=epsilon)
    scale, offset = (_of_channels(node[k], data) for k in (1, 2))
    return [binary(ADD, binary(MUL, reshape(normal, data.shape), scale), offset)]


def local_response(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Return the library's in a reversed order of channels if the size is even. ONNX has one more channel
    behind then, and the library one more before.
    """
    size = node.integer("size", 1)
    found = apply(
        "LRN",
        node[0] if size % 2 else apply("reverse", node[0], axis=1),
        alpha=node.number("alpha", 1e-4),
        beta=node.number("beta", 0.75),
        knorm=node.number("bias", 1.0),
        nsize=size,
    )
    return [found if size % 2 else apply("reverse", found, axis=1)]


def dropout(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Nothing is dropped after training. In training it draws, if the ratio says so."""
    if node.outputs > 1:
        raise UnsupportedNodeError("Dropout with output mask")
    if node.has(2) and bool(node.value(2)):
        raise UnsupportedNodeError("random numbers")
    ratio = float(node.value(1).reshape(())) if node.has(1) else node.number("ratio", 0.5)
    return [outputs("Dropout", node[0], p=ratio)[0]] if 0 < ratio < 1 else [node[0]]


def grid_sampled(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Read an image at places between its pixels. The names of modes changed in version 20."""
    mode, padding = node.text("mode", "linear"), node.text("padding_mode", "zeros")
    interpolation, outside = INTERPOLATIONS.get(mode.removeprefix("bi")), OUTSIDE.get(padding)
    if interpolation is None:
        raise UnsupportedNodeError(f"GridSample with mode {mode}")
    if outside is None:
        raise UnsupportedNodeError(f"GridSample with padding_mode {padding}")
    image, grid = node[0].shape, node[1].shape
    if (
        len(image) not in (4, 5)
        or len(grid) != len(image)
        or (grid[0], grid[-1]) != (image[0], len(image) - 2)
    ):
        raise UnsupportedNodeError(f"GridSample of {image} by {grid}")
    corners = bool(node.integer("align_corners", 0))
    sampling = GridSampling(image, grid, interpolation, outside, corners)
    lines = "\n    ".join(("def sample(data, grid):", *sampling.stages(), f"return {sampling.result}"))
    return [described(lines, node[0], node[1])]


def columns_to_image(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Add columns up to an image."""
    extents, kernel = node.integers("image_shape", 1), node.integers("block_shape", 2)
    ones, pads = [1] * len(kernel), node.integers("pads", None, [0] * 2 * len(kernel))
    strides, dilations = node.integers("strides", None, ones), node.integers("dilations", None, ones)
    before, after = pads[: len(kernel)], pads[len(kernel) :]
    axes = list(map(FoldedAxis, extents, kernel, strides, dilations, before, after))
    batch, channels = node[0].shape[0], node[0].shape[1] // prod(kernel)
    windows = reshape(node[0], windows_shape(batch, channels, axes))
    return [described(f"def fold(data):\n    return {folded(batch, channels, axes)}", windows)]


def affine_grid(node: OnnxNode) -> Sequence[OnnxOperand]:
    size = node.value(1).tolist()
    if len(size) != 4:
        raise UnsupportedNodeError("AffineGrid of volumes")
    if not node.integer("align_corners", 0):
        raise UnsupportedNodeError("AffineGrid with align_corners")
    grid = apply(
        "GridGenerator", reshape(node[0], (-1, 6)), transform_type="affine", target_shape=tuple(size[2:])
    )
    return [apply("transpose", grid, axes=(0, 2, 3, 1))]


ADAPTERS: Mapping[str, Adapter] = {
    "Conv": convolution,
    "ConvTranspose": transposed_convolution,
    "MaxPool": pooled,
    "AveragePool": pooled,
    "MaxUnpool": unpooled,
    "LpPool": power_pooled,
    "GlobalMaxPool": pooled_everywhere,
    "GlobalAveragePool": pooled_everywhere,
    "BatchNormalization": batch_normalization,
    "InstanceNormalization": instance_normalization,
    "GroupNormalization": group_normalization,
    "LRN": local_response,
    "Dropout": dropout,
    "GridSample": grid_sampled,
    "AffineGrid": affine_grid,
    "Col2Im": columns_to_image,
}
