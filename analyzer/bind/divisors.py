"""The divisors in indices and stated extents that depend on shapes, and so may turn out to be zero."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ...tdl import ast
from ..indices.affine import Affine, divisors_of
from ..indices.formula import Formula
from ..indices.measures import divisors_in
from ..input_regions.access import Access
from .extents import ExtentSource


@dataclass(frozen=True, slots=True)
class Divisor:
    """A divisor that depends on extents."""

    value: Formula
    """The divisor, in the extents of tensors."""

    place: str
    """The index or extent that it stands in, in words, for error messages."""

    span: ast.Span
    """The place in the text of the description."""

    enclosing: tuple[str, ...]
    """The index variables in scope. If one of them has no values, nothing is divided."""


def divisors(accesses: Iterable[Access], sources: Iterable[ExtentSource]) -> Iterator[Divisor]:
    """Yield the divisors of indices, then those of extents."""
    for access in accesses:
        for axis, index in enumerate(access.indices):
            if isinstance(index, Affine):
                place = f"the index of axis {axis} of {access.tensor}"
                for value in dict.fromkeys(divisors_of(index)):
                    yield Divisor(value, place, access.span, access.enclosing)
    for source in sources:
        for value in dict.fromkeys(divisors_in(source.extent)):
            yield Divisor(value, f"the extent of '{source.variable}'", source.span, ())
