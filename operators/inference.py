"""Shape inference of one operator, in both directions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import assert_never

from ..analyzer.indices.region import Shape
from .shapes.shape_solver import PartialShape, is_complete, merge, solve
from .stages.attributes import Attributes
from .stages.build_stages import describe, produced_shapes, stages_of
from .stages.definition import ByRank, ByShape, Definition, Fixed

Hints = Callable[[Attributes, Mapping[str, PartialShape]], Mapping[str, PartialShape]]


@dataclass(frozen=True, slots=True)
class ShapeRules:
    """The rules that determine the shapes around an operator with given attributes."""

    name: str
    """The operator's name."""

    definition: Definition
    """Makes the description that is solved."""

    attributes: Attributes
    """The attributes."""

    arguments: tuple[str, ...]
    """Names of the arguments and the auxiliary states."""

    outputs: tuple[str, ...]
    """Names of the outputs."""

    hints: Hints | None
    """Adds shapes that the description cannot be solved for."""

    seeds: tuple[str, ...]
    """Names of the states that hold one whole number each."""


def infer(rules: ShapeRules, given: Mapping[str, PartialShape]) -> dict[str, PartialShape]:
    """Return all shapes of arguments, auxiliary states and outputs that follow; see `Operator.infer`."""
    name, definition, attributes = rules.name, rules.definition, rules.attributes
    known: dict[str, PartialShape] = {
        tensor: given.get(tensor) for tensor in (*rules.arguments, *rules.outputs)
    }
    before: dict[str, PartialShape] | None = None
    while known != before:
        before = dict(known)
        if rules.hints is not None:
            _merge_into(known, name, rules.hints(attributes, known))
        describable = _describable(definition, attributes, known)
        if all(is_complete(known[argument]) for argument in rules.arguments):
            if describable:
                shapes = _complete({tensor: shape for tensor, shape in known.items() if is_complete(shape)})
                shapes |= dict.fromkeys(rules.seeds, (1,))
                stages = stages_of(describe(definition, attributes, shapes, name), shapes)
                _merge_into(known, name, produced_shapes(stages, shapes))
            break
        if describable:
            _merge_into(known, name, solve(describe(definition, attributes, _complete(known), name), known))
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
