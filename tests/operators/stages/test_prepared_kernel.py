"""The code that computes an operator is known without running it."""

from __future__ import annotations

import numpy as np

import tofu
from tofu.operators.kernels.kernel import NUMPY_PRODUCT, KernelCall, Run
from tofu.operators.stages.prepared_kernel import Origin, prepared_kernel

SCALE = "def scale(x):\n    return lambda i, j: x[i, j] * 2"
MATMUL = "def matmul(a, b):\n    return lambda i, j: Sum(lambda k: a[i, k] * b[k, j])"


def test_a_derived_kernel_of_array_operations() -> None:
    found = prepared_kernel(tofu.parse(SCALE).bind({"x": (3, 4)}))
    assert (found.origin, found.calls) == (Origin.DERIVED, ())


def test_a_derived_product() -> None:
    found = prepared_kernel(tofu.parse(MATMUL).bind({"a": (8, 8), "b": (8, 8)}))
    assert (found.origin, found.calls) == (Origin.DERIVED, (NUMPY_PRODUCT,))


def test_an_attached_kernel_and_its_scratch() -> None:
    def kernel(call: KernelCall) -> Run:
        scratch = call.workspace.array((100,), np.float32)
        return lambda: np.multiply(call.inputs["x"], 2 + 0 * scratch[0], out=call.outputs[0])

    bound = tofu.parse(SCALE, kernel=kernel).bind({"x": (3, 4)})
    found = prepared_kernel(bound)
    assert (found.origin, found.calls) == (Origin.ATTACHED, ())
    assert found.scratch_bytes == 448  # whole cache lines


def test_an_opaque_function() -> None:
    text = "def f(x):\n    g = Opaque()\n    return lambda i, j=x.shape[1]: g(x[i, :])[j]"
    bound = tofu.parse(text, opaque={"g": lambda row: row}).bind({"x": (3, 4)})
    assert prepared_kernel(bound).origin is Origin.OPAQUE
