"""ATen operators that pool windows, and write maxima back to their places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from ...analyzer.indices.region import Shape
from .call import AtenCall, TensorValue, at, bound, literal, variables
from .converter import Converter
from .moves import viewed
from .scatters import ScatteredWrites
from .space import batched, space_of, spread, unbatched, with_batch


@dataclass(frozen=True, slots=True)
class _Windows:
    """Windows over dimensions of space, in the index notation of their elements."""

    places: Sequence[str]
    """The variables of a window's place, one for each dimension."""

    taps: Sequence[str]
    """The variables of an element inside a window."""

    widths: Sequence[int]
    """The most elements of a window in each dimension."""

    indices: Sequence[str]
    """Where an element is in the data, in terms of both."""

    inside: Sequence[str]
    """The conditions under which it belongs to the window, and to the data."""

    def element(self, outer: Sequence[str], nothing: str) -> str:
        """Return an element of a window; `nothing` for those that do not belong to it."""
        read = f"pad({at('data', [*outer, *self.indices])}, {nothing})"
        return f"where({' and '.join(self.inside)}, {read}, {nothing})" if self.inside else read

    def first(self, call: AtenCall, data: TensorValue, greatest: TensorValue) -> TensorValue:
        """Return where the greatest elements are in the flattened space of the data, the first of equal ones.

        Where none equals the greatest one, as next to NaN, it is the last place.
        """
        outer = variables(data.rank - len(self.places))
        flat = ""
        for index, extent in zip(self.indices, data.shape[-len(self.places) :], strict=True):
            flat = f"({flat}) * {extent} + {index}" if flat else index
        own = f"{self.element(outer, '-inf')} == {at('greatest', [*outer, *self.places])}"
        last = prod(data.shape[-len(self.places) :]) - 1
        hit = " and ".join([*self.inside, own])
        body = f"Min(lambda {bound(self.taps, self.widths)}: where({hit}, {flat}, {last}))"
        return call.described(
            {"data": data, "greatest": greatest},
            f"lambda {bound([*outer, *self.places], greatest.shape)}: {body}",
            shape=greatest.shape,
            kind="int",
            step="places",
        )


def _sliding(
    extents: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> _Windows:
    """Return windows at equal distances, whose elements may lie outside of data of these extents."""
    places, taps = variables(len(kernel), "x"), variables(len(kernel), "k")
    indices = [
        f"{x} * {s} + {k} * {d} - {p}"
        for x, s, k, d, p in zip(places, stride, taps, dilation, padding, strict=True)
    ]
    inside = [f"{index} >= 0 and {index} < {extent}" for index, extent in zip(indices, extents, strict=True)]
    return _Windows(places, taps, kernel, indices, inside)


def max_pool(call: AtenCall) -> TensorValue | Sequence[TensorValue]:
    """Apply the library's pooling; with dilation a description of its own. Places of maxima come after."""
    space = space_of(call)
    data = batched(call, call.tensor("self"), space)
    kernel = spread(call.get("kernel_size"), space)
    stride = spread(call.get("stride") or kernel, space)
    padding, dilation = spread(call.get("padding"), space), spread(call.get("dilation"), space, 1)
    windows = _sliding(data.shape[2:], kernel, stride, padding, dilation)
    if any(d > 1 for d in dilation):
        found = _greatest(call, data, windows, with_batch(call, space))
    else:
        found = _pooled(call, data, "max", kernel, stride, padding, True)
    if len(call.results) == 1:
        return unbatched(call, found)
    return unbatched(call, found), unbatched(call, windows.first(call, data, found))


def _greatest(call: AtenCall, data: TensorValue, windows: _Windows, shape: Shape) -> TensorValue:
    outer = variables(data.rank - len(windows.places))
    element = f"pad({at('data', [*outer, *windows.indices])}, -inf)"
    body = f"Max(lambda {bound(windows.taps, windows.widths)}: {element})"
    binders = bound([*outer, *windows.places], shape)
    return call.described({"data": data}, f"lambda {binders}: {body}", shape=shape)


def max_unpool(call: AtenCall) -> TensorValue:
    """Write maxima back to their places. A place that is written twice has the mean of what is written."""
    space = space_of(call)
    data, index = (batched(call, call.tensor(key), space) for key in ("self", "indices"))
    batch, channels, *counts = data.shape
    size = prod(call.result.shape[-space:])
    values, places = (
        viewed(call, each, (batch, channels, prod(counts)), step)
        for each, step in ((data, "row"), (index, "at"))
    )
    names, shape = ("n", "c", "i"), (batch, channels, size)
    writes = ScatteredWrites(f"k={prod(counts)}", "index[n, c, k] == i", "data[n, c, k]", (0, 1, 2))
    count, here = writes.counted(names, shape)
    stage, total = writes.summed(names, shape)
    found = call.described(
        {"data": values, "index": places},
        f"lambda {bound(names, shape)}: {total} / maximum({here}, 1)",
        stages=[count, stage],
        shape=shape,
        step="written",
    )
    return viewed(call, found, call.result.shape)


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
    wanted = with_batch(call, space)
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
    space = space_of(call)
    data = batched(call, call.tensor("self"), space)
    kernel = spread(call.get("kernel_size"), space)
    stride = spread(call.get("stride") or kernel, space)
    padding = spread(call.get("padding"), space)
    counts = bool(call.get("count_include_pad", True))
    divisor = call.get("divisor_override")
    if divisor is None:
        return unbatched(call, _pooled(call, data, "avg", kernel, stride, padding, counts))
    total = _pooled(call, data, "sum", kernel, stride, padding, counts, "sum")
    names = variables(total.rank)
    text = f"lambda {bound(names)}: {at('data', names)} / {literal(divisor)}"
    return unbatched(call, call.described({"data": total}, text, shape=total.shape))


def _adaptive(reducer: str) -> Converter:
    """Return windows of which as many as asked for cover the tensor; they may differ in size."""

    def convert(call: AtenCall) -> TensorValue | Sequence[TensorValue]:
        data = call.tensor("self")
        space = space_of(call)
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
        windows = _Windows(places, taps, widest, indices, conditions)
        element = at("data", [*outer, *indices])
        if conditions:
            element = windows.element(outer, "0" if reducer == "Sum" else "-inf")
        body = f"{reducer}(lambda {bound(taps, widest)}: {element})"
        if reducer == "Sum":
            body += f" / ({' * '.join(counts)})"
        binders = ", ".join([*outer, bound(places, [count for _, count in sizes])])
        found = call.described({"data": data}, f"lambda {binders}: {body}")
        return found if len(call.results) == 1 else (found, windows.first(call, data, found))

    return convert


def _stop(x: int, extent: int, count: int) -> int:
    return -(-(x + 1) * extent // count)


CONVERTERS: Mapping[str, Converter] = {
    **{f"max_pool{d}d": max_pool for d in (1, 2, 3)},
    **{f"max_pool{d}d_with_indices": max_pool for d in (1, 2, 3)},
    **{f"max_unpool{d}d": max_unpool for d in (2, 3)},
    **{f"avg_pool{d}d": average_pool for d in (1, 2, 3)},
    **{f"adaptive_avg_pool{d}d": _adaptive("Sum") for d in (1, 2, 3)},
    **{f"_adaptive_avg_pool{d}d": _adaptive("Sum") for d in (2, 3)},
    **{f"adaptive_max_pool{d}d": _adaptive("Max") for d in (1, 2, 3)},
}
