"""Kernels attached to convolution and its gradients: boxes and regions to plain array computations.

With groups, filter `f` belongs to group `f // (filters / num_group)` and meets that group's channels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...analyzer.region import Interval
from ..kernel import KernelCall
from . import convolution
from .patches import Sizes, Windows
from .roles import cut, output_ranges, require_roles, tensor_ranges

Run = Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Geometry:
    """`stride`, `dilate` and `pad` per spatial dimension: row = place * stride + tap * dilate - pad."""

    stride: Sizes
    dilate: Sizes
    pad: Sizes
    num_group: int = 1

    def windows(self, places: list[Interval], taps: list[Interval], first_rows: list[int]) -> Windows:
        """Windows in coordinates that start at the given places, taps and rows."""
        before = tuple(
            row - (place[0] * stride + tap[0] * dilate - pad)
            for row, place, tap, stride, dilate, pad in zip(
                first_rows, places, taps, self.stride, self.dilate, self.pad, strict=True
            )
        )
        return Windows(_lengths(places), _lengths(taps), self.stride, self.dilate, before)

    def groups(self, call: KernelCall, filters: Interval) -> Iterator[tuple[Interval, int]]:
        """For every group in a range of filters: its filters in the range, and its first data channel."""
        count, channels = call.bound.shapes["weight"][:2]
        size = count // self.num_group
        for group in range(self.num_group):
            first, last = max(filters[0], group * size), min(filters[1], (group + 1) * size)
            if first < last:
                yield (first, last), group * channels


@dataclass(frozen=True, slots=True)
class Convolution(_Geometry):
    """`output[n, f, *o] = Sum(c, *t: data[n, c, *row] * weight[f, c, *t])`."""

    def __call__(self, call: KernelCall) -> Run:
        require_roles(call, "weight")
        data, out = call.inputs["data"], call.outputs[0]
        region = call.regions["data"]
        _, filters, *places = output_ranges(call)
        _, channels, *taps = tensor_ranges(call, "weight")
        windows = self.windows(places, taps, [lower for lower, _ in region[2:]])
        parts = []
        for part, offset in self.groups(call, filters):
            call.workspace.rewind()
            weight = cut(call.inputs["weight"], call.regions["weight"], [part, channels, *taps])
            meeting = _shifted(channels, offset - region[1][0])
            parts.append(
                convolution.forward(
                    data[:, meeting], weight, out[:, _shifted(part, -filters[0])], windows, call.workspace
                )
            )
        return _together(parts)


@dataclass(frozen=True, slots=True)
class ConvolutionDataGradient(_Geometry):
    """`output[n, c, *row] = Sum(f, *t: grad_0[n, f, *o] * weight[f, c, *t])`, `o` and `t` meeting there."""

    def __call__(self, call: KernelCall) -> Run:
        require_roles(call, "weight", "grad_0")
        out = call.outputs[0]
        _, channels, *rows = output_ranges(call)
        filters, _, *taps = tensor_ranges(call, "weight")
        batch, others, *places = tensor_ranges(call, "grad_0")
        filters = (max(filters[0], others[0]), min(filters[1], others[1]))
        windows = self.windows(places, taps, [lower for lower, _ in rows])
        depth = call.bound.shapes["weight"][1]
        parts, covered = [], 0
        for part, offset in self.groups(call, filters):
            call.workspace.rewind()
            first, last = max(channels[0], offset), min(channels[1], offset + depth)
            if first >= last:
                continue
            covered += last - first
            within = (first - offset, last - offset)
            weight = cut(call.inputs["weight"], call.regions["weight"], [part, within, *taps])
            gradient = cut(call.inputs["grad_0"], call.regions["grad_0"], [batch, part, *places])
            target = out[:, _shifted((first, last), -channels[0])]
            parts.append(convolution.data_gradient(gradient, weight, target, windows, call.workspace))
        return _together(parts if covered == out.shape[1] else [lambda: out.fill(0), *parts])


@dataclass(frozen=True, slots=True)
class ConvolutionWeightGradient(_Geometry):
    """`output[f, c, *t] = Sum(n, *o: grad_0[n, f, *o] * data[n, c, *row])`."""

    def __call__(self, call: KernelCall) -> Run:
        require_roles(call, "grad_0")
        out = call.outputs[0]
        region = call.regions["data"]
        filters, channels, *taps = output_ranges(call)
        batch, _, *places = tensor_ranges(call, "grad_0")
        windows = self.windows(places, taps, [lower for lower, _ in region[2:]])
        data = call.inputs["data"][_shifted(batch, -region[0][0])]
        parts = []
        for part, offset in self.groups(call, filters):
            call.workspace.rewind()
            gradient = cut(call.inputs["grad_0"], call.regions["grad_0"], [batch, part, *places])
            meeting = data[:, _shifted(channels, offset - region[1][0])]
            target = out[_shifted(part, -filters[0])]
            parts.append(convolution.weight_gradient(meeting, gradient, target, windows, call.workspace))
        return _together(parts)


def _lengths(intervals: list[Interval]) -> Sizes:
    return tuple(max(last - first, 0) for first, last in intervals)


def _shifted(interval: Interval, by: int) -> slice:
    return slice(interval[0] + by, interval[1] + by)


def _together(parts: list[Run]) -> Run:
    """One function for all groups."""
    if len(parts) == 1:
        return parts[0]

    def run() -> None:
        for part in parts:
            part()

    return run
