"""Index expressions in affine normal form.

An index is a constant plus a sum of coefficients times *atoms*: index variables, floor quotients and
remainders of affine expressions by constants, minima of two affine expressions, and absolute values of one.
Constants are formulas of integers and of extents of whole tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import assert_never

from ...tdl import ast
from ...tdl.arithmetic import MAX_BITS
from ...tdl.traverse import reads_elements
from ..source_errors import error_at
from .formula import ONE, ZERO, Formula, floor_quotient, greatest, integer, least, symbol
from .measures import bits, divisors_in, sign, tree_size

MAX_INDEX_NODES = 8_000
"""Nodes of the bounds of one index. Five remainders inside each other take about as many."""

_BITS_HINT = f"the limit is {MAX_BITS:,}"
_NESTING_HINT = "nest fewer remainders, quotients, minima and absolute values, or use a stage for a part"


@dataclass(frozen=True, slots=True)
class IndexVariable:
    name: str


@dataclass(frozen=True, slots=True)
class Quotient:
    """`floor(value / divisor)` with a positive divisor."""

    value: Affine
    divisor: Formula


@dataclass(frozen=True, slots=True)
class Remainder:
    """`value - divisor * floor(value / divisor)` with a positive divisor."""

    value: Affine
    divisor: Formula


@dataclass(frozen=True, slots=True)
class Minimum:
    """The lesser one; the greater one of two is `-min(-left, -right)`."""

    left: Affine
    right: Affine


@dataclass(frozen=True, slots=True)
class Absolute:
    """`max(value, -value)`, kept as one atom so that nested ones do not double the expression."""

    value: Affine


Atom = IndexVariable | Quotient | Remainder | Minimum | Absolute


@dataclass(frozen=True, slots=True)
class Affine:
    """`constant + sum(coefficient * atom)`; atoms are distinct, coefficients are not zero."""

    constant: Formula
    terms: tuple[tuple[Formula, Atom], ...] = ()

    @classmethod
    def variable(cls, name: str) -> Affine:
        return cls(ZERO, ((ONE, IndexVariable(name)),))

    @property
    def bare(self) -> str | None:
        """The index variable, if the index is just that; else None."""
        match self.terms:
            case ((coefficient, IndexVariable(name)),) if coefficient is ONE and self.constant is ZERO:
                return name
            case _:
                return None

    def __add__(self, other: Affine) -> Affine:
        coefficients = {atom: coefficient for coefficient, atom in self.terms}
        for coefficient, atom in other.terms:
            coefficients[atom] = coefficients.get(atom, ZERO) + coefficient
        terms = tuple((c, atom) for atom, c in coefficients.items() if c is not ZERO)
        return Affine(self.constant + other.constant, terms)

    def __neg__(self) -> Affine:
        return self.scale(integer(-1))

    def scale(self, factor: Formula) -> Affine:
        if factor is ZERO:
            return Affine(ZERO)
        terms = tuple((factor * c, atom) for c, atom in self.terms)
        return Affine(factor * self.constant, terms)


@dataclass(frozen=True, slots=True)
class WholeDimension:
    """An index that may take any value of its dimension: `:` of an opaque function's argument."""


@dataclass(frozen=True, slots=True)
class DataDependent:
    """An index computed from elements of tensors: any value of its dimension."""

    span: ast.Span


Index = Affine | WholeDimension | DataDependent


@cache
def extent_symbol(tensor: str, axis: int) -> Formula:
    """Return the extent of a whole tensor's dimension."""
    return symbol(f"{tensor}.shape[{axis}]", nonnegative=True)


@cache
def extent_of(variable: str) -> Formula:
    """Return the extent of an index variable."""
    return symbol(variable, nonnegative=True)


def normal_form(description: ast.Description, index: ast.Index) -> Index:
    """Return an index's normal form.

    Raises DescriptionError if the index neither is affine nor depends on data.
    """
    if isinstance(index, ast.FullSlice):
        return WholeDimension()
    if reads_elements(index):
        return DataDependent(index.span)
    return _affine(description, index)


def nodes(index: Index) -> int:
    """Return the nodes of an index's bounds if they are written out, with nothing shared."""
    match index:
        case Affine(value, terms):
            return tree_size(value) + sum(tree_size(c) + _atom_nodes(atom) for c, atom in terms)
        case _:
            return 1


def _atom_nodes(atom: Atom) -> int:
    """Count the nodes of an atom's bounds. Those of a remainder hold the bounds of its value six times."""
    match atom:
        case IndexVariable():
            return 1
        case Remainder(value, divisor):
            return 6 * nodes(value) + 4 * tree_size(divisor)
        case Quotient(value, divisor):
            return nodes(value) + tree_size(divisor)
        case Minimum(left, right):
            return 1 + nodes(left) + nodes(right)
        case Absolute(value):
            return 1 + nodes(value)
        case _:
            assert_never(atom)


def constant(
    description: ast.Description,
    expression: ast.Expression,
    otherwise: str = "an extent consists of integers and extents of tensors",
) -> Formula:
    """Return an expression of integers and extents of tensors.

    Raises DescriptionError, saying `otherwise`.
    """
    form = _affine(description, expression)
    if form.terms:
        raise error_at(description, expression.span, otherwise)
    return form.constant


def variables_of(form: Affine) -> Iterator[str]:
    """Yield the index variables of a normal form. A variable may appear more than once."""
    for _, atom in form.terms:
        if isinstance(atom, IndexVariable):
            yield atom.name
        for inner in inside(atom):
            yield from variables_of(inner)


def divisors_of(form: Affine) -> Iterator[Formula]:
    """Yield the divisors of a normal form that depend on extents. A divisor may appear more than once."""
    yield from divisors_in(form.constant)
    for coefficient, atom in form.terms:
        yield from divisors_in(coefficient)
        if isinstance(atom, Quotient | Remainder) and atom.divisor.value is None:
            yield atom.divisor
        for inner in inside(atom):
            yield from divisors_of(inner)


def inside(atom: Atom) -> tuple[Affine, ...]:
    """Return what an atom is made of."""
    match atom:
        case IndexVariable():
            return ()
        case Quotient(value, _) | Remainder(value, _) | Absolute(value):
            return (value,)
        case Minimum(left, right):
            return left, right
        case _:
            assert_never(atom)


def _affine(description: ast.Description, node: ast.Index) -> Affine:
    def form(part: ast.Index) -> Affine:
        return _affine(description, part)

    def number(part: ast.Expression) -> Formula:
        reason = "an index is affine: use a constant here, not an index variable"
        return constant(description, part, reason)

    def bounded(result: Affine) -> Affine:
        return _within_budget(description, node, result)

    match node:
        case ast.Number(int(value)):
            return Affine(integer(value))
        case ast.Variable(name):
            return Affine.variable(name)
        case ast.Extent(tensor, axis):
            return Affine(extent_symbol(tensor, axis))
        case ast.Unary("-", operand):
            return -form(operand)
        case ast.Binary("+", left, right):
            return form(left) + form(right)
        case ast.Binary("-", left, right):
            return form(left) + -form(right)
        case ast.Binary("*", left, right):
            return bounded(_product(description, node, form(left), form(right)))
        case ast.Binary("//", left, right):
            return bounded(_quotient(form(left), _divisor(description, right, number(right))))
        case ast.Binary("%", left, right):
            return bounded(_remainder(form(left), _divisor(description, right, number(right))))
        case ast.Binary("**", left, ast.Number(int(power))) if power >= 0:
            return Affine(_power(description, node, number(left), power))
        case ast.Call("minimum", (left, right)):
            return bounded(_minimum(form(left), form(right)))
        case ast.Call("maximum", (left, right)):
            return bounded(-_minimum(-form(left), -form(right)))
        case ast.Call("abs", (operand,)):
            return bounded(_absolute(form(operand)))
        case _:
            raise error_at(description, node.span, _why_not_affine(node))


def _why_not_affine(node: ast.Index) -> str:
    match node:
        case ast.Number(value):
            return f"an index is an integer, found {value!r}"
        case ast.Binary("/", _, _):
            return "an index is an integer: use // for the floor of a quotient"
        case _:
            return "an index is affine in parts: + and -, minimum, maximum, abs, and *, // and % by constants"


def _product(description: ast.Description, node: ast.Binary, left: Affine, right: Affine) -> Affine:
    if left.terms and right.terms:
        reason = "an index is affine: a product of index variables is not; multiply by a constant"
        raise error_at(description, node.span, reason)
    return right.scale(left.constant) if not left.terms else left.scale(right.constant)


def _power(description: ast.Description, node: ast.Binary, base: Formula, power: int) -> Formula:
    if (most := bits(base) * power) > MAX_BITS:
        raise error_at(description, node.span, f"this power may have {most:,} bits", _BITS_HINT)
    return base**power


def _within_budget(description: ast.Description, node: ast.Index, form: Affine) -> Affine:
    """Return a form, if its bounds are small enough to be computed with."""
    most = max(map(bits, (form.constant, *(coefficient for coefficient, _ in form.terms))))
    if most > MAX_BITS:
        raise error_at(description, node.span, f"a constant here may have {most:,} bits", _BITS_HINT)
    if (size := nodes(form)) > MAX_INDEX_NODES:
        reason = f"the bounds of this index take {size:,} operations"
        raise error_at(description, node.span, reason, f"the limit is {MAX_INDEX_NODES:,}; {_NESTING_HINT}")
    return form


def _divisor(description: ast.Description, node: ast.Expression, divisor: Formula) -> Formula:
    """Return the divisor. If its sign depends on shapes, it is positive, which binding checks."""
    if divisor is ZERO:
        raise error_at(description, node.span, "division by zero")
    return divisor


def _quotient(value: Affine, divisor: Formula) -> Affine:
    if sign(divisor).nonpositive:
        return _quotient(-value, -divisor)
    if divisor is ONE:
        return value
    if not value.terms:
        return Affine(floor_quotient(value.constant, divisor))
    return Affine(ZERO, ((ONE, Quotient(value, divisor)),))


def _remainder(value: Affine, divisor: Formula) -> Affine:
    if sign(divisor).nonpositive:
        return -_remainder(-value, -divisor)
    if divisor is ONE:
        return Affine(ZERO)
    if not value.terms:
        return Affine(value.constant - divisor * floor_quotient(value.constant, divisor))
    return Affine(ZERO, ((ONE, Remainder(value, divisor)),))


def _minimum(left: Affine, right: Affine) -> Affine:
    if left.terms or right.terms:
        return Affine(ZERO, ((ONE, Minimum(left, right)),))
    return Affine(least(left.constant, right.constant))


def _absolute(value: Affine) -> Affine:
    if value.terms:
        return Affine(ZERO, ((ONE, Absolute(value)),))
    return Affine(greatest(value.constant, -value.constant))
