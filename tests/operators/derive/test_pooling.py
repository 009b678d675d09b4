"""Derived kernels of pooling and of its gradients compute what the descriptions say, on any box."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tofu import tdl
from tofu.operators.derive import derive
from tofu.operators.stages.stage import derived

CASES = [
    # rows, kernel, stride, pad
    ((8,), (2,), (2,), (0,)),
    ((9,), (4,), (2,), (1,)),
    ((6, 6), (2, 2), (2, 2), (0, 0)),
    ((7, 5), (3, 3), (2, 2), (1, 1)),
    ((5, 6), (3, 2), (1, 2), (1, 0)),
    ((7, 7), (2, 2), (3, 3), (0, 0)),
]


def pooling_text(reducer: str, rows: Any, kernel: Any, stride: Any, pad: Any) -> str:
    dims = range(len(rows))
    places = ", ".join(f"p{d}={(rows[d] + 2 * pad[d] - kernel[d]) // stride[d] + 1}" for d in dims)
    taps = ", ".join(f"q{d}={kernel[d]}" for d in dims)
    index = ", ".join(f"p{d} * {stride[d]} + q{d} - {pad[d]}" for d in dims)
    outside, divisor = ("-inf", "") if reducer == "Max" else ("0", " / 4")
    return (
        f"def pool(data):\n    return lambda n, c, {places}: "
        f"{reducer}(lambda {taps}: pad(data[n, c, {index}], {outside})){divisor}"
    )


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("reducer", ["Max", "Sum"])
def test_pooling_equals_description(reducer: str, case: Any, check_kernel: Any) -> None:
    rows, *geometry = case
    stage = derived(tdl.parse(pooling_text(reducer, rows, *geometry)))
    rng = np.random.default_rng(5)
    data = rng.integers(-2, 3, (2, 3, *rows)).astype(np.float64)
    bound = stage.bind({"data": data.shape})
    (output,) = bound.interpret({"data": data})
    tensors = {"data": data, "output_0": output, "grad_0": 4.0 * rng.integers(-4, 5, output.shape)}
    check_kernel(bound, derive, {"data": data})
    (adjoint,) = stage.adjoint("data")
    needed = {name: tensors[name] for name in adjoint.inputs}
    check_kernel(adjoint.bind({name: array.shape for name, array in needed.items()}), derive, needed)
