"""Kernels attached to the gradients of pooling: boxes and regions to plain array computations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...analyzer.region import Interval
from ...tdl import ast, walk
from ..kernel import KernelCall
from . import pooling
from .patches import Sizes, Windows
from .roles import cut, output_ranges, tensor_ranges, unfit

Run = Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Pooling:
    """Row = place * stride + tap - pad, `kernel` taps per spatial dimension."""

    kernel: Sizes
    stride: Sizes
    pad: Sizes

    def windows(self, call: KernelCall) -> tuple[Windows, list[Interval]]:
        """Windows in the coordinates of the box, and the range of `grad_0` that they start from."""
        rows, ranges = output_ranges(call), tensor_ranges(call, "grad_0")
        taps, places = self.taps(call), ranges[2:]
        before = tuple(
            row[0] - (place[0] * stride + tap[0] - pad)
            for row, place, tap, stride, pad in zip(
                rows[2:], places, taps, self.stride, self.pad, strict=True
            )
        )
        lengths = tuple(upper - lower for lower, upper in places)
        counts = tuple(max(upper - lower, 0) for lower, upper in taps)
        return Windows(lengths, counts, self.stride, (1,) * len(taps), before), ranges

    def taps(self, call: KernelCall) -> list[Interval]:
        """The box's taps per dimension: all of the kernel where no reduction variable runs over them.

        Raises `OperatorError` where a variable is neither an output's nor one dimension's tap.
        """
        (output,) = call.bound.description.outputs
        known = {binder.name for binder in output.variables}
        intervals: list[Interval] = [(0, size) for size in self.kernel]
        for node in walk(output.body):
            if isinstance(node, ast.Element) and node.tensor == "grad_0":
                for dimension, index in enumerate(node.indices[2:]):
                    names = {part.name for part in walk(index) if isinstance(part, ast.Variable)}
                    for name in names & call.box.keys() - known:
                        known.add(name)
                        intervals[dimension] = call.box[name]
        if unknown := call.box.keys() - known:
            raise unfit(call, f"has index variables {', '.join(unknown)} that are no window's")
        return intervals


@dataclass(frozen=True, slots=True)
class MaximumPoolingGradient(_Pooling):
    """`output[n, c, *row]`: the sum of `grad_0` over the windows whose `output_0` equals `data` there."""

    def __call__(self, call: KernelCall) -> Run:
        windows, ranges = self.windows(call)
        data = cut(call.inputs["data"], call.regions["data"], output_ranges(call))
        maxima = cut(call.inputs["output_0"], call.regions["output_0"], ranges)
        gradient = cut(call.inputs["grad_0"], call.regions["grad_0"], ranges)
        return pooling.maximum_gradient(data, maxima, gradient, call.outputs[0], windows)


@dataclass(frozen=True, slots=True)
class SumPoolingGradient(_Pooling):
    """`output[n, c, *row]`: the sum of `grad_0 / divisor` over the windows that hold the row."""

    divisor: int = 1

    def __call__(self, call: KernelCall) -> Run:
        windows, ranges = self.windows(call)
        gradient = cut(call.inputs["grad_0"], call.regions["grad_0"], ranges)
        return pooling.sum_gradient(gradient, call.outputs[0], windows, self.divisor)
