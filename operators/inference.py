"""Shape inference of one operator, in both directions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, assert_never

from ..analyzer.indices.region import Shape
from .shapes.shape_solver import PartialShape, is_complete, merge, solve
from .stages.attributes import Attributes
from .stages.build_stages import describe, produced_shapes
from .stages.definition import ByRank, ByShape, Definition, Fixed

if TYPE_CHECKING:
    from .operator import Operator


def infer(
    operator: Operator, attributes: Attributes, given: Mapping[str, PartialShape]
) -> dict[str, PartialShape]:
    """Return all shapes of arguments, auxiliary states and outputs that follow; see `Operator.infer`.

    Shapes are the same in training and inference, so the simpler description, that of inference, is solved.
    """
    definition = operator.inference_definition or operator.definition
    arguments = (*operator.arguments(attributes), *operator.auxiliary)
    names = (*arguments, *operator.outputs(attributes))
    known: dict[str, PartialShape] = {name: given.get(name) for name in names}
    before: dict[str, PartialShape] | None = None
    while known != before:
        before = dict(known)
        if operator.hints is not None:
            _merge_into(known, operator.name, operator.hints(attributes, known))
        if all(is_complete(known[name]) for name in arguments):
            shapes = _complete({name: shape for name, shape in known.items() if is_complete(shape)})
            if _describable(definition, attributes, known):
                shapes |= dict.fromkeys(operator.seeds, (1,))
                stages = operator.stages(attributes, shapes, training=False)
                _merge_into(known, operator.name, produced_shapes(stages, shapes))
            break
        if _describable(definition, attributes, known):
            variant = describe(definition, attributes, _complete(known), operator.name)
            _merge_into(known, operator.name, solve(variant, known))
    return known


def _merge_into(known: dict[str, PartialShape], operator: str, more: Mapping[str, PartialShape]) -> None:
    for name in known:
        known[name] = merge(operator, name, known[name], more.get(name))


def _describable(definition: Definition, attributes: Attributes, known: Mapping[str, PartialShape]) -> bool:
    match definition:
        case Fixed():
            return True
        case ByRank():
            return all(known.get(name) is not None for name in definition.of)
        case ByShape():
            return all(is_complete(known.get(name)) for name in definition.of(attributes))
        case _:
            assert_never(definition)


def _complete(known: Mapping[str, PartialShape]) -> dict[str, Shape]:
    """Return known shapes with 0 for unknown extents, whose callers use only the ranks."""
    return {
        name: tuple(extent or 0 for extent in shape) for name, shape in known.items() if shape is not None
    }
