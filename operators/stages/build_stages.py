"""Make stages from an operator's definition: describe, specialise, split, attach kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, assert_never

from ...analyzer.indices.region import Shape
from ...analyzer.specialize.attribute_values import Keyed, keyed
from ...analyzer.specialize.specialize import specialize
from ...analyzer.specialize.split_stages import split_stages
from ...analyzer.strategies.discover import splittable
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
    *parts, last = split_stages(special)
    produces: list[tuple[str, ...]] = [(stage.name,) for stage in special.stages]
    for part, names in _apart(last, whole=any(stage == "output_0" for stage, *_ in attached)):
        parts.append(part)
        produces.append(names)
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


def _apart(last: ast.Description, *, whole: bool) -> Iterator[tuple[ast.Description, tuple[str, ...]]]:
    """Yield descriptions of the outputs that can be split in the same ways, and the outputs' names.

    A strategy must serve all outputs of a stage, so those with other variables are stages of their own.
    An attached kernel computes the `whole`.
    """
    groups: dict[object, list[int]] = {}
    for number, output in enumerate(last.outputs):
        variables = frozenset(binder.name for binder in output.variables)
        key = () if whole else (variables, frozenset(splittable(output.body)))
        groups.setdefault(key, []).append(number)
    if len(groups) == 1:
        yield last, output_names(len(last.outputs))
        return
    *early, final = groups.values()
    for numbers in (*early, final):
        name = last.name if numbers is final else f"{last.name}_output_{numbers[0]}"
        outputs = tuple(last.outputs[number] for number in numbers)
        (part,) = split_stages(replace(last, name=name, outputs=outputs))
        yield part, tuple(output_names(len(last.outputs))[number] for number in numbers)


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
