"""Descriptions whose kernels are compared with the interpreter, and calls of them on framed arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tofu import tdl
from tofu.analyzer.indices.region import Interval, Shape, to_region
from tofu.operators.derive import derive
from tofu.operators.kernels.kernel import Array, KernelCall, view_of
from tofu.operators.stages.bound_operator import BoundOperator, boxed
from tofu.operators.stages.stage import derived

CASES: Mapping[str, tuple[str, dict[str, Shape]]] = {
    "chain": (
        "def chain(a, b):\n    return lambda i, j: sqrt(abs(a[i, j] * b[i, j] - a[i, j])) + b[i, j] ** 3",
        {"a": (13, 37), "b": (13, 37)},
    ),
    "broadcast": (
        "def broadcast(x, scale):\n    return lambda n, c, y, z: x[n, c, y, z] * rsqrt(square(scale[c]) + 1)",
        {"x": (3, 5, 4, 6), "scale": (5,)},
    ),
    "functions": (
        "def functions(x):\n    return lambda i, j: tanh(x[i, j]) + sigmoid(x[i, j]) * erf(x[i, j]) "
        "- exp(x[i, j]) + softplus(x[i, j]) * log1p(abs(x[i, j]))",
        {"x": (9, 70)},
    ),
    "softmax": (
        "def softmax(x):\n    return lambda i, j: exp(x[i, j] - Max(lambda k: x[i, k])) / "
        "Sum(lambda m: exp(x[i, m] - Max(lambda n: x[i, n])))",
        {"x": (6, 77)},
    ),
    "normal": (
        "def normal(x, gamma):\n"
        "    return lambda i, j: gamma[j] * (x[i, j] - Sum(lambda k: x[i, k]) / x.shape[1])",
        {"x": (6, 77), "gamma": (77,)},
    ),
    "moments": (
        "def moments(x, mean):\n"
        "    return lambda c: Sum(lambda n, y, z: x[n, c, y, z] * (x[n, c, y, z] - mean[c]))",
        {"x": (3, 5, 7, 9), "mean": (5,)},
    ),
    "columns": (
        "def columns(x, m):\n"
        "    return lambda j: Sum(lambda i: x[i, j] * (1 + m[i])) + Max(lambda k: x[k, j])",
        {"x": (19, 300), "m": (19,)},
    ),
    "shortest": ("def shortest(x):\n    return lambda: Min(lambda i, j: x[i, j])", {"x": (5, 50)}),
    "padded": (
        "def padded(x):\n    return lambda i, j=x.shape[1]: pad(x[i, j - 2], 1) + where(j % 2 == 0, i, j)",
        {"x": (7, 11)},
    ),
    "transposed": ("def transposed(x):\n    return lambda j, i: 2 * x[i, j]", {"x": (12, 15)}),
    "two": (
        "def two(w, m, g, rate):\n    return (lambda i, j: w[i, j] - rate[0] * (0.9 * m[i, j] + g[i, j]), "
        "lambda i, j: 0.9 * m[i, j] + g[i, j])",
        {"w": (8, 9), "m": (8, 9), "g": (8, 9), "rate": (1,)},
    ),
    "scalar": ("def scalar(x):\n    return lambda: x[0] * 2", {"x": (1,)}),
}

FRAME = 3
"""Elements around each array that nothing may write, and whose values reach no result."""

UNTOUCHED = 12345
"""The value around outputs."""


def bound_case(name: str) -> BoundOperator:
    text, shapes = CASES[name]
    return derived(tdl.parse(text)).bind(shapes)


@dataclass(frozen=True)
class Framed:
    """A call whose arrays lie in larger ones, which are NaN elsewhere."""

    call: KernelCall
    wholes: tuple[Array, ...]
    """The larger arrays of the outputs."""


def framed(shape: Shape, dtype: str, around: float) -> tuple[Array, Array]:
    """Return an array of one value, and a view in its middle that is NaN, whose axes are reversed."""
    whole = np.full([length + 2 * FRAME for length in shape[::-1]], around, dtype)
    view = view_of(whole, (slice(FRAME, FRAME + length) for length in shape[::-1])).transpose()
    view[...] = np.nan
    return whole, view


def called(
    bound: BoundOperator, box: Mapping[str, Interval], dtype: str, *, loose: bool, seed: int = 0
) -> Framed:
    """Return a call of a box on random values; `loose` arrays are views with their axes reversed."""
    rng = np.random.default_rng(seed)
    part = boxed(bound, box)
    tensors = {name: rng.standard_normal(shape).astype(dtype) for name, shape in bound.shapes.items()}
    inputs, regions = {}, {}
    for name, boxes in bound.input_regions(part[None]).items():
        regions[name] = to_region(boxes[0])
        values = tensors[name][tuple(slice(*interval) for interval in regions[name])]
        if loose:
            inputs[name] = framed(values.shape, dtype, np.nan)[1]
            inputs[name][...] = values
        else:
            inputs[name] = np.ascontiguousarray(values).reshape(values.shape)
    shapes = [tuple(int(n) for n in np.diff(each[0])[:, 0]) for each in bound.output_regions(part[None])]
    made = [
        framed(shape, dtype, UNTOUCHED) if loose else 2 * (np.full(shape, np.nan, dtype),) for shape in shapes
    ]
    named = dict(zip(bound.variables, to_region(part), strict=True))
    call = KernelCall(bound, named, inputs, regions, tuple(view for _, view in made))
    return Framed(call, tuple(whole for whole, _ in made))


def expected(call: KernelCall) -> tuple[Array, ...]:
    """Return what NumPy's derived kernel computes in float64."""
    double = {name: array.astype(np.float64) for name, array in call.inputs.items()}
    outputs = tuple(np.empty(array.shape, np.float64) for array in call.outputs)
    derive(KernelCall(call.bound, call.box, double, call.regions, outputs))()
    return outputs


def wrong(made: Framed) -> str:
    """Return what is wrong with the results of a call that ran; empty if nothing is."""
    for number, (array, right) in enumerate(zip(made.call.outputs, expected(made.call), strict=True)):
        tolerance = 2e-5 if array.dtype == np.float32 else 1e-12
        if not np.allclose(array, right, rtol=tolerance, atol=tolerance):
            return f"output {number} differs by {np.abs(array - right).max()}"
        whole = made.wholes[number]
        if np.count_nonzero(whole == UNTOUCHED) != whole.size - array.size:
            return f"output {number} was written beyond its end"
    return ""
