"""The symbolic analysis of a description, before any shape is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING

from ...errors import OperatorError
from ...tdl import ast
from ...tdl.traverse import walk
from ..indices.affine import Affine, extent_of, extent_symbol
from ..indices.evaluate import IntegerProgram, compile_integers
from ..indices.formula import ZERO, Formula
from ..indices.intervals import Interval, bounds, lower_symbol, upper_symbol
from ..indices.region import Shape
from ..input_regions.access import Access, IterationSpace, iteration
from ..input_regions.reader import TensorAccesses
from ..input_regions.refinements import Suspect, suspects
from ..strategies.discover import Refusal, SplitVariable, discover
from .bound import Bound
from .divisors import Divisor, divisors
from .extents import SymbolicExtents, infer
from .flops import Count, count_operations
from .shapes import checked_shapes

if TYPE_CHECKING:
    import sympy

Axis = tuple[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """The symbolic analysis of a specialised description without stages."""

    description: ast.Description
    """The description that was analysed."""

    iteration: IterationSpace
    """Its variables and accesses, in text order."""

    accesses: tuple[Access, ...]
    """The distinct accesses, grouped by tensor."""

    ranks: Mapping[str, int]
    """The number of dimensions of every tensor that is read."""

    axes: tuple[Axis, ...]
    """Every dimension whose extent matters."""

    symbols: tuple[Formula, ...]
    """The extents of `axes`, as symbols."""

    extents: SymbolicExtents
    """The extent of every variable, and the sources that must agree with it."""

    splits: tuple[SplitVariable | Refusal, ...]
    """For every variable, how it may be split or why it may not."""

    elementwise: bool
    """Whether there are no reducers and every access is exactly the output variables, in order."""

    in_place: frozenset[str]
    """The tensors that are read only at the output variables, in order, whatever else is read."""

    readings: tuple[TensorAccesses, ...]
    """The accesses of each tensor."""

    suspects: tuple[Suspect, ...]
    """The accesses whose bounds may not be exact."""

    output_positions: tuple[tuple[int, ...], ...]
    """For each output, the positions of its variables."""

    extent_values: IntegerProgram
    """Computes the extent of every variable, then the extent from each of `extents.sources`."""

    regions: IntegerProgram
    """Computes lower and upper bound for each dimension of each access, from the ends of the variables and
    the extents."""

    divisors: tuple[Divisor, ...]
    """The divisors in indices and extents that depend on shapes."""

    divisor_values: IntegerProgram
    """Computes `divisors` from the extents."""

    operations: Count | None
    """Counts floating-point operations; None if an opaque function hides some."""

    _bounds: dict[tuple[Shape, ...], Bound] = field(default_factory=dict, repr=False)
    """The operators bound so far, by the shapes of the tensors."""

    @property
    def variables(self) -> tuple[str, ...]:
        return self.iteration.variables

    @property
    def reads(self) -> frozenset[str]:
        """The tensors whose elements are read, not only the shape."""
        return frozenset(self.ranks)

    @property
    def refined(self) -> frozenset[int]:
        """Dimensions, counted over all accesses, whose bounds the reader may replace by closer ones."""
        return frozenset(
            suspect.start + axis for suspect in self.suspects for axis in range(len(suspect.access.indices))
        )

    @property
    def flops(self) -> sympy.Expr | None:
        """Floating-point operations, a polynomial in the extents of the variables; see `flops`."""
        if self.operations is None:
            return None
        from ..indices.symbolic import symbolic  # sympy is slow to import

        return symbolic(self.operations.formula([extent_of(name) for name in self.variables]))

    @property
    def elements_touched(self) -> sympy.Expr:
        """Elements of input regions and outputs, in the extents of variables and tensors; see `touched`."""
        from .elements_touched import elements_formula  # sympy is slow to import

        return elements_formula(self.description, self.accesses, self.extents.of)

    def bind(self, shapes: Mapping[str, Sequence[int]]) -> Bound:
        """Return the description for concrete shapes; equal shapes give the same object.

        Raises ShapeError.
        """
        checked = checked_shapes(self.description, self.ranks, shapes)
        key = tuple(checked.values())
        bound = self._bounds.get(key)
        if bound is None:
            bound = self._bounds[key] = Bound(self, checked)
        return bound

    def extents_of(self, shapes: Mapping[str, Shape]) -> list[int]:
        """Return the extents of `axes`."""
        return [shapes[tensor][axis] for tensor, axis in self.axes]


@cache
def analyze(description: ast.Description) -> Analysis:
    """Analyse a specialised description without stages; equal descriptions share one analysis.

    Raises DescriptionError for an index that is not affine and for an extent that cannot be inferred.
    """
    if description.stages:
        raise OperatorError(f"{description.name} has stages: split_stages makes a description of each")
    found = iteration(description)
    accesses = _grouped(found)
    ranks = {access.tensor: len(access.indices) for access in accesses}
    axes = tuple(_axes(description, ranks))
    extents = infer(found)
    symbols = tuple(extent_symbol(tensor, axis) for tensor, axis in axes)
    ends = [symbol for name in found.variables for symbol in (lower_symbol(name), upper_symbol(name))]
    values = [extents.of[name] for name in found.variables] + [source.extent for source in extents.sources]
    regions = [bound for access in accesses for interval in _regions(access) for bound in interval]
    in_place = _in_place(found)
    found_divisors = tuple(divisors(accesses, extents.sources))
    return Analysis(
        description=description,
        iteration=found,
        accesses=accesses,
        ranks=ranks,
        axes=axes,
        symbols=symbols,
        extents=extents,
        splits=discover(found),
        elementwise=not found.reductions and in_place == frozenset(ranks),
        in_place=in_place,
        readings=tuple(_readings(found.variables, accesses)),
        suspects=suspects(accesses),
        output_positions=tuple(
            tuple(found.variables.index(binder.name) for binder in output.variables)
            for output in description.outputs
        ),
        extent_values=compile_integers(values, symbols),
        regions=compile_integers(regions, [*ends, *symbols]),
        divisors=found_divisors,
        divisor_values=compile_integers([divisor.value for divisor in found_divisors], symbols),
        operations=count_operations(description, found.variables),
    )


def _grouped(found: IterationSpace) -> tuple[Access, ...]:
    """Return distinct accesses, those of one tensor next to each other, in the order of the tensors."""
    distinct: dict[tuple[object, ...], Access] = {}
    for access in found.accesses:
        distinct.setdefault((access.tensor, access.indices, access.padded, access.enclosing), access)
    order = {name: position for position, name in enumerate(found.description.tensor_names)}
    return tuple(sorted(distinct.values(), key=lambda access: order[access.tensor]))


def _axes(description: ast.Description, ranks: Mapping[str, int]) -> Iterator[Axis]:
    """Yield every dimension whose extent matters: those of tensors that are read, and those mentioned."""
    mentioned = {(n.tensor, n.axis) for n in walk(description) if isinstance(n, ast.Extent)}
    for tensor in description.tensor_names:
        axes = set(range(ranks.get(tensor, 0))) | {axis for name, axis in mentioned if name == tensor}
        yield from ((tensor, axis) for axis in sorted(axes))


def _regions(access: Access) -> Iterator[Interval]:
    """Yield for each dimension the lower and upper bound, half-open, not yet clipped."""
    for axis, index in enumerate(access.indices):
        if isinstance(index, Affine):
            interval = bounds(index)
            yield Interval(interval.first, interval.last + 1)
        else:
            yield Interval(ZERO, extent_symbol(access.tensor, axis))


def _readings(variables: tuple[str, ...], accesses: tuple[Access, ...]) -> Iterator[TensorAccesses]:
    start = 0
    for tensor, group in groupby(accesses, key=lambda access: access.tensor):
        members = list(group)
        rank = len(members[0].indices)
        enclosing = tuple(tuple(variables.index(name) for name in access.enclosing) for access in members)
        yield TensorAccesses(tensor, rank, start, len(members), enclosing)
        start += rank * len(members)


def _in_place(found: IterationSpace) -> frozenset[str]:
    """Return the tensors read only at the output's own index, by every output that reads them."""
    if found.reductions or found.opaques:
        return frozenset()
    outputs = [tuple(binder.name for binder in output.variables) for output in found.description.outputs]
    elsewhere = {access.tensor for access in found.accesses if not access.follows(access.enclosing)}
    same_rank = len({len(variables) for variables in outputs}) == 1
    names = {access.tensor for access in found.accesses} if same_rank else set()
    return frozenset(names - elsewhere)
