"""A stage: one specialised description of one output group, and the kernels attached to it.

The dataflow graph holds one operation per stage, so every stage chooses its own strategy. A stage is an
identity: the same description gives the same stage, the same shapes give the same bound operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

from ...analyzer.adjoint import adjoint, gradient_name
from ...analyzer.bind.analysis import Analysis, analyze
from ...analyzer.indices.region import Shape
from ...errors import ShapeError
from ...tdl import ast
from ..kernels.kernel import Kernel
from .bound_operator import BoundOperator
from .differentiable import Differentiable


@dataclass(frozen=True, eq=False)
class Stage:
    """One operator of the graph."""

    description: ast.Description
    """Has neither attributes nor stars nor stages."""

    produces: tuple[str, ...]
    """Names of the outputs as later stages and gradients read them: the stage's own name, or `output_0`,
    `output_1`, ... of the last stage."""

    kernel: Kernel | None = None
    """The attached kernel; None if it is derived."""

    adjoint_kernels: Mapping[str, Kernel] = field(default_factory=dict)
    """Kernels attached to the gradients, by the tensor they differentiate with respect to."""

    opaques: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """The functions behind `Opaque()` names."""

    _bounds: dict[tuple[Shape, ...], BoundOperator] = field(default_factory=dict, init=False, repr=False)
    """The operators bound so far, by the shapes of the inputs."""

    _adjoints: dict[str, tuple[Stage, ...]] = field(default_factory=dict, init=False, repr=False)
    """The stages of the gradients derived so far, by the tensor they differentiate with respect to."""

    @property
    def name(self) -> str:
        """The name of the stage's description."""
        return self.description.name

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Names of the tensors that it takes: arguments, auxiliary states, outputs of earlier stages."""
        return self.description.tensor_names

    @cached_property
    def analysis(self) -> Analysis:
        """The analysis of the description, for all shapes."""
        return analyze(self.description)

    def bind(self, shapes: Mapping[str, Shape]) -> BoundOperator:
        """Return the stage for concrete input shapes; equal shapes give the same object.

        Shapes of tensors that the stage does not take are ignored. Raises ShapeError.
        """
        try:
            key = tuple([tuple(shapes[name]) for name in self.inputs])
        except KeyError:
            missing = [name for name in self.inputs if name not in shapes]
            raise ShapeError(f"{self.name} needs the shape of {', '.join(missing)}") from None
        bound = self._bounds.get(key)
        if bound is None:
            known = dict(zip(self.inputs, key, strict=True))
            bound = BoundOperator(self.analysis, known, self.kernel, self.opaques)
            self._bounds[key] = bound
        return bound

    def adjoint(self, tensor: str) -> tuple[Stage, ...]:
        """Return stages whose sum is the gradient with respect to `tensor`; none if that is zero.

        They take this stage's inputs and, for its k-th output, `grad_k` and `output_k`. Raises OperatorError
        if the description has no adjoint.
        """
        stages = self._adjoints.get(tensor)
        if stages is None:
            descriptions = adjoint(self.description, tensor, self._gradients_of())
            kernel = self.adjoint_kernels.get(tensor) if len(descriptions) == 1 else None
            stages = tuple(self._with_functions(derived(found, kernel)) for found in descriptions)
            self._adjoints[tensor] = stages
        return stages

    def _gradients_of(self) -> tuple[tuple[str, tuple[bool, ...]], ...]:
        """Return the opaque functions that bring gradients, and for each argument whether there is one."""
        return tuple(
            (name, tuple(gradient is not None for gradient in function.gradients))
            for name, function in self.opaques.items()
            if isinstance(function, Differentiable)
        )

    def _with_functions(self, adjoint_stage: Stage) -> Stage:
        """Return an adjoint that calls this stage's opaque functions or their gradients, with what is behind
        them.
        """
        known = dict(self.opaques)
        for name, function in self.opaques.items():
            if isinstance(function, Differentiable):
                known |= {
                    gradient_name(self.description, name, place): function.gradient(place)
                    for place in range(len(function.gradients))
                }
        called = adjoint_stage.description.opaques
        functions = {name: known[name] for name in called if name in known}
        return replace(adjoint_stage, opaques=functions) if functions else adjoint_stage


@cache
def derived(description: ast.Description, kernel: Kernel | None = None) -> Stage:
    """Return the stage of a single-stage description with the outputs `output_0`, `output_1`, ..."""
    return Stage(description, output_names(len(description.outputs)), kernel)


def output_names(count: int) -> tuple[str, ...]:
    return tuple([f"output_{index}" for index in range(count)])
