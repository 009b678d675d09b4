"""The library's operators and their gradients: kernel bodies, run on the CPU, against the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from tofu.operators import names

from ..example_stages import interpreted
from .comparison import compare
from .library import Case, opaque_stages
from .machine import Machine, unique

SAMPLE = (
    "BatchNorm",
    "Convolution",
    "Embedding",
    "LRN",
    "Pooling",
    "SoftmaxOutput",
    "adam_update",
    "take",
    "topk",
)

ONE_VALUE = frozenset(
    (
        *("MakeLoss_grad", "Pad_grad_padded2_3", "Pooling_grad_first", "ROIPooling_rows", "ceil", "fix"),
        *(
            "make_loss_grad",
            "ones_like",
            "sign",
            "trunc",
            "where__grad_y",
            "zeros_like",
            "_ones",
            "_zeros",
            "_full",
        ),
        *("scatter_prod_grad_alone", "scatter_prod_grad_others", "scatter_prod_grad_zeros", "floor"),
        *("_equal", "_equal_scalar", "_greater_equal_scalar", "_greater_scalar", "_lesser_equal_scalar"),
        *("_lesser_scalar", "_maximum_scalar", "_maximum_scalar_grad_data", "_not_equal"),
        *("_not_equal_scalar", "broadcast_equal", "broadcast_not_equal", "softmax_cross_entropy_grad_peak"),
    )
)
"""Stages whose outputs are one number throughout: constants, and comparisons of numbers in (0.1, 0.9)."""


def failures(machine: Callable[..., Machine], cases: Iterable[Case], dtype: str) -> list[str]:
    kernels = {case: case.kernel(dtype) for case in cases}
    computer, found = machine(unique(kernels.values())), []
    for case, kernel in kernels.items():
        try:
            types, outputs = case.types(dtype), case.outputs(dtype)
            compare(computer, case.bound, kernel, types, outputs, case.tensors)
        except AssertionError as error:
            found.append(f"{case.name}: {error}")
    return found


def test_sample(cases: Any, machine: Any) -> None:
    assert not failures(machine, cases(SAMPLE), "float32")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_every_operator(cases: Any, machine: Any, dtype: str) -> None:
    assert not failures(machine, cases(names()), dtype)


@pytest.mark.slow
def test_every_description_but_opaque_functions_has_a_kernel(cases: Any) -> None:
    assert all(case.kernel("float32").functions for case in cases(names()))
    assert opaque_stages(names()) == {
        "linalg_potrf",
        "linalg_potrf_grad_inverted",
        "linalg_potri_inverted",
        "linalg_trsm_inverted",
    }


@pytest.mark.slow
def test_the_comparison_has_something_to_compare(cases: Any) -> None:
    """Values are numbers, and not all the same one: against NaN or zeros a wrong kernel may agree."""
    one_value = set()
    for case in cases(names()):
        for output in interpreted(case.stage, case.tensors):
            assert output.size, case.name
            assert not np.isnan(output).any(), case.name
            if output.size > 1 and np.ptp(output) == 0:
                one_value.add(case.stage.name)
    assert one_value == ONE_VALUE
