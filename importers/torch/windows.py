"""ATen operators on windows and images: convolution, resizing, columns."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from .call import AtenCall, TensorValue, UnsupportedCallError, at, bound, variables
from .converter import Converter
from .moves import padded, viewed
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


def _scales(call: AtenCall, space: int) -> list[float]:
    """Return how far neighbours of the result are apart in the data."""
    data, result = call.tensor("self" if call.has("self") else "input").shape, call.result.shape
    given = call.get("scale_factors")
    if given is None:
        given = [call.get(f"scales_{axis}", call.get("scales")) for axis in ("d", "h", "w")[3 - space :]]
    return [
        1 / factor if factor else before / after
        for before, after, factor in zip(data[-space:], result[-space:], given, strict=True)
    ]


def upsample_nearest(call: AtenCall) -> TensorValue:
    """Repeat elements; places are computed by PyTorch's rule, and are exact quotients if they are such."""
    space = _space_of_image(call)
    data = call.tensor("self" if call.has("self") else "input")
    outer, places = variables(data.rank - space), variables(space, "x")
    scales, indices = _scales(call, space), []
    for x, scale, extent, count in zip(
        places, scales, data.shape[-space:], call.result.shape[-space:], strict=True
    ):
        found = [min(int(place * scale), extent - 1) for place in range(count)]
        up, down = max(count // extent, 1), max(extent // count, 1)
        if found == [place // up for place in range(count)]:
            indices.append(f"{x} // {up}")
        elif found == [place * down for place in range(count)]:
            indices.append(f"{x} * {down}")
        elif found == [min(place * extent // count, extent - 1) for place in range(count)]:
            indices.append(f"{x} * {extent} // {count}")
        else:
            raise UnsupportedCallError(f"{call.target} from {data.shape} to {call.result.shape}")
    binders = ", ".join([*outer, bound(places, call.result.shape[-space:])])
    return call.described({"data": data}, f"lambda {binders}: {at('data', [*outer, *indices])}")


def _space_of_image(call: AtenCall) -> int:
    return int(call.target.rstrip("d")[-1])


def upsample_linear(call: AtenCall) -> TensorValue:
    """Mix neighbours, one dimension of space after the other."""
    space = {"linear1d": 1, "bilinear2d": 2, "trilinear3d": 3}[call.target.rpartition("_")[2]]
    data = call.tensor("self" if call.has("self") else "input")
    scales = _scales(call, space)
    for number in range(space):
        axis = data.rank - space + number
        count = call.result.shape[axis]
        data = _mixed(call, data, axis, count, scales[number], "" if number == space - 1 else f"axis{axis}")
    return data


def _mixed(call: AtenCall, data: TensorValue, axis: int, count: int, scale: float, step: str) -> TensorValue:
    """Resize one dimension by a matrix of weights, two in each row: a constant of PyTorch's rule."""
    extent = data.shape[axis]
    if extent == count:
        return data
    from .installed import installed

    torch = installed()
    weights = torch.zeros(count, extent)
    for place in range(count):
        if call.get("align_corners", False):
            source = place * (extent - 1) / max(count - 1, 1)
        else:
            source = max((place + 0.5) * scale - 0.5, 0.0)
        low = min(int(source), extent - 1)
        high = min(low + 1, extent - 1)
        weights[place, low] += 1 - (source - low)
        weights[place, high] += source - low
    names = variables(data.rank)
    binders = [f"x={count}" if d == axis else name for d, name in enumerate(names)]
    mixed = f"Sum(lambda {names[axis]}: {at('data', names)} * weights[x, {names[axis]}])"
    text = f"lambda {', '.join(binders)}: {mixed}"
    shape = (*data.shape[:axis], count, *data.shape[axis + 1 :])
    return call.described({"data": data, "weights": call.constant(weights)}, text, shape=shape, step=step)


def unfold_columns(call: AtenCall) -> TensorValue:
    """Return windows of an image as columns."""
    data = call.tensor("self")
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
    return viewed(call, windows, (batch, channels * prod(kernel), prod(counts)))


def fold_columns(call: AtenCall) -> TensorValue:
    """Add columns up to an image: each pixel is the sum of what all windows have of it."""
    data = call.tensor("self")
    if data.rank != 3:
        raise UnsupportedCallError(f"{call.target} without a batch")
    kernel, stride = call.get("kernel_size"), call.get("stride")
    dilation, padding = call.get("dilation"), call.get("padding")
    space = call.get("output_size")
    channels = data.shape[1] // prod(kernel)
    counts = [
        (extent + 2 * p - d * (k - 1) - 1) // s + 1
        for extent, p, d, k, s in zip(space, padding, dilation, kernel, stride, strict=True)
    ]
    windows = viewed(call, data, (data.shape[0], channels, *kernel, *counts), step="windows")
    pixels, inner = variables(2, "x"), variables(2, "k")
    starts = [f"({x} + {p} - {k} * {d})" for x, p, k, d in zip(pixels, padding, inner, dilation, strict=True)]
    places = [f"{start} // {s}" for start, s in zip(starts, stride, strict=True)]
    hits = [f"{start} % {s} == 0" for start, s in zip(starts, stride, strict=True) if s > 1]
    item = f"pad({at('data', ['n', 'c', *inner, *places])}, 0)"
    item = f"where({' and '.join(hits)}, {item}, 0)" if hits else item
    shape = (data.shape[0], channels, *space)
    text = f"lambda {bound(['n', 'c', *pixels], shape)}: Sum(lambda {bound(inner, kernel)}: {item})"
    return call.described({"data": windows}, text)


CONVERTERS: Mapping[str, Converter] = {
    "convolution": convolution,
    **{f"conv{d}d": convolution for d in (1, 2, 3)},
    **{f"conv_transpose{d}d": transposed_convolution for d in (1, 2, 3)},
    **{f"upsample_nearest{d}d": upsample_nearest for d in (1, 2, 3)},
    "upsample_linear1d": upsample_linear,
    "upsample_bilinear2d": upsample_linear,
    "upsample_trilinear3d": upsample_linear,
    "im2col": unfold_columns,
    "col2im": fold_columns,
}
