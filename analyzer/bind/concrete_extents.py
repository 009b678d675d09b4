"""Bind an analysis to shapes: compute extents and output shapes, and check that indices stay inside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...errors import ShapeError
from ...tdl.ast import Reducer
from ..indices.affine import Affine, variables_of
from ..indices.region import Shape
from ..indices.value_range import value_range
from ..source_errors import shown
from .shapes import check_size

if TYPE_CHECKING:
    from ..input_regions.access import Access
    from .analysis import Analysis


def extents(analysis: Analysis, shapes: Mapping[str, Shape]) -> dict[str, int]:
    """Return the extent of every index variable.

    Raises ShapeError if tensors disagree, if one is too small for the indices, or if `Max` or `Min` has no
    values to reduce.
    """
    name = analysis.description.name
    values = analysis.extent_values.integers(analysis.extents_of(shapes))
    found = dict(zip(analysis.variables, values, strict=False))
    for variable, extent in found.items():
        if extent < 0:
            raise ShapeError(
                f"{name}: index variable '{variable}' would have extent {extent} for "
                f"{_listed(shapes)}; a tensor is smaller than the indices that read it span"
            )
    for source, extent in zip(analysis.extents.sources, values[len(found) :], strict=True):
        if extent != found[source.variable]:
            first = next(s for s in analysis.extents.sources if s.variable == source.variable)
            bound = sum(binder.name == source.variable for binder in analysis.iteration.binders)
            hint = "; give one of them another name if they are two variables" if bound > 1 else ""
            raise ShapeError(
                f"{name}: index variable '{source.variable}' has extent {found[source.variable]} by "
                f"{first.place}, but {extent} by {source.place}; they must agree{hint}"
                f"{shown(analysis.description, first.span, f'{found[source.variable]} here')}"
                f"{shown(analysis.description, source.span, f'{extent} here')}"
            )
    for reduction in analysis.iteration.reductions:
        empty = next((binder.name for binder in reduction.variables if not found[binder.name]), None)
        if empty is not None and reduction.reducer in (Reducer.MAX, Reducer.MIN):
            raise ShapeError(
                f"{name}: {reduction.reducer} over '{empty}' has no values to reduce for {_listed(shapes)}"
                f"{shown(analysis.description, reduction.span, 'reduced here')}"
            )
    return found


def output_shapes(analysis: Analysis, found: Mapping[str, int]) -> tuple[Shape, ...]:
    """Return the shape of every output. Raises ShapeError for one too large to count."""
    shapes = tuple(
        tuple(found[binder.name] for binder in output.variables) for output in analysis.description.outputs
    )
    for position, shape in enumerate(shapes):
        check_size(analysis.description.name, f"output {position}", shape)
    return shapes


def check_divisors(analysis: Analysis, shapes: Mapping[str, Shape], found: Mapping[str, int]) -> None:
    """Raise ShapeError for a divisor that is not positive; in an index, if that indexes anything.

    Divisors that are negative for all shapes have been negated, together with their dividends.
    """
    if not analysis.divisors:
        return
    values = analysis.divisor_values.integers(analysis.extents_of(shapes))
    for value, divisor in zip(values, analysis.divisors, strict=True):
        if value <= 0 and all(found[name] for name in divisor.enclosing):
            from ..indices.symbolic import symbolic  # sympy is slow to import

            raise ShapeError(
                f"{analysis.description.name}: {divisor.place} divides by {symbolic(divisor.value)}, "
                f"which is {value} for {_listed(shapes)}; use larger shapes"
                f"{shown(analysis.description, divisor.span, 'divided here')}"
            )


def check_inside(analysis: Analysis, shapes: Mapping[str, Shape], found: Mapping[str, int]) -> None:
    """Raise ShapeError for an index that leaves its tensor and is not padded."""
    box = [end for extent in found.values() for end in (0, extent)]
    values = [*box, *analysis.extents_of(shapes)]
    if not analysis.regions.fits(values):
        raise ShapeError(
            f"{analysis.description.name}: indices exceed 2**62 for {_listed(shapes)}; use smaller factors "
            f"or shapes"
        )
    rows = analysis.regions.integers(values)
    column = 0
    for access in analysis.accesses:
        shape = shapes[access.tensor]
        outside = [
            axis
            for axis, extent in enumerate(shape)
            if rows[column + 2 * axis] < 0 or rows[column + 2 * axis + 1] > extent
        ]
        column += 2 * len(shape)
        if outside and not access.padded and all(found[name] for name in access.enclosing):
            for axis in outside:
                _check_axis(analysis, access, axis, shapes, found)


def _check_axis(
    analysis: Analysis, access: Access, axis: int, shapes: Mapping[str, Shape], found: Mapping[str, int]
) -> None:
    """Raise ShapeError for an index whose bounds leave the tensor, unless its exact values stay inside."""
    form = access.indices[axis]
    assert isinstance(form, Affine), "whole dimensions never leave a tensor"
    lower, upper = value_range(form, found, shapes)
    extent = shapes[access.tensor][axis]
    if lower < 0 or upper > extent:
        raise ShapeError(
            f"{analysis.description.name}: axis {axis} of {access.tensor} has extent {extent}, but its index "
            f"runs from {lower} to {upper - 1}; wrap it in pad({access.tensor}[...], value) or "
            f"state smaller extents{shown(analysis.description, access.span, 'read here')}"
            f"{_deciding(analysis, form, found)}"
        )


def _deciding(analysis: Analysis, form: Affine, found: Mapping[str, int]) -> str:
    """Return the places where variables of an index stand alone, which decide about their extents."""
    sources = {source.variable: source for source in reversed(analysis.extents.sources)}
    return "".join(
        shown(
            analysis.description,
            sources[name].span,
            f"'{name}' stands alone here, so its extent is {found[name]}, that of {sources[name].place}",
        )
        for name in sorted({*variables_of(form)})
        if name in sources and sources[name].place.startswith("axis")
    )


def _listed(shapes: Mapping[str, Shape]) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in shapes.items()) or "no tensors"
