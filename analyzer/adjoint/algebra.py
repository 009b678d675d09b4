"""Sums and products of expressions, simplified as a person would write them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial, reduce

from ...tdl.ast import Binary, Call, Element, Expression, Number, Pad, Unary
from ...tdl.traverse import variable_names

ZERO = Number(0)
ONE = Number(1)

_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


@dataclass(frozen=True, slots=True)
class Product:
    """`coefficient * factors / divisors` if all conditions hold, and 0 otherwise.

    Elements of tensors are numbers whether a condition holds or not. So in the expression a condition stands
    around the factors that are not elements, which need it, or around the one element that has all its
    variables. The other factors can then leave a sum.
    """

    coefficient: int | float = 1
    """The number that multiplies everything."""

    factors: tuple[Expression, ...] = ()
    """The expressions that are multiplied."""

    divisors: tuple[Expression, ...] = ()
    """The expressions that the product is divided by."""

    conditions: tuple[Expression, ...] = ()
    """Comparisons. If one does not hold, the product is 0."""

    def __mul__(self, other: Product) -> Product:
        conditions = dict.fromkeys(self.conditions + other.conditions)
        factors, divisors = self.factors + other.factors, list(self.divisors + other.divisors)
        kept: list[Expression] = []
        for factor in factors:
            if factor in divisors:
                divisors.remove(factor)
            else:
                kept.append(factor)
        return Product(self.coefficient * other.coefficient, tuple(kept), tuple(divisors), tuple(conditions))

    def same_up_to_coefficient(self, other: Product) -> bool:
        return (self.factors, self.divisors, self.conditions) == (
            other.factors,
            other.divisors,
            other.conditions,
        )

    @property
    def expression(self) -> Expression:
        if self.coefficient == 0:
            return ZERO
        factors, around = self._masked()
        result = _signed(self.coefficient, factors)
        for divisor in self.divisors:
            result = Binary("/", result, divisor)
        return choose(conjunction(around), result, ZERO) if around else result

    def _masked(self) -> tuple[tuple[Expression, ...], tuple[Expression, ...]]:
        """Return the factors with conditions around some of them, and the conditions that stand
        around all.
        """
        factors, around = self.factors, self.conditions
        others = [factor for factor in factors if not _is_element(factor)]
        if not around or self.divisors or len(factors) == max(len(others), 1):
            return factors, around
        if others:
            place = factors.index(others[0])
            masked = choose(conjunction(around), _signed(1, tuple(others)), ZERO)
            kept = [
                masked if n == place else f for n, f in enumerate(factors) if n == place or f not in others
            ]
            return tuple(kept), ()
        masks: dict[int, list[Expression]] = {}
        left = []
        for condition in around:
            hosts = [n for n, f in enumerate(factors) if variable_names(f) >= variable_names(condition)]
            if hosts:
                host = min(hosts, key=lambda n: len(variable_names(factors[n])))
                masks.setdefault(host, []).append(condition)
            else:
                left.append(condition)
        kept = [
            choose(conjunction(tuple(masks[n])), factor, ZERO) if n in masks else factor
            for n, factor in enumerate(factors)
        ]
        return tuple(kept), tuple(left)


def _signed(coefficient: int | float, factors: tuple[Expression, ...]) -> Expression:
    result: Expression
    if abs(coefficient) != 1 or not factors:
        result, rest = Number(coefficient), factors
    else:
        result, rest = factors[0], factors[1:]
        if coefficient < 0:
            result = Unary("-", result)
    for factor in rest:
        result = Binary("*", result, factor)
    return result


def _is_element(factor: Expression) -> bool:
    match factor:
        case Element() | Pad(value=Number()):
            return True
        case _:
            return False


def product(node: Expression) -> Product:
    """Return an expression's factors. `where(c, x, 0)` counts as `x` under the condition `c`."""
    match node:
        case Number(value):
            return Product(value)
        case Unary("-", operand):
            inner = product(operand)
            return replace(inner, coefficient=-inner.coefficient)
        case Binary("*", left, right):
            return product(left) * product(right)
        case Binary("/", left, right):
            return product(left) * _reciprocal(right)
        case Call("where", (condition, then, other)) if other == ZERO:
            return Product(conditions=tuple(_conjuncts(condition))) * product(then)
        case Call("where", (condition, then, other)) if then == ZERO:
            return Product(conditions=(negation(condition),)) * product(other)
        case _:
            return Product(factors=(node,))


def _reciprocal(node: Expression) -> Product:
    match node:
        case Number(1):
            return Product()
        case Unary("-", operand):
            return replace(_reciprocal(operand), coefficient=-1)
        case Binary("*", left, right):
            return _reciprocal(left) * _reciprocal(right)
        case _:
            return Product(divisors=(node,))


def _conjuncts(condition: Expression) -> Iterable[Expression]:
    match condition:
        case Binary("and", left, right):
            yield from _conjuncts(left)
            yield from _conjuncts(right)
        case _:
            yield condition


def conjunction(conditions: tuple[Expression, ...]) -> Expression:
    """`a and b and ...`; at least one condition."""
    return reduce(partial(Binary, "and"), conditions)


def negation(condition: Expression) -> Expression:
    match condition:
        case Binary(operator, left, right) if operator in _OPPOSITE:
            return Binary(_OPPOSITE[operator], left, right)
        case Unary("not", operand):
            return operand
        case _:
            return Unary("not", condition)


def multiply(*factors: Expression) -> Expression:
    result = Product()
    for factor in factors:
        result = result * product(factor)
    return result.expression


def divide(dividend: Expression, divisor: Expression) -> Expression:
    return (product(dividend) * _reciprocal(divisor)).expression


def negate(operand: Expression) -> Expression:
    return multiply(Number(-1), operand)


def add(*summands: Expression) -> Expression:
    """Return the sum, with like terms collected."""
    collected: list[Product] = []
    for term in (product(term) for summand in summands for term in _terms(summand, 1)):
        for position, other in enumerate(collected):
            if term.same_up_to_coefficient(other):
                total = term.coefficient + other.coefficient
                collected[position] = replace(other, coefficient=total)
                break
        else:
            collected.append(term)
    return _sum([term for term in collected if term.coefficient != 0])


def subtract(left: Expression, right: Expression) -> Expression:
    return add(left, negate(right))


def _terms(node: Expression, sign: int) -> Iterable[Expression]:
    match node:
        case Binary("+", left, right):
            yield from _terms(left, sign)
            yield from _terms(right, sign)
        case Binary("-", left, right):
            yield from _terms(left, sign)
            yield from _terms(right, -sign)
        case _:
            yield node if sign > 0 else negate(node)


def _sum(terms: list[Product]) -> Expression:
    if not terms:
        return ZERO
    first = next((i for i, term in enumerate(terms) if term.coefficient > 0), 0)
    result = terms[first].expression
    for term in terms[:first] + terms[first + 1 :]:
        if term.coefficient < 0:
            result = Binary("-", result, replace(term, coefficient=-term.coefficient).expression)
        else:
            result = Binary("+", result, term.expression)
    return result


def choose(condition: Expression, then: Expression, other: Expression) -> Expression:
    """`where(condition, then, other)`, or the value that both cases agree on."""
    return then if then == other else Call("where", (condition, then, other))


def power(base: Expression, exponent: Expression) -> Expression:
    match exponent:
        case Number(0):
            return ONE
        case Number(1):
            return base
        case _:
            return Binary("**", base, exponent)
