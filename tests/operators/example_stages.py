"""The stages that an operator's example runs in training, with values that the operator is defined for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tofu.errors import OperatorError
from tofu.operators import get
from tofu.operators.operator import Operator
from tofu.operators.stages.stage import Stage

Array = np.ndarray[Any, Any]
Staged = tuple[Stage, Mapping[str, Array]]


def training_stages(name: str) -> Iterator[Staged]:
    """Every stage of the operator's example and of its gradient, with tensors for it."""
    operator, rng = get(name), np.random.default_rng(5)
    known = yield from _forward(operator, rng)
    gradient = operator.gradient(*_example(operator))
    if gradient is None:
        yield from _adjoints(operator, known, rng)
        return
    known = dict(known)
    for tensor in [tensor for tensor in known if tensor.startswith("output_")]:
        known[tensor.replace("output_", "grad_")] = rng.uniform(-1, 1, known[tensor].shape)
    for stage in gradient.stages:
        yield stage, known
        known |= zip(stage.produces, interpreted(stage, known), strict=True)


def derived_adjoints(name: str) -> Iterator[Staged]:
    """The derived adjoints of every stage, also of operators with a custom gradient."""
    operator, rng = get(name), np.random.default_rng(5)
    forward = _forward(operator, rng)
    while True:
        try:
            next(forward)
        except StopIteration as end:
            yield from _adjoints(operator, end.value, rng)
            return


def _example(operator: Operator) -> tuple[Mapping[str, object], Mapping[str, tuple[int, ...]]]:
    assert operator.example is not None, f"{operator.name} has no example"
    return operator.example.attributes, operator.example.shapes


def _forward(operator: Operator, rng: np.random.Generator) -> Iterator[Staged]:
    stages = operator.stages(*_example(operator))
    assert operator.example is not None
    known: dict[str, Array] = operator.example.tensors(rng)
    for stage in stages:
        yield stage, known
        known = known | dict(zip(stage.produces, interpreted(stage, known), strict=True))
    return known


def _adjoints(operator: Operator, known: Mapping[str, Array], rng: np.random.Generator) -> Iterator[Staged]:
    for stage in operator.stages(*_example(operator)):
        own = dict(known)
        for number, produced in enumerate(stage.produces):
            own[f"output_{number}"] = known[produced]
            own[f"grad_{number}"] = rng.uniform(-1, 1, known[produced].shape)
        for tensor in stage.inputs:
            for adjoint in _adjoint(stage, tensor):
                yield adjoint, own


def _adjoint(stage: Stage, tensor: str) -> tuple[Stage, ...]:
    try:
        return stage.adjoint(tensor)
    except OperatorError:
        return ()


def interpreted(stage: Stage, tensors: Mapping[str, Array]) -> tuple[Array, ...]:
    """Return the results of the stage, by its description alone."""
    bound = stage.bind({name: tensors[name].shape for name in stage.inputs})
    return bound.interpret({name: tensors[name] for name in stage.inputs})
