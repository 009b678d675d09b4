"""Kernels with planted bugs, and which check catches each: A, B, C, or several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.analyzer.audit.finding import Check
from tofu.operators.kernels.kernel import KernelCall

windows = np.lib.stride_tricks.sliding_window_view
Run = Callable[[], None]

CONV = """
def conv1d(data, filters):
    return lambda b, co, x: Sum(lambda ci, dx: data[b, ci, x + dx] * filters[ci, co, dx])
"""
SAME = """
def same(data, filters):
    return lambda x=data.shape[0]: Sum(lambda d: pad(data[x + d - 1], 0) * filters[d])
"""
MATMUL = "def matmul(a, b):\n    return lambda i, j: Sum(lambda k: a[i, k] * b[k, j])"
MEAN = "def mean(data):\n    return lambda j: Sum(lambda i: data[i, j]) / data.shape[0]"
RELU = "def relu(data):\n    return lambda i, j: maximum(data[i, j], 0)"
EVEN = "def even(data):\n    return lambda x=data.shape[0] // 2: data[2 * x]"
TAKE = "def take(ids, table):\n    return lambda n, j: table[ids[n], j]"
POOL = "def pool(data):\n    return lambda x=data.shape[0] // 3: Max(lambda d=2: data[3 * x + d])"
PLACE = "def place(data):\n    return lambda i: data[i] * i"
WEIGH = "def weigh(data):\n    return lambda i: Sum(lambda j: data[i, j] * j)"
ROWS = "def rows(data):\n    return lambda i: Sum(lambda j: data[i, j])"
PLUS = "def plus(data):\n    return lambda i: Sum(lambda j: data[i, j] + 1 / data.shape[1])"
SOFT = "def soft(data):\n    return lambda n, c: exp(data[n, c]) / Sum(lambda k: exp(data[n, k]))"
BACK = "def back(data):\n    return lambda i=data.shape[0]: data[data.shape[0] - 1 - i]"
LOWER = "def lower(data):\n    return lambda i, j: where(i >= j, data[i, j], 0)"
LESS = "def less(a, b):\n    return lambda i: a[i] - b[i]"
REST = "def rest(data):\n    return lambda i: data[i] % 3"
BIAS = "def bias(data, shift):\n    return lambda i, j: data[i, j] + shift[j]"
BLUR = "def blur(data):\n    return lambda x=data.shape[0] - 2: Sum(lambda d=3: data[x + d])"
BOTH = "def both(data):\n    return (lambda i: data[i] + 1, lambda i: data[i] * 2)"
LARGEST = "def largest(data):\n    return lambda i: Max(lambda j: data[i, j])"

SHAPES = {
    CONV: {"data": (3, 2, 7), "filters": (2, 3, 3)},
    SAME: {"data": (7,), "filters": (3,)},
    MATMUL: {"a": (4, 4), "b": (4, 4)},
    MEAN: {"data": (6, 3)},
    RELU: {"data": (4, 3)},
    EVEN: {"data": (8,)},
    TAKE: {"ids": (4,), "table": (5, 4)},
    POOL: {"data": (12,)},
    PLACE: {"data": (6,)},
    WEIGH: {"data": (3, 4)},
    ROWS: {"data": (3, 4)},
    PLUS: {"data": (3, 4)},
    SOFT: {"data": (4, 3)},
    BACK: {"data": (6,)},
    LOWER: {"data": (4, 4)},
    LESS: {"a": (5,), "b": (5,)},
    REST: {"data": (6,)},
    BIAS: {"data": (4, 3), "shift": (3,)},
    BLUR: {"data": (9,)},
    BOTH: {"data": (5,)},
    LARGEST: {"data": (3, 4)},
}


def convolve(data: Any, filters: Any) -> Any:
    return np.einsum("bixk,iok->box", windows(data, filters.shape[2], axis=2), filters)


def softmax(data: Any) -> Any:
    power = np.exp(data)
    return power / power.sum(axis=1, keepdims=True)


def contract(compute: Callable[[KernelCall], Any]) -> Callable[[KernelCall], Run]:
    """A kernel of Tofu's contract that writes what a function of the call gives."""

    def kernel(call: KernelCall) -> Run:
        def run() -> None:
            call.outputs[0][...] = compute(call)

        return run

    return kernel


def same_part(call: KernelCall) -> Any:
    """The right way to pad: zeros outside of the tensor, the halo inside."""
    first, last = call.box["x"]
    low, high = call.box["d"]
    padded = np.zeros(last - first + high - low - 1)
    start = call.regions["data"][0][0] - (first + low - 1)
    padded[start : start + len(call.inputs["data"])] = call.inputs["data"]
    return windows(padded, high - low) @ call.inputs["filters"]


CORRECT: list[tuple[str, Callable[..., Any]]] = [
    (CONV, convolve),
    (SAME, contract(same_part)),
    (MATMUL, np.matmul),
    (MEAN, contract(lambda call: call.inputs["data"].sum(axis=0) / call.bound.shapes["data"][0])),
    (RELU, lambda data: np.maximum(data, 0)),
    (EVEN, lambda data: data[::2].copy()),
    (TAKE, lambda ids, table: table[ids.astype(int)]),
    (
        POOL,
        contract(
            lambda call: np.array(
                [
                    call.inputs["data"][i * 3 :][: call.box["d"][1] - call.box["d"][0]].max()
                    for i in range(len(call.outputs[0]))
                ]
            )
        ),
    ),
    (PLACE, contract(lambda call: call.inputs["data"] * np.arange(*call.box["i"]))),
    (WEIGH, contract(lambda call: call.inputs["data"] @ np.arange(*call.box["j"]))),
    (ROWS, lambda data: data.sum(axis=1)),
    (SOFT, softmax),
    (BACK, lambda data: data[::-1]),
    (LESS, np.subtract),
    (BIAS, lambda data, shift: data + shift),
    (BOTH, lambda data: (data + 1, data * 2)),
    (LARGEST, lambda data: data.max(axis=1)),
]


def doubled(data: Any, filters: Any) -> Any:
    return 2 * convolve(data, filters)


def only_first_channel(data: Any, filters: Any) -> Any:
    return convolve(data[:, :1] + 0 * data[:, :1], filters[:1])


def accumulates(call: KernelCall) -> Run:
    def run() -> None:
        call.outputs[0][...] += call.inputs["data"].sum(axis=1)

    return run


def computes_while_preparing(call: KernelCall) -> Run:
    total = call.inputs["data"].sum(axis=1)

    def run() -> None:
        call.outputs[0][...] = total

    return run


def leaves_the_last_out(call: KernelCall) -> Run:
    def run() -> None:
        call.outputs[0][:-1] = call.inputs["data"].sum(axis=1)[:-1]

    return run


def raises(data: Any) -> Any:
    raise ValueError("no such algorithm")


def looks_beside(call: KernelCall) -> Run:
    def run() -> None:
        data = call.inputs["data"]
        longer = np.lib.stride_tricks.as_strided(data, (len(data) + 1,), data.strides)
        call.outputs[0][...] = data * np.arange(*call.box["i"]) + 0 * longer[1:]

    return run


def writes_beside(call: KernelCall) -> Run:
    def run() -> None:
        out = call.outputs[0]
        rounded_up = np.lib.stride_tricks.as_strided(out, (len(out) + 1,), out.strides)
        rounded_up[-1] = 0
        out[...] = call.inputs["data"] * np.arange(*call.box["i"])

    return run


def overwrites_its_input(data: Any) -> Any:
    np.maximum(data, 0, out=data)
    return data.copy()


def by_prefix_sums(data: Any) -> Any:
    total = np.concatenate(([0.0], np.cumsum(data)))
    return total[3:] - total[:-3]


def by_fourier(data: Any) -> Any:
    spectrum = np.fft.rfft(data) * np.conj(np.fft.rfft(np.ones(3), len(data)))
    return np.fft.irfft(spectrum, len(data))[: len(data) - 2]


def rows_by_prefix_sums(data: Any) -> Any:
    total = np.concatenate(([0.0], np.cumsum(data.ravel())))[:: data.shape[1]]
    return total[1:] - total[:-1]


def centred(a: Any, b: Any) -> Any:
    middle = a.mean(axis=0)
    return (a - middle) @ b + middle @ b


def squeezed(data: Any) -> Any:
    return np.squeeze(softmax(data))


def small_batches_apart(data: Any) -> Any:
    return softmax(data) if len(data) > 2 else np.full(data.shape, 1 / data.shape[1])


def pads_at_cuts(call: KernelCall) -> Run:
    def run() -> None:
        first, last = call.box["x"]
        data = call.inputs["data"][(first > 0) : (first > 0) + last - first]
        taps = call.inputs["filters"]
        padded = np.pad(data, (1 - call.box["d"][0] if call.box["d"][0] < 2 else 0, 2))
        call.outputs[0][...] = windows(padded, len(taps))[: last - first] @ taps

    return run


def offset_twice(call: KernelCall) -> Any:
    first, last = call.box["j"]
    table = call.inputs["table"][:, first:last] if call.box["n"][0] == 0 else call.inputs["table"]
    return table[call.inputs["ids"].astype(int)][:, : last - first]


def whole_shape_in_mind(call: KernelCall) -> Any:
    columns = call.bound.shapes["data"][1]
    return np.array([sum(row[j] for j in range(columns)) for row in call.inputs["data"]])


BUGS: dict[str, tuple[str, Callable[..., Any], str]] = {
    "convolution scaled": (CONV, doubled, "A"),
    "convolution with a flipped filter": (CONV, lambda d, f: convolve(d, f[:, :, ::-1]), "AC"),
    "convolution with channels exchanged": (CONV, lambda d, f: convolve(d[:, ::-1], f), "AC"),
    "convolution of the first channel": (CONV, only_first_channel, "AC"),
    "convolution with rows reversed": (CONV, lambda d, f: convolve(d, f)[:, :, ::-1], "ABC"),
    "matmul with a transposed factor": (MATMUL, lambda a, b: a @ b.T, "ABC"),
    "matmul transposed": (MATMUL, lambda a, b: (a @ b).T, "ABC"),
    "matmul in the wrong order": (MATMUL, lambda a, b: b @ a, "ABC"),
    "matmul of absolute values": (MATMUL, lambda a, b: np.abs(a) @ b, "A"),
    "mean without division": (MEAN, lambda d: d.sum(axis=0), "A"),
    "relu that leaks": (RELU, lambda d: np.where(d > 0, d, 0.1 * d), "A"),
    "relu that is abs": (RELU, np.abs, "A"),
    "even places that are odd": (EVEN, lambda d: d[1::2], "AB"),
    "reversal forgotten": (BACK, lambda d: d.copy(), "ABC"),
    "difference exchanged": (LESS, lambda a, b: b - a, "A"),
    "remainder with the wrong sign": (REST, lambda d: np.fmod(d, 3), "A"),
    "bias ignored": (BIAS, lambda d, s: d.copy(), "A"),
    "bias along the wrong axis": (BIAS, lambda d, s: d + s[0], "ABC"),
    "largest instead of smallest": (LARGEST, lambda d: d.min(axis=1), "AC"),
    "pooling by the mean": (POOL, lambda d: windows(d, 2)[::3].mean(axis=1), "A"),
    "outputs exchanged": (BOTH, lambda d: (d * 2, d + 1), "A"),
    "an output too few": (BOTH, lambda d: d + 1, "A"),
    "an axis too many": (ROWS, lambda d: d.sum(axis=1, keepdims=True), "A"),
    "raises": (ROWS, raises, "A"),
    "accumulates into garbage": (ROWS, accumulates, "A"),
    "computes while preparing": (ROWS, computes_while_preparing, "A"),
    "leaves the last element out": (ROWS, leaves_the_last_out, "AC"),
    "hidden batch statistic": (RELU, lambda d: np.maximum(d, 0) + 0 * d.mean(axis=0), "B"),
    "hidden global maximum": (SOFT, lambda d: softmax(d - d.max()), "B"),
    "zero times what is between": (EVEN, lambda d: d[::2] + 0 * d[1::2], "B"),
    "zero times the whole table": (TAKE, lambda i, t: t[i.astype(int)] + 0 * t.sum(), "B"),
    "zero times the extra of a window": (POOL, lambda d: windows(d, 2)[::3].max(axis=1) + 0 * d[2::3], "B"),
    "zero times another batch": (CONV, lambda d, f: convolve(d, f) + 0 * d[:1, :1, :1], "B"),
    "zero times another column": (BIAS, lambda d, s: d + s + 0 * s[::-1], "B"),
    "centred before multiplying": (MATMUL, centred, "B"),
    "windows by prefix sums": (BLUR, by_prefix_sums, "B"),
    "windows by Fourier transform": (BLUR, by_fourier, "B"),
    "rows by prefix sums": (ROWS, rows_by_prefix_sums, "B"),
    "looks next to its input": (PLACE, looks_beside, "B"),
    "writes outside its output": (PLACE, writes_beside, "B"),
    "overwrites its input": (RELU, overwrites_its_input, "B"),
    "mean over the local batch": (MEAN, lambda d: d.mean(axis=0), "C"),
    "mean over the local batch, told the whole": (
        MEAN,
        contract(lambda call: call.inputs["data"].mean(axis=0)),
        "C",
    ),
    "+ 1 after the sum": (PLUS, lambda d: d.sum(axis=1) + 1, "C"),
    "places that start at zero": (PLACE, lambda d: d * np.arange(len(d)), "C"),
    "places that start at zero, told the offset": (
        PLACE,
        contract(lambda call: call.inputs["data"] * np.arange(len(call.inputs["data"]))),
        "C",
    ),
    "weights that start at zero": (WEIGH, lambda d: d @ np.arange(d.shape[1]), "C"),
    "a triangle that starts at zero": (LOWER, np.tril, "C"),
    "axes of one squeezed away": (SOFT, squeezed, "C"),
    "shape-dependent mean": (SOFT, small_batches_apart, "C"),
    "padding at cuts": (SAME, pads_at_cuts, "C"),
    "offset twice": (TAKE, contract(offset_twice), "C"),
    "whole shape in mind": (ROWS, contract(whole_shape_in_mind), "C"),
}


def caught_by(text: str, kernel: Callable[..., Any]) -> str:
    report = tofu.audit(tofu.parse(text), kernel, SHAPES[text])
    checks = {finding.check for finding in report.refuted}
    assert checks <= {Check.WHOLE, Check.FOOTPRINT, Check.REPLAY}, "the strategies are right"
    assert all(finding.counterexample is not None for finding in report.refuted)
    return "".join(sorted(check.value[0] for check in checks))


@pytest.mark.parametrize("name", BUGS)
def test_every_planted_bug_is_caught(name: str) -> None:
    text, kernel, checks = BUGS[name]
    assert caught_by(text, kernel) == checks


@pytest.mark.parametrize(("text", "kernel"), CORRECT, ids=[t.strip().split("(")[0][4:] for t, _ in CORRECT])
def test_correct_kernels_pass(text: str, kernel: Callable[..., Any]) -> None:
    assert caught_by(text, kernel) == ""


def test_each_check_alone_catches_what_the_others_miss() -> None:
    assert len(BUGS) >= 50
    for check in "ABC":
        assert sum(checks == check for _, _, checks in BUGS.values()) >= 2
