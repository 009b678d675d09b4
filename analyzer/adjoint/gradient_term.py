"""Turn a site into its contribution: the gradient's element at a position, as a sum over free variables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

from ...tdl.ast import (
    Binary,
    Binder,
    Call,
    Description,
    Element,
    Expression,
    Extent,
    Index,
    Number,
    OpaqueElement,
    Pad,
    Reducer,
    ReducerCall,
    Variable,
)
from ...tdl.traverse import Node, substitute, transform, variable_names, walk
from ..indices.polynomial import Polynomial, Ranges, expression
from .algebra import ZERO, Product, choose, conjunction, product
from .derivative import no_adjoint
from .equations import Inversion
from .extents import KnownExtents
from .inversion import in_range, invert
from .sites import Site, origin

_SINGULAR_AT_ZERO = frozenset(
    ("log", "log2", "log10", "rsqrt", "reciprocal", "arccosh", "gamma", "gammaln", "digamma", "power")
)


def position(axis: int) -> str:
    """Return the index variable of a gradient's dimension until it gets its final name."""
    return f"@{axis}"


@dataclass(frozen=True, slots=True)
class GradientTerm:
    """The gradient's element at a position, as far as one site contributes to it."""

    positions: tuple[str, ...]
    """The index variables of the gradient: `@0`, `@1`, ..., one for each of its dimensions."""

    body: Product
    """The term that is summed, in the variables of `positions` and `free`."""

    free: tuple[Binder, ...]
    """The variables to sum over; empty if the body is the contribution."""

    named_after: Mapping[str, str]
    """By position, the variable of the forward description that suggests a name for it."""

    local: bool
    """Whether the contribution is added at one position only along a dimension, as that of an index that is
    held at a border."""

    @property
    def expression(self) -> Expression:
        body = self.body.expression
        return ReducerCall(Reducer.SUM, self.free, body) if self.free and body != ZERO else body


def gradient_term(extents: KnownExtents, site: Site) -> GradientTerm:
    """Invert the site's access and put the solution into its factor."""
    element = site.element
    positions = tuple(position(axis) for axis in range(len(element.indices)))
    names = [*site.output_variables, *(binder.name for binder in site.reduction_variables)]
    plain = Ranges({}, extents.canonical)
    stated = {binder.name: binder.extent for binder in site.reduction_variables}
    sizes = {name: plain.polynomial(stated.get(name) or extents.expression(origin(name))) for name in names}
    for axis, name in enumerate(positions):
        sizes[name] = Polynomial.atom(Extent(element.tensor, axis))
    numbers = count(1)
    found = invert(
        tuple(index for index in element.indices if isinstance(index, Expression)),
        positions,
        site.output_variables,
        tuple(names[len(site.output_variables) :]),
        Ranges(sizes, extents.canonical, tuple(_divisors(element, plain))),
        lambda base: f"{base}#fresh{next(numbers)}",
        site.conditions,
    )
    body = _Body(extents.description, site, found, positions).product()
    free = [Binder(name) for name in names if name not in found.values]
    named_after: dict[str, str] = {}
    for name, axis in found.solved_by.items():
        if name in sizes:
            named_after.setdefault(position(axis), origin(name))
    constant = (index for index in element.indices if isinstance(index, Expression))
    local = bool(site.conditions) and not all(map(variable_names, constant))
    return GradientTerm(positions, body, (*free, *found.fresh), named_after, local)


def _divisors(element: Element, plain: Ranges) -> Iterator[Polynomial]:
    """Yield what indices are divided by."""
    for node in walk(element):
        if isinstance(node, Binary) and node.operator in ("//", "%"):
            yield plain.polynomial(node.right)


@dataclass(slots=True)
class _Body:
    """A site's factor with the solution in it.

    A solved variable may leave its range, for positions that no value of the free variables reaches. Every
    access it appears in is then padded with 0. That alone makes the term vanish where such an access is a
    factor of it: the head gradient always is. If it is not, comparisons guard the term.
    """

    description: Description
    """The forward description, for error messages."""

    site: Site
    """The access, with the factor that it contributes."""

    found: Inversion
    """The values of the site's variables, in terms of the positions and the free variables."""

    positions: tuple[str, ...]
    """The index variables of the gradient, one for each of its dimensions."""

    def product(self) -> Product:
        factor = self._with_element(self.site.cofactor)
        escaping = self._escaping()
        plain = product(factor)
        guards: list[Expression] = list(self.found.guards)
        for name, conditions in escaping.items():
            if not self._has_vanishing_factor(plain, name):
                guards.extend(conditions)
        self._refuse_calls(factor, frozenset(escaping))
        padded = self._solved(factor, frozenset(escaping))
        if _may_blow_up(padded):
            guards.extend(condition for conditions in escaping.values() for condition in conditions)
            return Product(conditions=tuple(dict.fromkeys(guards))) * product(padded)
        if not guards:
            return product(padded)
        return self._guarded(product(padded), tuple(dict.fromkeys(guards)), frozenset(escaping))

    def _refuse_calls(self, factor: Expression, escaping: frozenset[str]) -> None:
        """Raise OperatorError if a call of an opaque function would have to be padded, which is
        impossible.
        """
        for node in walk(factor):
            if isinstance(node, OpaqueElement) and variable_names(node) & escaping:
                reason = f"'{node.function}' would be called, or its result be read, out of range"
                hint = "read the tensor in a stage first, and call the function for what that makes"
                raise no_adjoint(self.description, node.span, reason, hint)

    def _guarded(self, body: Product, guards: tuple[Expression, ...], escaping: frozenset[str]) -> Product:
        """Return guards around the head gradient if that is padded too, else around all."""
        head = self._solved(self.site.head, escaping)
        if body.factors == (head,) or not isinstance(head, Pad):
            return Product(conditions=guards) * body
        guarded = choose(conjunction(guards), head, ZERO)
        return replace(body, factors=tuple(guarded if factor == head else factor for factor in body.factors))

    def _with_element(self, factor: Expression) -> Expression:
        """Return the factor with the differentiated element itself written at the gradient's position."""
        element = self.site.element
        here = Element(element.tensor, tuple(Variable(name) for name in self.positions))

        def rewrite(node: Node) -> Node:
            if node == element:
                return here
            return here if isinstance(node, Pad) and node.element == here else node

        return transform(factor, rewrite)

    def _escaping(self) -> dict[str, list[Binary]]:
        """Solved variables that may leave their range, with the comparisons that would tell."""
        ranges = self.found.ranges
        conditions = {
            name: in_range(ranges.polynomial(value), ranges.extents[name], ranges)
            for name, value in self.found.values.items()
        }
        return {name: needed for name, needed in conditions.items() if needed}

    def _has_vanishing_factor(self, body: Product, name: str) -> bool:
        """Return whether an access that will be padded multiplies the whole and leaves its tensor with
        `name`.
        """
        ranges = self.found.ranges
        extent = ranges.canonical(ranges.extents[name])
        for factor in body.factors:
            if factor == self.site.head and Variable(name) in self.site.head.indices:
                return True
            access = factor.element if isinstance(factor, Pad) and factor.value == ZERO else factor
            if isinstance(access, Element):
                for axis, index in enumerate(access.indices):
                    size = ranges.canonical(Polynomial.atom(Extent(access.tensor, axis)))
                    if index == Variable(name) and size == extent:
                        return True
        return False

    def _solved(self, node: Expression, escaping: frozenset[str]) -> Expression:
        """Return the expression with the solution in it, indices in normal form, doubtful accesses padded."""

        def rewrite(part: Node) -> Node:
            match part:
                case Element():
                    return self._solved_access(part, escaping)
                case Pad(Pad(element), value):
                    return Pad(element, value)
                case _:
                    return part

        accessed = transform(node, rewrite)
        return substitute(accessed, self.found.values)

    def _solved_access(self, element: Element, escaping: frozenset[str]) -> Element | Pad:
        ranges = self.found.ranges
        indices: list[Index] = []
        doubtful = False
        for axis, index in enumerate(element.indices):
            names = variable_names(index)
            if not isinstance(index, Expression) or not names & self.found.values.keys():
                indices.append(index)
                continue
            value = ranges.polynomial(substitute(index, self.found.values))
            indices.append(expression(value))
            limit = Polynomial.atom(Extent(element.tensor, axis))
            doubtful |= bool(names & escaping) and bool(in_range(value, limit, ranges))
        solved = replace(element, indices=tuple(indices))
        return Pad(solved, ZERO) if doubtful else solved


def _may_blow_up(node: Expression) -> bool:
    """Return whether a padded access stands where its 0 could give a result that is not finite."""
    for part in walk(node):
        hidden: Iterable[Node]
        match part:
            case Binary("/" | "//" | "%", _, right):
                hidden = walk(right)
            case Binary("**"):
                hidden = walk(part)
            case Call(function) if function in _SINGULAR_AT_ZERO:
                hidden = walk(part)
            case _:
                continue
        if any(isinstance(below, Pad) and below.value == Number(0) for below in hidden):
            return True
    return False
