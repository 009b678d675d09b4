"""Random tensors: numbers that depend only on position and seeds, however the tensor is split."""

from __future__ import annotations

from collections.abc import Mapping

from ...analyzer.indices.region import Shape
from ..operator import Example, Operator
from ..stages.attributes import Attributes, AttributeSpec, ignored, number, shape
from ..stages.definition import ByShape, Variant, variant
from .arguments import arguments
from .dropout import position
from .initial import fill_hints, of_output, wanted_shape
from .texts import joined, names, sized

EVEN = "low + (high - low) * {first}"
"""`first` and `second` are evenly distributed between 0 and 1, both excluded."""

GAUSSIAN = "loc + scale * sqrt(-2 * log({first})) * cos(6.283185307179586 * {second})"
"""Box and Muller's transformation."""

EXPONENTIAL = "-log({first}) / lam"


def _drawn(name: str, formula: str, seeds: tuple[str, ...], *specs: AttributeSpec) -> ByShape:
    constants = tuple(spec.name for spec in specs)

    def describe(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
        extents = wanted_shape(attributes, shapes)
        high, low = position(extents)
        numbers = {
            role: f"uniform({seed}[0], {high}, {low})" for role, seed in zip(ROLES, seeds, strict=False)
        }
        binders = sized(names("i", len(extents)), extents)
        return variant(
            f"def {name}({joined(seeds)}, *, {joined(constants)}):\n"
            f"    return lambda {binders}: {formula.format(**numbers)}",
            {constant: float(attributes.number(constant)) for constant in constants},
        )

    return ByShape(describe, of_output)


def _random(
    name: str, formula: str, aliases: tuple[str, ...], seeds: tuple[str, ...], *specs: AttributeSpec
) -> Operator:
    return Operator(
        name=name,
        aliases=aliases,
        definition=_drawn(name, formula, seeds, *specs),
        argument_names=arguments(),
        seeds=seeds,
        specs=(*specs, shape("shape", (1,)), ignored("ctx"), ignored("dtype")),
        hints=fill_hints,
        example=Example(dict.fromkeys(seeds, (1,)), {"shape": (2, 3)}, dict.fromkeys(seeds, (0, 1000))),
    )


ROLES = ("first", "second")

OPERATORS = (
    _random(
        "random_uniform",
        EVEN,
        ("uniform", "_random_uniform", "_sample_uniform"),
        ("seed",),
        number("low", 0.0),
        number("high", 1.0),
    ),
    _random(
        "random_normal",
        GAUSSIAN,
        ("normal", "_random_normal", "_sample_normal"),
        ("seed", "angle_seed"),
        number("loc", 0.0),
        number("scale", 1.0),
    ),
    _random(
        "random_exponential",
        EXPONENTIAL,
        ("exponential", "_random_exponential", "_sample_exponential"),
        ("seed",),
        number("lam", 1.0),
    ),
)
