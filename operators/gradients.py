"""Gradients of one operator in plain Python: the stages that make them, and their values.

Training graphs differentiate whole networks (`dataflow/autodiff.py`). This is for looking at one operator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .stages.stage import Stage

Array = npt.NDArray[Any]


class Produced(NamedTuple):
    """The place of a value among the stages."""

    stage: int
    """The number of the stage."""

    output: int
    """The number of the stage's output."""


@dataclass(frozen=True, slots=True)
class Gradient:
    """A custom gradient."""

    stages: tuple[Stage, ...]
    """The stages in execution order. They read, by name: head gradients `grad_0`, `grad_1`, ..., forward
    outputs `output_0`, ..., arguments, auxiliary states, and what stages of the forward operator and earlier
    stages of the gradient produce."""

    targets: Mapping[str, Produced]
    """Where each argument's gradient appears. An argument without a target has a gradient of zero."""


@dataclass(frozen=True, slots=True)
class DerivedTerm:
    """A stage that makes a term of a gradient."""

    of: Stage
    """The stage that is differentiated. Its outputs and their gradients are `output_k` and `grad_k` of it."""

    tensor: str
    """The tensor whose gradient is the sum of all terms for it."""

    stage: Stage
    """The stage that computes the term."""


def derived_terms(stages: Sequence[Stage]) -> Iterator[DerivedTerm]:
    """Yield the terms of all gradients in the order in which they can be computed. Raises OperatorError."""
    for stage in reversed(stages):
        for tensor in stage.inputs:
            for term in stage.adjoint(tensor):
                yield DerivedTerm(stage, tensor, term)


def derived_gradients(
    stages: Sequence[Stage], values: Mapping[str, Array], heads: Sequence[Array]
) -> dict[str, Array]:
    """Return gradients by tensor. `values` has all that the stages read and produce. Raises OperatorError."""
    found: dict[str, Array] = {f"output_{k}": head for k, head in enumerate(heads)}
    for stage in reversed(stages):
        reached = [name for name in stage.produces if name in found]
        if not reached:
            continue
        own = {
            f"grad_{k}": found.get(name, np.zeros_like(values[name])) for k, name in enumerate(stage.produces)
        }
        own |= {f"output_{k}": values[name] for k, name in enumerate(stage.produces)}
        known = {**values, **own}
        for term in derived_terms([stage]):
            (value,) = computed(term.stage, known)
            found[term.tensor] = found[term.tensor] + value if term.tensor in found else value
    return found


def custom_gradients(
    gradient: Gradient, values: Mapping[str, Array], heads: Sequence[Array]
) -> dict[str, Array]:
    """Return gradients by argument, as a custom gradient computes them."""
    known = {**values, **{f"grad_{k}": head for k, head in enumerate(heads)}}
    produced = []
    for stage in gradient.stages:
        results = computed(stage, known)
        produced.append(results)
        made = zip(stage.produces, results, strict=True)
        known.update({name: value for name, value in made if not name.startswith("output_")})
    return {name: produced[place.stage][place.output] for name, place in gradient.targets.items()}


def computed(stage: Stage, known: Mapping[str, Array]) -> tuple[Array, ...]:
    """Return the outputs of a stage for the tensors that it reads."""
    bound = stage.bind({name: known[name].shape for name in stage.inputs})
    return bound.compute({name: known[name] for name in stage.inputs})
