"""Make stages from an operator's definition: describe, specialise, split, attach kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, assert_never

from ...analyzer.indices.region import Shape
from ...analyzer.specialize.attribute_values import Keyed, keyed
from ...analyzer.specialize.specialize import specialize
from ...analyzer.specialize.split_stages import split_stages
from ...errors import OperatorError, ShapeError
from ...tdl import ast
from ..kernels.kernel import Kernel
from .attributes import Attributes
from .definition import Attachment, ByRank, ByShape, Definition, Fixed, Variant
from .stage import Stage, output_names

_Attached = tuple[str, Kernel | None, tuple[tuple[str, Kernel], ...]]


def describe(
    definition: Definition, attributes: Attributes, shapes: Mapping[str, Shape], operator: str
) -> Variant:
    """Return the variant for these attributes; `shapes` must hold the tensors that the definition
    depends on.
    """
    match definition:
        case Fixed():
            return definition.describe(attributes)
        case ByRank():
            _require(operator, definition.of, shapes)
            return definition.describe(attributes, {name: len(shapes[name]) for name in definition.of})
        case ByShape():
            _require(operator, definition.of(attributes), shapes)
            return definition.describe(attributes, shapes)
        case _:
            assert_never(definition)


def stages_of(variant: Variant, shapes: Mapping[str, Shape]) -> tuple[Stage, ...]:
    """Return the stages of a variant, cached on the description, its constants and the ranks.

    Raises ShapeError if a tensor's shape is missing, OperatorError if a constant is.
    """
    description = variant.description
    _require(description.name, description.tensor_names, shapes)
    ranks = tuple(len(shapes[name]) for name in description.tensor_names)
    attached = tuple(
        (stage, kernels.kernel, tuple(kernels.adjoints.items())) for stage, kernels in variant.kernels.items()
    )
    opaques = tuple(variant.opaques.items())
    return _stages(description, keyed(variant.constants), ranks, attached, opaques)


@cache
def _stages(
    description: ast.Description,
    constants: tuple[Keyed, ...],
    ranks: tuple[int, ...],
    attached: tuple[_Attached, ...],
    opaques: tuple[tuple[str, Callable[..., Any]], ...],
) -> tuple[Stage, ...]:
    by_name = dict(zip(description.tensor_names, ranks, strict=True))
    special = specialize(description, {name: value for name, value, _ in constants}, by_name)
    parts = split_stages(special)
    produces = [(stage.name,) for stage in special.stages] + [output_names(len(special.outputs))]
    kernels = {stage: Attachment(kernel, dict(adjoints)) for stage, kernel, adjoints in attached}
    unknown = kernels.keys() - {names[0] for names in produces}
    if unknown:
        raise OperatorError(
            f"{description.name}: kernels are attached to {unknown}, which it does not produce"
        )
    stages = []
    for part, names in zip(parts, produces, strict=True):
        attachment = kernels.get(names[0], Attachment())
        functions = {name: function for name, function in opaques if name in part.opaques}
        stages.append(Stage(part, names, attachment.kernel, attachment.adjoints, functions))
    return tuple(stages)


def produced_shapes(stages: tuple[Stage, ...], shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    """Return `shapes` together with the shapes of everything that the stages produce."""
    known = dict(shapes)
    for stage in stages:
        known.update(zip(stage.produces, stage.bind(known).output_shapes, strict=True))
    return known


def _require(operator: str, names: tuple[str, ...], shapes: Mapping[str, Shape]) -> None:
    missing = [name for name in names if name not in shapes]
    if missing:
        given = ", ".join(shapes) or "none"
        raise ShapeError(
            f"{operator} needs the shape of {', '.join(missing)}; shapes were given for: {given}"
        )
