"""The library's operators and their gradients: kernels in C against the interpreter."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import numpy as np
import pytest

from tofu import tdl
from tofu.operators import names
from tofu.operators.native.generated import GENERATED
from tofu.operators.stages.prepared_kernel import prepared_kernel

from ..example_stages import derived_adjoints, interpreted, training_stages

SAMPLE = ("LayerNorm", "adam_update", "SoftmaxOutput")

TOLERANCE = 1e-5
"""Relative to the element, and to the largest element of the output."""

LEAST = 1e-2
"""Outputs that are all smaller are compared as if they had this element: sums that cancel are rounding."""


def differences(operators: Iterable[str]) -> tuple[list[str], int]:
    """Return the stages whose kernels are wrong, and the number of those that have one."""
    found, taken, seen = [], 0, set[str]()
    for operator in operators:
        for stage, tensors in chain(training_stages(operator), derived_adjoints(operator)):
            text = tdl.format(stage.description)
            if text in seen or stage.description.opaques or stage.kernel is not None:
                continue
            seen.add(text)
            given = {name: tensors[name].astype(np.float32) for name in stage.inputs}
            bound = stage.bind({name: array.shape for name, array in given.items()})
            if prepared_kernel(bound).calls != (GENERATED,):
                continue
            taken += 1
            right = interpreted(stage, {name: array.astype(np.float64) for name, array in given.items()})
            for array, wanted in zip(bound.compute(given), right, strict=True):
                scale = max(float(np.abs(wanted).max(initial=0)), LEAST)
                if not np.allclose(array, wanted, rtol=TOLERANCE, atol=TOLERANCE * scale, equal_nan=True):
                    found.append(f"{operator}: {stage.name}: {np.abs(array - wanted).max()}")
    return found, taken


@pytest.mark.usefixtures("native")
def test_sample() -> None:
    found, taken = differences(SAMPLE)
    assert not found
    assert taken >= 12


@pytest.mark.slow
@pytest.mark.usefixtures("native")
def test_every_operator() -> None:
    found, taken = differences(names())
    assert not found
    assert taken >= 300
