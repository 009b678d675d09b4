"""Tensors that do not depend on inputs: zeros, ones, ranges."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, isfinite

from ...analyzer.indices.region import Shape
from ...errors import OperatorError, ShapeError
from ..operator import Example, Operator
from ..shapes.shape_solver import PartialShape
from ..stages.attributes import Attributes, ignored, integer, number, optional_number, shape
from ..stages.definition import ByShape, Fixed, Variant, variant
from .arguments import arguments
from .texts import names, sized


def wanted_shape(attributes: Attributes, shapes: Mapping[str, Shape]) -> Shape:
    """Return what `shape` says, or what was inferred if it leaves an extent open."""
    return shapes["output_0"] if 0 in attributes.shape("shape") else attributes.shape("shape")


def of_output(attributes: Attributes) -> tuple[str, ...]:
    """Return the tensors whose shapes a description depends on: the output's, where `shape`
    leaves it open.
    """
    return ("output_0",) if 0 in attributes.shape("shape") else ()


def _filled(name: str, value: str) -> ByShape:
    def describe(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
        extents = wanted_shape(attributes, shapes)
        binders = sized(names("i", len(extents)), extents)
        constants = {value: float(attributes.number(value))} if value in attributes else {}
        parameters = f"*, {value}" if constants else ""
        return variant(f"def {name}({parameters}):\n    return lambda {binders}: {value}", constants)

    return ByShape(describe, of_output)


def fill_hints(attributes: Attributes, shapes: Mapping[str, PartialShape]) -> Mapping[str, PartialShape]:
    """Return shapes in which an extent of 0 is unknown, to be inferred from a reader of the tensor."""
    return {"output_0": tuple(extent or None for extent in attributes.shape("shape"))}


def _arange(attributes: Attributes) -> Variant:
    start, stop = attributes.number("start"), attributes["stop"]
    step, repeat = attributes.number("step"), attributes.integer("repeat")
    if stop is None:
        start, stop = 0.0, start
    assert isinstance(stop, int | float)
    if step == 0:
        raise OperatorError("_arange: step must not be 0")
    steps = (stop - start) / step
    if not isfinite(steps) or steps <= 0:
        number = "no" if steps <= 0 else "no finite number of"
        raise ShapeError(f"_arange: start={start}, stop={stop}, step={step} gives {number} elements")
    count = ceil(steps) * repeat
    return variant(
        "def _arange(*, count, start, step, repeat):\n"
        "    return lambda i=count: start + step * (i // repeat)",
        {"count": count, "start": start, "step": step, "repeat": repeat},
    )


OPERATORS = (
    *(
        Operator(
            name=name,
            definition=_filled(name, value),
            argument_names=arguments(),
            specs=(shape("shape", ()), *specs, ignored("ctx"), ignored("dtype")),
            hints=fill_hints,
            example=Example({}, {"shape": (2, 3), **{spec.name: 0.5 for spec in specs}}),
        )
        for name, value, specs in (
            ("_zeros", "0", ()),
            ("_ones", "1", ()),
            ("_full", "value", (number("value"),)),
        )
    ),
    Operator(
        name="_arange",
        definition=Fixed(_arange),
        argument_names=arguments(),
        specs=(
            number("start"),
            optional_number("stop"),
            number("step", 1.0),
            integer("repeat", 1, least=1),
            ignored("ctx"),
            ignored("dtype"),
        ),
        example=Example({}, {"start": 2, "stop": 8, "step": 2}),
    ),
)
