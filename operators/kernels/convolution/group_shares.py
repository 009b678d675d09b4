"""One call of a convolution, group by group: views of the three tensors, and the places of windows.

With groups, filter `f` belongs to group `f // (filters / num_group)` and meets that group's channels.
Views are cut by slices alone, so a call may hold arrays of the host or views of a device's memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ....analyzer.indices.region import Interval
from ..kernel import Array, KernelCall
from .patches import Sizes, Windows
from .roles import cut, output_ranges, require_roles, tensor_ranges


@dataclass(frozen=True, slots=True)
class GroupShare:
    """One group of a convolution. One of the three arrays is computed from the other two."""

    data: Array
    """The images, `[image, channel, *row]`."""

    weight: Array
    """The filters, `[filter, channel, *tap]`."""

    output: Array
    """The results, `[image, filter, *place]`."""

    windows: Windows
    """Which row a place and a tap meet."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """The attributes of a convolution: row = place * stride + tap * dilate - pad in each spatial
    dimension."""

    stride: Sizes
    """The distance between the windows of neighbouring places, in rows."""

    dilate: Sizes
    """The distance between neighbouring taps of a window, in rows."""

    pad: Sizes
    """The rows of zeros before and after the data."""

    num_group: int = 1
    """The number of groups into which filters and channels fall."""

    def output_parts(self, call: KernelCall) -> tuple[GroupShare, ...]:
        """Return all of `output[n, f, *o] = Sum(c, *t: data[n, c, *row] * weight[f, c, *t])`."""
        require_roles(call, "weight")
        out, region = call.outputs[0], call.regions["data"]
        batch, filters, *places = output_ranges(call)
        _, channels, *taps = tensor_ranges(call, "weight")
        windows = self._windows(places, taps, [lower for lower, _ in region[2:]])
        parts = []
        for part, offset in self._groups(call, filters):
            weight = cut(call.inputs["weight"], call.regions["weight"], [part, channels, *taps])
            meeting = (channels[0] + offset, channels[1] + offset)
            data = cut(call.inputs["data"], region, [batch, meeting, *region[2:]])
            parts.append(GroupShare(data, weight, out[:, _shifted(part, -filters[0])], windows))
        return tuple(parts)

    def data_parts(self, call: KernelCall) -> tuple[GroupShare, ...]:
        """`output[n, c, *row] = Sum(f, *t: grad_0[n, f, *o] * weight[f, c, *t])`, `o` and `t` meeting there.

        Channels of the box that no filter of the box meets belong to no part; their gradient is zero. With
        one filter in each group, the channel within the group is summed over instead of the filter.
        """
        require_roles(call, "weight", "grad_0")
        out = call.outputs[0]
        _, channels, *rows = output_ranges(call)
        filters, depths, *taps = tensor_ranges(call, "weight")
        batch, others, *places = tensor_ranges(call, "grad_0")
        filters = (max(filters[0], others[0]), min(filters[1], others[1]))
        windows = self._windows(places, taps, [lower for lower, _ in rows])
        parts = []
        for part, offset in self._groups(call, filters):
            first, last = max(channels[0], offset + depths[0]), min(channels[1], offset + depths[1])
            if first >= last:
                continue
            within = (first - offset, last - offset)
            weight = cut(call.inputs["weight"], call.regions["weight"], [part, within, *taps])
            gradient = cut(call.inputs["grad_0"], call.regions["grad_0"], [batch, part, *places])
            parts.append(GroupShare(out[:, _shifted((first, last), -channels[0])], weight, gradient, windows))
        return tuple(parts)

    def weight_parts(self, call: KernelCall) -> tuple[GroupShare, ...]:
        """Return all of `output[f, c, *t] = Sum(n, *o: grad_0[n, f, *o] * data[n, c, *row])`."""
        require_roles(call, "grad_0")
        out, region = call.outputs[0], call.regions["data"]
        filters, channels, *taps = output_ranges(call)
        batch, _, *places = tensor_ranges(call, "grad_0")
        windows = self._windows(places, taps, [lower for lower, _ in region[2:]])
        parts = []
        for part, offset in self._groups(call, filters):
            gradient = cut(call.inputs["grad_0"], call.regions["grad_0"], [batch, part, *places])
            meeting = (channels[0] + offset, channels[1] + offset)
            data = cut(call.inputs["data"], region, [batch, meeting, *region[2:]])
            parts.append(GroupShare(data, out[(_shifted(part, -filters[0]),)], gradient, windows))
        return tuple(parts)

    def _windows(self, places: list[Interval], taps: list[Interval], first_rows: list[int]) -> Windows:
        """Return windows in coordinates that start at the given places, taps and rows."""
        before = tuple(
            row - (place[0] * stride + tap[0] * dilate - pad)
            for row, place, tap, stride, dilate, pad in zip(
                first_rows, places, taps, self.stride, self.dilate, self.pad, strict=True
            )
        )
        return Windows(_lengths(places), _lengths(taps), self.stride, self.dilate, before)

    def _groups(self, call: KernelCall, filters: Interval) -> Iterator[tuple[Interval, int]]:
        """List the groups in a range of filters: their filters in the range, and their first data channel."""
        count, channels = call.bound.shapes["weight"][:2]
        size = count // self.num_group
        for group in range(self.num_group):
            first, last = max(filters[0], group * size), min(filters[1], (group + 1) * size)
            if first < last:
                yield (first, last), group * channels


def _lengths(intervals: list[Interval]) -> Sizes:
    return tuple(max(last - first, 0) for first, last in intervals)


def _shifted(interval: Interval, by: int) -> slice:
    return slice(interval[0] + by, interval[1] + by)
