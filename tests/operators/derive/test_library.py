"""Kernels derived for every operator of the library: its stages and their adjoints, whole and in parts."""

from __future__ import annotations

from typing import Any

import pytest

from tofu.operators import get, names
from tofu.operators.derive import derive

from ..example_stages import training_stages


@pytest.mark.parametrize("name", [name for name in names() if get(name).example is not None])
def test_stages_and_adjoints(name: str, check_kernel: Any) -> None:
    count = 0
    for stage, tensors in training_stages(name):
        own = {tensor: tensors[tensor] for tensor in stage.inputs}
        bound = stage.bind({tensor: array.shape for tensor, array in own.items()})
        kernel = bound.prepare if stage.description.opaques else derive
        check_kernel(bound, kernel, own, boxes=4, dtype="float64", tolerance=1e-10)
        count += 1
    assert count
