"""ATen operators on windows and images: convolution, resizing, columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from ..folded_columns import FoldedAxis, folded, windows_shape
from .call import AtenCall, TensorValue, at, bound, variables
from .converter import Converter
from .installed import installed
from .moves import viewed
from .padding import padded
from .space import batched, spread, unbatched, with_batch


def convolution(call: AtenCall) -> TensorValue:
    """Apply the library's convolution. Padding that differs between both sides is a separate operation."""
    weight = call.tensor("weight")
    space = weight.rank - 2
    if call.get("transposed", False):
        return transposed_convolution(call)
    data = batched(call, call.tensor("input"), space)
    stride = spread(call.get("stride"), space, 1)
    dilation = spread(call.get("dilation"), space, 1)
    padding = call.get("padding", 0)
    if padding == "same":
        totals = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
        padding = [total // 2 for total in totals]
        uneven = [total % 2 for total in totals]
        if any(uneven):
            data = padded(call, data, [p for u in reversed(uneven) for p in (0, u)], "constant", 0, "pad")
    elif padding == "valid":
        padding = 0
    bias = [call.tensor("bias")] if call.has("bias") else []
    found = call.library(
        "Convolution",
        data,
        weight,
        *bias,
        shape=with_batch(call, space),
        kernel=weight.shape[2:],
        stride=stride,
        dilate=dilation,
        pad=spread(padding, space),
        num_filter=weight.shape[0],
        num_group=call.get("groups", 1),
        no_bias=not bias,
    )
    return unbatched(call, found)


def transposed_convolution(call: AtenCall) -> TensorValue:
    weight = call.tensor("weight")
    space, groups = weight.rank - 2, call.get("groups", 1)
    data = batched(call, call.tensor("input"), space)
    bias = [call.tensor("bias")] if call.has("bias") else []
    found = call.library(
        "Deconvolution",
        data,
        weight,
        *bias,
        shape=with_batch(call, space),
        kernel=weight.shape[2:],
        stride=spread(call.get("stride"), space, 1),
        dilate=spread(call.get("dilation"), space, 1),
        pad=spread(call.get("padding"), space),
        adj=spread(call.get("output_padding"), space),
        num_filter=weight.shape[1] * groups,
        num_group=groups,
        no_bias=not bias,
    )
    return unbatched(call, found)


def _factors(call: AtenCall, space: int) -> list[float | None]:
    """Return by how much each dimension of space grows; None if the extents say it."""
    given = call.get("scale_factors")
    if given is None:
        given = [call.get(f"scales_{axis}", call.get("scales")) for axis in ("d", "h", "w")[3 - space :]]
    return list(given)


def upsample_nearest(call: AtenCall) -> TensorValue:
    """Repeat elements; places are computed by PyTorch. They are quotients if they can be, or else
    constants.
    """
    space = _space_of_image(call)
    data = call.tensor("self" if call.has("self") else "input")
    outer, places = variables(data.rank - space), variables(space, "x")
    factors, indices, tensors = _factors(call, space), [], {"data": data}
    for axis, (x, extent, count) in enumerate(
        zip(places, data.shape[-space:], call.result.shape[-space:], strict=True)
    ):
        found = _nearest(call, axis, extent, count, factors)
        up, down = max(count // extent, 1), max(extent // count, 1)
        if found == [place // up for place in range(count)]:
            indices.append(f"{x} // {up}")
        elif found == [place * down for place in range(count)]:
            indices.append(f"{x} * {down}")
        elif found == [min(place * extent // count, extent - 1) for place in range(count)]:
            indices.append(f"{x} * {extent} // {count}")
        else:
            tensors[f"from_{x}"] = call.constant(installed().tensor(found))
            indices.append(f"from_{x}[{x}]")
    binders = ", ".join([*outer, bound(places, call.result.shape[-space:])])
    return call.described(tensors, f"lambda {binders}: {at('data', [*outer, *indices])}")


def _nearest(
    call: AtenCall, axis: int, extent: int, count: int, factors: Sequence[float | None]
) -> list[int]:
    """Return the places from which one dimension of space is read: what PyTorch makes of their numbers."""
    torch = installed()
    shape, counts = [1] * len(factors), [1] * len(factors)
    shape[axis], counts[axis] = extent, count
    resize = getattr(torch.ops.aten, call.target.removeprefix("aten.")).default
    numbers = torch.arange(float(extent)).reshape(1, 1, *shape)
    factors = [factor if each == axis else None for each, factor in enumerate(factors)]
    found: list[int] = resize(numbers, counts, *factors).flatten().int().tolist()
    return found


def _space_of_image(call: AtenCall) -> int:
    return int(call.target.removesuffix("_aa").rstrip("d")[-1])


def upsample_mixed(call: AtenCall) -> TensorValue:
    """Mix neighbours, one dimension of space after the other."""
    space = _space_of_image(call)
    data = call.tensor("self" if call.has("self") else "input")
    for number, factor in enumerate(_factors(call, space)):
        axis = data.rank - space + number
        count = call.result.shape[axis]
        data = _mixed(call, data, axis, count, factor, "" if number == space - 1 else f"axis{axis}")
    return data


def _mixed(
    call: AtenCall, data: TensorValue, axis: int, count: int, factor: float | None, step: str
) -> TensorValue:
    """Resize one dimension by a matrix of weights, a constant: what PyTorch makes of the identity."""
    extent = data.shape[axis]
    if extent == count:
        return data
    torch = installed()
    columns, corners = torch.eye(extent)[None], call.get("align_corners", False)
    if call.target.endswith("_aa"):
        resize = getattr(torch.ops.aten, call.target.removeprefix("aten.")).default
        weights = resize(columns[None], [count, extent], corners, factor, None)[0, 0]
    else:
        weights = torch.ops.aten.upsample_linear1d.default(columns, [count], corners, factor)[0].T
    names = variables(data.rank)
    binders = [f"x={count}" if d == axis else name for d, name in enumerate(names)]
    mixed = f"Sum(lambda {names[axis]}: {at('data', names)} * weights[x, {names[axis]}])"
    text = f"lambda {', '.join(binders)}: {mixed}"
    shape = (*data.shape[:axis], count, *data.shape[axis + 1 :])
    return call.described({"data": data, "weights": call.constant(weights)}, text, shape=shape, step=step)


def unfold_columns(call: AtenCall) -> TensorValue:
    """Return windows of an image as columns."""
    data = batched(call, call.tensor("self"), 2)
    kernel, stride = call.get("kernel_size"), call.get("stride")
    dilation, padding = call.get("dilation"), call.get("padding")
    batch, channels, *space = data.shape
    counts = [
        (extent + 2 * p - d * (k - 1) - 1) // s + 1
        for extent, p, d, k, s in zip(space, padding, dilation, kernel, stride, strict=True)
    ]
    names = variables(2, "x"), variables(2, "k")
    indices = [
        f"{x} * {s} + {k} * {d} - {p}"
        for x, s, k, d, p in zip(names[0], stride, names[1], dilation, padding, strict=True)
    ]
    shape = (batch, channels, *kernel, *counts)
    text = (
        f"lambda {bound(['n', 'c', *names[1], *names[0]], shape)}: pad({at('data', ['n', 'c', *indices])}, 0)"
    )
    windows = call.described({"data": data}, text, shape=shape, step="windows")
    return viewed(call, windows, call.result.shape)


def fold_columns(call: AtenCall) -> TensorValue:
    """Add columns up to an image."""
    data = batched(call, call.tensor("self"), 1)
    names = ("output_size", "kernel_size", "stride", "dilation", "padding", "padding")
    axes = list(map(FoldedAxis, *(call.get(name) for name in names)))
    batch, channels = data.shape[0], data.shape[1] // prod(axis.kernel for axis in axes)
    windows = viewed(call, data, windows_shape(batch, channels, axes), step="windows")
    shape = (batch, channels, *(axis.extent for axis in axes))
    return unbatched(call, call.described({"data": windows}, folded(batch, channels, axes), shape=shape))


CONVERTERS: Mapping[str, Converter] = {
    "convolution": convolution,
    **{f"conv{d}d": convolution for d in (1, 2, 3)},
    **{f"conv_transpose{d}d": transposed_convolution for d in (1, 2, 3)},
    **{f"upsample_nearest{d}d": upsample_nearest for d in (1, 2, 3)},
    **dict.fromkeys(("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d"), upsample_mixed),
    **dict.fromkeys(("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"), upsample_mixed),
    "im2col": unfold_columns,
    "col2im": fold_columns,
}
