"""Derived kernels compared with what one would write by hand, one BLAS thread, interleaved in one process.

python -m benchmarks.derived_kernels [--runs 31] [--save FILE]
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.machine import described
from benchmarks.record import keep
from tofu import tdl
from tofu.analyzer.indices.region import to_region
from tofu.operators import get
from tofu.operators.derive import derive
from tofu.operators.kernels.kernel import Array, KernelCall
from tofu.operators.stages.bound_operator import BoundOperator
from tofu.operators.stages.stage import derived

Run = Callable[[], object]
Shapes = dict[str, tuple[int, ...]]

CHAIN = "def chain(a, b):\n    return lambda i, j: sqrt(abs(a[i, j] * b[i, j] - a[i, j])) + b[i, j]"
MATMUL = "def matmul(a, b):\n    return lambda i, j: Sum(lambda k: a[i, k] * b[k, j])"
BIAS = "def bias(a):\n    return lambda j: Sum(lambda i: a[i, j])"
CONVOLUTION = """def convolution(data, weight):
    return lambda n, f, y=data.shape[2] // {stride}, x=data.shape[3] // {stride}: Sum(
        lambda c, v, u: pad(data[n, c, y * {stride} + v - 1, x * {stride} + u - 1], 0) * weight[f, c, v, u]
    )"""


@dataclass(frozen=True, slots=True)
class Contest:
    """Two functions that compute the same."""

    name: str
    """The computation, in a word."""

    kernel: Run
    """Runs the derived kernel."""

    other: Run
    """Runs the code that is compared with it."""

    against: str
    """That code, in words."""

    prepare_seconds: float
    """The median time in which the kernel is derived."""


@dataclass(frozen=True, slots=True)
class Result:
    """The medians of a contest."""

    name: str
    """The computation, in a word."""

    against: str
    """The code that the kernel was compared with, in words."""

    kernel_us: float
    """The kernel's time, in microseconds."""

    other_us: float
    """The other code's time, in microseconds."""

    ratio: float
    """The median of the runs' ratios, kernel to other."""

    prepare_us: float
    """The time in which the kernel is derived, in microseconds."""


def bound_to(text: str, shapes: Shapes) -> BoundOperator:
    return derived(tdl.parse(text)).bind(shapes)


def call_of(bound: BoundOperator) -> KernelCall:
    """Return a call of the whole operator on random float32 tensors."""
    random = np.random.default_rng(0)
    regions = {
        name: to_region(boxes[0])
        for name, boxes in bound.input_regions(bound.full_box[None]).items()
        if name in bound.reads
    }
    inputs: dict[str, Array] = {
        name: random.random([upper - lower for lower, upper in region], dtype=np.float32)
        for name, region in regions.items()
    }
    outputs = tuple(np.empty(shape, np.float32) for shape in bound.output_shapes)
    box = {name: (0, extent) for name, extent in bound.extents.items()}
    return KernelCall(bound, box, inputs, regions, outputs)


def contest(name: str, call: KernelCall, against: str, other: Callable[[KernelCall], Run]) -> Contest:
    """Derived kernel against another; raises AssertionError where their results differ."""
    twin = call_of(call.bound)
    seconds = []
    for _ in range(5):
        started = perf_counter()
        kernel = derive(call)
        seconds.append(perf_counter() - started)
    rival = other(twin)
    kernel()
    rival()
    np.testing.assert_allclose(call.outputs[0], twin.outputs[0], rtol=1e-3, atol=1e-3)
    return Contest(name, kernel, rival, against, statistics.median(seconds))


def by_hand(call: KernelCall) -> Run:
    a, b, out = call.inputs["a"], call.inputs["b"], call.outputs[0]

    def run() -> None:
        np.multiply(a, b, out=out)
        np.subtract(out, a, out=out)
        np.abs(out, out=out)
        np.sqrt(out, out=out)
        np.add(out, b, out=out)

    return run


def matmul(call: KernelCall) -> Run:
    return lambda: np.matmul(call.inputs["a"], call.inputs["b"], out=call.outputs[0])


def column_sums(call: KernelCall) -> Run:
    return lambda: np.add.reduce(call.inputs["a"], axis=0, out=call.outputs[0])


def contests() -> Iterator[Contest]:
    for shape in ((4, 4), (64, 512), (1024, 1024), (4096, 2048)):
        chain = bound_to(CHAIN, {"a": shape, "b": shape})
        yield contest(f"five operations {shape}", call_of(chain), "NumPy with out=", by_hand)
    for size in (64, 256, 1024):
        product = bound_to(MATMUL, {"a": (size, size), "b": (size, size)})
        yield contest(f"product of matrices {size}", call_of(product), "np.matmul", matmul)
    yield contest(
        "column sums (4096, 512)", call_of(bound_to(BIAS, {"a": (4096, 512)})), "np.add", column_sums
    )
    for stride in (1, 2):
        yield from convolutions(stride)


def convolutions(stride: int) -> Iterator[Contest]:
    """Yield a convolution written in TDL and its gradients, against the library's attached kernels."""
    shapes: Shapes = {"data": (8, 32, 28, 28), "weight": (64, 32, 3, 3)}
    attributes = {
        "kernel": (3, 3),
        "num_filter": 64,
        "pad": (1, 1),
        "stride": (stride, stride),
        "no_bias": True,
    }
    (attached,) = get("Convolution").stages(attributes, shapes)
    written = derived(tdl.parse(CONVOLUTION.format(stride=stride)))
    places = written.bind(shapes).output_shapes[0]
    pairs = [(attached, written, "forward")]
    pairs += [(attached.adjoint(name)[0], written.adjoint(name)[0], name) for name in shapes]
    for rival, ours, what in pairs:
        known = {**shapes, "grad_0": places}
        other = rival.bind({name: known[name] for name in rival.inputs})
        call = call_of(ours.bind({name: known[name] for name in ours.inputs}))

        def attached_kernel(twin: KernelCall, other: BoundOperator = other) -> Run:
            return other.prepare(
                KernelCall(
                    other,
                    {name: (0, extent) for name, extent in other.extents.items()},
                    twin.inputs,
                    twin.regions,
                    twin.outputs,
                )
            )

        yield contest(f"convolution, stride {stride}, {what}", call, "attached kernel", attached_kernel)


def measured(contest: Contest, runs: int) -> Result:
    kernel, other = [], []
    for _ in range(runs):
        for run, seconds in ((contest.kernel, kernel), (contest.other, other)):
            started = perf_counter()
            run()
            seconds.append(perf_counter() - started)
    ratio = statistics.median(a / b for a, b in zip(kernel, other, strict=True))
    times = [1e6 * statistics.median(seconds) for seconds in (kernel, other)]
    return Result(contest.name, contest.against, *times, ratio, 1e6 * contest.prepare_seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time derived kernels compared with hand-written ones.")
    parser.add_argument("--runs", type=int, default=31)
    parser.add_argument("--save", type=Path, help="also write the results to this file")
    arguments = parser.parse_args()
    print(f"{'kernel':42}{'against':18}{'derived us':>11}{'other us':>10}{'ratio':>7}{'prepare us':>12}")
    results = []
    with threadpool_limits(1):
        for entry in contests():
            result = measured(entry, arguments.runs)
            results.append(asdict(result))
            print(
                f"{result.name:42}{result.against:18}{result.kernel_us:11.1f}{result.other_us:10.1f}"
                f"{result.ratio:7.2f}{result.prepare_us:12.0f}"
            )
    keep({**described(), "results": results}, arguments.save)


if __name__ == "__main__":
    main()
