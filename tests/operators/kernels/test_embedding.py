"""The attached kernel of Embedding's gradient computes what the derived description says, on any box."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tofu import tdl
from tofu.operators.kernels import EmbeddingGradient
from tofu.operators.stage import derived


@pytest.mark.parametrize(("index", "shape"), [("k", (9,)), ("k, l", (3, 4))])
def test_gradient_equals_description(index: str, shape: tuple[int, ...], check_kernel: Any) -> None:
    stage = derived(
        tdl.parse(f"def pick(data, weight):\n    return lambda {index}, j: weight[data[{index}], j]")
    )
    rng = np.random.default_rng(6)
    tensors = {
        "data": rng.integers(0, 5, shape).astype(np.float64),
        "weight": np.zeros((5, 3)),
        "grad_0": rng.integers(-4, 5, (*shape, 3)).astype(np.float64),
    }
    (adjoint,) = stage.adjoint("weight")
    needed = {name: tensors[name] for name in adjoint.inputs}
    bound = adjoint.bind({name: array.shape for name, array in needed.items()})
    check_kernel(bound, EmbeddingGradient(), needed, boxes=12)
