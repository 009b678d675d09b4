"""ATen operators on windows and images: convolution, pooling, resizing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from .call import AtenCall, TensorValue, UnsupportedCallError, at, bound, literal, variables
from .converter import Converter
from .moves import padded, viewed


def _spread(value: object, rank: int, default: int = 0) -> tuple[int, ...]:
    """Return one number for each dimension of space."""
    if value is None or value == []:
        return (default,) * rank
    listed = [value] if isinstance(value, int) else list(value)  # type: ignore[call-overload]
    return tuple(listed * rank if len(listed) == 1 else listed)


def _batched(call: AtenCall, data: TensorValue, space: int) -> TensorValue:
    """Return the data with a batch, which PyTorch lets users leave out."""
    if data.rank == space + 2:
        return data
    return viewed(call, data, (1, *data.shape), "batch")


def _unbatched(call: AtenCall, found: TensorValue) -> TensorValue:
    return found if found.rank == len(call.result.shape) else viewed(call, found, call.result.shape, "row")


def _with_batch(call: AtenCall, space: int) -> tuple[int, ...]:
    shape = call.result.shape
    return shape if len(shape) == space + 2 else (1, *shape)


def convolution(call: AtenCall) -> TensorValue:
    """Apply the library's convolution. Padding that differs between both sides is a separate operation."""
    weight = call.tensor("weight")
    space = weight.rank - 2
    if call.get("transposed", False):
        return transposed_convolution(call)
    data = _batched(call, call.tensor("input"), space)
    stride = _spread(call.get("stride"), space, 1)
    dilation = _spread(call.get("dilation"), space, 1)
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
        shape=_with_batch(call, space),
        kernel=weight.shape[2:],
        stride=stride,
        dilate=dilation,
        pad=_spread(padding, space),
        num_filter=weight.shape[0],
        num_group=call.get("groups", 1),
        no_bias=not bias,
    )
    return _unbatched(call, found)


def transposed_convolution(call: AtenCall) -> TensorValue:
    weight = call.tensor("weight")
    space, groups = weight.rank - 2, call.get("groups", 1)
    data = _batched(call, call.tensor("input"), space)
    bias = [call.tensor("bias")] if call.has("bias") else []
    found = call.library(
        "Deconvolution",
        data,
        weight,
        *bias,
        shape=_with_batch(call, space),
        kernel=weight.shape[2:],
        stride=_spread(call.get("stride"), space, 1),
        dilate=_spread(call.get("dilation"), space, 1),
        pad=_spread(call.get("padding"), space),
        adj=_spread(call.get("output_padding"), space),
        num_filter=weight.shape[1] * groups,
        num_group=groups,
        no_bias=not bias,
    )
    return _unbatched(call, found)


def _space(call: AtenCall) -> int:
    """Return the number of dimensions of space, which the operator's name ends with."""
    return int(call.target.partition("d_with")[0].rstrip("d")[-1])


def max_pool(call: AtenCall) -> TensorValue | Sequence[TensorValue | None]:
    """Apply the library's pooling; with dilation a description of its own. Places of maxima have none."""
    space = _space(call)
    data = _batched(call, call.tensor("self"), space)
    kernel = _spread(call.get("kernel_size"), space)
    stride = _spread(call.get("stride") or kernel, space)
    padding, dilation = _spread(call.get("padding"), space), _spread(call.get("dilation"), space, 1)
    if any(d > 1 for d in dilation):
        found = _dilated_maximum(call, data, kernel, stride, padding, dilation)
    else:
        found = _pooled(call, data, "max", kernel, stride, padding, True)
    found = _unbatched(call, found)
    return found if len(call.results) == 1 else (found, None)


def _dilated_maximum(
    call: AtenCall,
    data: TensorValue,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> TensorValue:
    shape = _with_batch(call, len(kernel))
    places, taps = variables(len(kernel), "x"), variables(len(kernel), "k")
    indices = [
        f"{x} * {s} + {k} * {d} - {p}"
        for x, s, k, d, p in zip(places, stride, taps, dilation, padding, strict=True)
    ]
    return call.described(
        {"data": data},
        f"lambda n, c, {bound(places, shape[2:])}: Max(lambda {bound(taps, kernel)}: "
        f"pad({at('data', ['n', 'c', *indices])}, -inf))",
        shape=shape,
    )


def _pooled(
    call: AtenCall,
    data: TensorValue,
    kind: str,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    counts: bool,
    step: str = "",
) -> TensorValue:
    """Pool, and cut off last windows that begin behind the tensor and its padding, as PyTorch does."""
    full = bool(call.get("ceil_mode", False))
    space = len(kernel)
    wanted = _with_batch(call, space)
    extents = [
        (extent + 2 * p - k + (s - 1 if full else 0)) // s + 1
        for extent, p, k, s in zip(data.shape[2:], padding, kernel, stride, strict=True)
    ]
    shape = (*data.shape[:2], *extents)
    found = call.library(
        "Pooling",
        data,
        shape=shape,
        step="windows" if shape != wanted else step,
        kernel=tuple(kernel),
        stride=tuple(stride),
        pad=tuple(padding),
        pool_type=kind,
        pooling_convention="full" if full else "valid",
        count_include_pad=counts,
    )
    if shape == wanted:
        return found
    names = variables(len(shape))
    return call.described(
        {"data": found}, f"lambda {bound(names, wanted)}: {at('data', names)}", shape=wanted, step=step
    )


def average_pool(call: AtenCall) -> TensorValue:
    space = _space(call)
    data = _batched(call, call.tensor("self"), space)
    kernel = _spread(call.get("kernel_size"), space)
    stride = _spread(call.get("stride") or kernel, space)
    padding = _spread(call.get("padding"), space)
    counts = bool(call.get("count_include_pad", True))
    divisor = call.get("divisor_override")
    if divisor is None:
        return _unbatched(call, _pooled(call, data, "avg", kernel, stride, padding, counts))
    total = _pooled(call, data, "sum", kernel, stride, padding, counts, "sum")
    names = variables(total.rank)
    text = f"lambda {bound(names)}: {at('data', names)} / {literal(divisor)}"
    return _unbatched(call, call.described({"data": total}, text, shape=total.shape))


def _adaptive(reducer: str) -> Converter:
    """Return windows of which as many as asked for cover the tensor; they may differ in size."""

    def convert(call: AtenCall) -> TensorValue | Sequence[TensorValue | None]:
        data = call.tensor("self")
        space = _space(call)
        outer, places = variables(data.rank - space), variables(space, "x")
        taps = variables(space, "k")
        sizes = list(zip(data.shape[-space:], call.result.shape[-space:], strict=True))
        widest = [max(_stop(x, *size) - x * size[0] // size[1] for x in range(size[1])) for size in sizes]
        indices, conditions, counts = [], [], []
        for x, k, (extent, count) in zip(places, taps, sizes, strict=True):
            start, stop = f"{x} * {extent} // {count}", f"(({x} + 1) * {extent} + {count - 1}) // {count}"
            if extent % count == 0:
                indices.append(f"{x} * {extent // count} + {k}")
                counts.append(str(extent // count))
            else:
                indices.append(f"{start} + {k}")
                counts.append(f"({stop} - {start})")
                conditions.append(f"{k} < {stop} - {start}")
        element = at("data", [*outer, *indices])
        if conditions:
            empty = "0" if reducer == "Sum" else "-inf"
            element = f"where({' and '.join(conditions)}, pad({element}, {empty}), {empty})"
        body = f"{reducer}(lambda {bound(taps, widest)}: {element})"
        if reducer == "Sum":
            body += f" / ({' * '.join(counts)})"
        binders = ", ".join([*outer, bound(places, [count for _, count in sizes])])
        found = call.described({"data": data}, f"lambda {binders}: {body}")
        return found if len(call.results) == 1 else (found, None)

    return convert


def _stop(x: int, extent: int, count: int) -> int:
    return -(-(x + 1) * extent // count)


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
    **{f"max_pool{d}d": max_pool for d in (1, 2, 3)},
    **{f"max_pool{d}d_with_indices": max_pool for d in (1, 2, 3)},
    **{f"avg_pool{d}d": average_pool for d in (1, 2, 3)},
    **{f"adaptive_avg_pool{d}d": _adaptive("Sum") for d in (1, 2, 3)},
    **{f"_adaptive_avg_pool{d}d": _adaptive("Sum") for d in (2, 3)},
    **{f"adaptive_max_pool{d}d": _adaptive("Max") for d in (1, 2, 3)},
    **{f"upsample_nearest{d}d": upsample_nearest for d in (1, 2, 3)},
    "upsample_linear1d": upsample_linear,
    "upsample_bilinear2d": upsample_linear,
    "upsample_trilinear3d": upsample_linear,
    "im2col": unfold_columns,
    "col2im": fold_columns,
}
