"""Kernels derived for every operator of the library: its stages and their adjoints, whole and in parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from tofu.errors import OperatorError
from tofu.operators import get, names
from tofu.operators.derive import derive
from tofu.operators.stage import Stage

Array = np.ndarray[Any, Any]


def bound_stages(name: str) -> Iterator[tuple[Stage, Mapping[str, Array]]]:
    """Every stage of the operator's example and of its gradient, with tensors for it."""
    operator = get(name)
    assert operator.example is not None
    attributes, shapes = operator.example.attributes, operator.example.shapes
    rng = np.random.default_rng(5)
    known: dict[str, Array] = operator.example.tensors(rng)
    forward = operator.stages(attributes, shapes)
    for stage in forward:
        yield stage, known
        known |= zip(stage.produces, interpreted(stage, known), strict=True)
    known |= {
        tensor.replace("output_", "grad_"): rng.uniform(-1, 1, array.shape)
        for tensor, array in known.items()
        if tensor.startswith("output_")
    }
    gradient = operator.gradient(attributes, shapes)
    if gradient is not None:
        for stage in gradient.stages:
            yield stage, known
            known |= zip(stage.produces, interpreted(stage, known), strict=True)
        return
    for stage in forward:
        own = dict(known)
        for number, produced in enumerate(stage.produces):
            own[f"output_{number}"] = known[produced]
            own[f"grad_{number}"] = rng.uniform(-1, 1, known[produced].shape)
        for tensor in stage.inputs:
            for adjoint in adjoints(stage, tensor):
                yield adjoint, own


def adjoints(stage: Stage, tensor: str) -> tuple[Stage, ...]:
    try:
        return stage.adjoint(tensor)
    except OperatorError:
        return ()


def interpreted(stage: Stage, tensors: Mapping[str, Array]) -> tuple[Array, ...]:
    bound = stage.bind({name: tensors[name].shape for name in stage.inputs})
    return bound.interpret({name: tensors[name] for name in stage.inputs})


@pytest.mark.parametrize("name", [name for name in names() if get(name).example is not None])
def test_stages_and_adjoints(name: str, check_kernel: Any) -> None:
    count = 0
    for stage, tensors in bound_stages(name):
        own = {tensor: tensors[tensor] for tensor in stage.inputs}
        bound = stage.bind({tensor: array.shape for tensor, array in own.items()})
        kernel = bound.prepare if stage.description.opaques else derive
        check_kernel(bound, kernel, own, boxes=4, dtype="float64", tolerance=1e-10)
        count += 1
    assert count
