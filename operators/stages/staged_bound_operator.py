"""An operator for given shapes, as a user sees it: one object, however many stages there are."""

from __future__ import annotations

from collections.abc import Mapping

from ...analyzer.bind.staged_bound import StagedBound
from ...analyzer.indices.region import Interval, Shape
from ...analyzer.specialize.specialize import specialize
from ...errors import ShapeError
from ...tdl import ast
from ..kernels.kernel import Array
from .bound_operator import BoundOperator, checked_arrays
from .build_stages import stages_of
from .definition import Variant
from .opaque_kernels import Functions
from .stage import Stage, output_names


class StagedBoundOperator(StagedBound):
    """A description with stages. Regions are composed through the stages.

    Strategies are those of the last.
    """

    def __init__(
        self, description: ast.Description, stages: tuple[Stage, ...], shapes: Mapping[str, Shape]
    ) -> None:
        """`stages` are those of `description`, which is specialised. Raises ShapeError."""
        super().__init__(description, shapes)
        self.parts = stages

    def interpret(self, tensors: Mapping[str, Array], opaque: Functions | None = None) -> tuple[Array, ...]:
        """Return the outputs from the description alone.

        `opaque` adds to the functions that the stages bring.
        """
        functions = {name: function for stage in self.parts for name, function in stage.opaques.items()}
        return super().interpret(tensors, {**functions, **(opaque or {})})

    def compute(
        self,
        tensors: Mapping[str, Array],
        opaque: Functions | None = None,
        box: Mapping[str, Interval] | None = None,
    ) -> tuple[Array, ...]:
        """Return the outputs for whole input tensors, stage by stage, from attached or derived kernels.

        `box` restricts variables of the last stage, as for an operator of one stage. The stages before it are
        computed whole. Raises ShapeError for a box of outputs that are stages of their own.
        """
        if box and len(self.parts) > len(self.stages) + 1:
            raise ShapeError(
                f"{self.description.name}: its outputs have different variables; "
                "compute a box of one of its stages"
            )
        known = checked_arrays(self.description.name, self.shapes, tensors)
        for stage in self.parts:
            bound = stage.bind({name: known[name].shape for name in stage.inputs})
            part = box if stage is self.parts[-1] else None
            produced = bound.compute({name: known[name] for name in stage.inputs}, opaque, part)
            known.update(zip(stage.produces, produced, strict=True))
        return tuple(known[name] for name in output_names(len(self.description.outputs)))


def bind_variant(
    variant: Variant, shapes: Mapping[str, Shape], allowed: tuple[str, ...]
) -> BoundOperator | StagedBoundOperator:
    """Return a variant for concrete shapes; tensors of `allowed` that it does not take are ignored.

    Raises ShapeError for a tensor that is missing, unknown or does not fit.
    """
    description = variant.description
    unknown = [name for name in shapes if name not in allowed]
    if unknown:
        raise ShapeError(
            f"{description.name}: it does not take a tensor {unknown[0]!r}, "
            f"only {', '.join(allowed) or 'none at all'}"
        )
    stages = stages_of(variant, shapes)
    if len(stages) == 1:
        return stages[0].bind(shapes)
    taken = {name: shapes[name] for name in description.tensor_names}
    special = specialize(description, variant.constants, {name: len(shape) for name, shape in taken.items()})
    return StagedBoundOperator(special, stages, taken)
