"""Rewrite sums of products so that matrix products appear.

    Sum(k: s * a * b)                     ->  s * Sum(k: a * b)                 s does not depend on k
    Sum(k: a * b / d)                     ->  Sum(k: a / d * b)                 a has the variables of d
    Sum(k: where(c, a * b, 0))            ->  Sum(k: where(c, a, 0) * b)        a has the variables of c
    Sum(k, l: a[.., k] * b[.., k])        ->  L * Sum(k: a * b)                 L is the extent of l
    Sum(k, l: a[.., k] * b[.., k, l])     ->  Sum(k: a * Sum(l: b))
    Sum(k, l: a[i, k] * b[k, l] * c[l])   ->  Sum(k: a * Sum(l: b * c))         the smallest product first
    Sum(k: a[i, k] * (b[j, k] - c[i]))    ->  Sum(k: a * b) - c * Sum(k: a)     fewer elements are touched
    Sum(k: (a[i, k] - b[j, k])**2)        ->  maximum(Sum(k: a**2) + Sum(k: b**2) - 2 * Sum(k: a * b), 0)

The rewritten sum of two factors, neither of which has all the variables of the other, is a contraction.
If `c` is false the value of `b` is multiplied by zero, so `b` has to be a number: elements of tensors and
sums count as numbers, other factors stay under the conditions whose variables they share. A square that is
expanded is exact up to rounding errors of its terms. The `maximum` keeps it from becoming negative.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....tdl.ast import Reducer
from ..nodes.ir import NOTHING, Apply, Constant, Load, Lowered, Names, Node, Output, Reduction
from .ahead import planned
from .expansion import Extents, expanded, size
from .guarded import apply, reduction

ZERO, ONE = Constant(0), Constant(1)


def factorize(lowered: Lowered, extents: Extents) -> Lowered:
    """Rewrite the sums of all outputs."""
    done: dict[Node, Node] = {}
    outputs = tuple(
        Output(output.variables, _rewrite(output.value, extents, done)) for output in lowered.outputs
    )
    return Lowered(outputs, lowered.variables)


def product(factors: list[Node]) -> Node:
    """Multiply one or more factors."""
    result = factors[0]
    for factor in factors[1:]:
        result = _times(result, factor)
    return result


def _times(a: Node, b: Node) -> Node:
    """Multiply. A mask without variables besides those of the other factor chooses between that and 0."""
    for factor, other in ((a, b), (b, a)):
        if isinstance(factor, Constant) and factor.value == 1:
            return other
        if (condition := _condition(factor)) is not None and condition.free <= other.free:
            return apply("where", condition, other, ZERO)
    return apply("*", a, b)


def _mask(condition: Node) -> Node:
    """Return a factor that is 1 where a condition holds, 0 elsewhere."""
    return apply("where", condition, ONE, ZERO)


def _condition(factor: Node) -> Node | None:
    """Return the condition of a factor that is a mask."""
    match factor:
        case Apply(function="where", arguments=(condition, Constant(value=1), Constant(value=0))):
            return condition
        case _:
            return None


def _rewrite(node: Node, extents: Extents, done: dict[Node, Node]) -> Node:
    if (known := done.get(node)) is not None:
        return known
    result = node
    match node:
        case Apply(function=function, arguments=arguments):
            parts = tuple(_rewrite(argument, extents, done) for argument in arguments)
            if any(new is not old for new, old in zip(parts, arguments, strict=True)):
                result = apply(function, *parts)
        case Reduction(reducer=reducer, variables=variables, body=body):
            new = _rewrite(body, extents, done)
            whole = node if new is body else Reduction(reducer, variables, new, node.free, node.loads)
            result = whole
            # a sum with a special algorithm would lose the form by which it is recognised
            if planned(whole, extents) is None and reducer is Reducer.SUM:
                absent = frozenset(variables) - new.free
                result = _term(variables, size(absent, extents), (new,), extents)
    done[node] = result
    return result


def _factored(variables: tuple[str, ...], body: Node, extents: Extents) -> Node:
    bound = frozenset(variables)
    factors = _factors(body, bound)
    outside = [factor for factor in factors if not factor.free & bound]
    inside = [factor for factor in factors if factor.free & bound]
    conditions = [condition for factor in outside if (condition := _condition(factor)) is not None]
    multiplied = [factor for factor in outside if _condition(factor) is None]
    result = product([*multiplied, _summed(variables, inside, extents)])
    for condition in conditions:
        result = apply("where", condition, result, ZERO)
    return result


def _summed(variables: tuple[str, ...], factors: list[Node], extents: Extents) -> Node:
    """Return the sum of a product all of whose factors depend on variables of the sum."""
    expansion = expanded(factors, frozenset(variables), extents)
    if expansion is not None:
        total: Node | None = None
        for coefficient, term in expansion.terms:
            part = _term(variables, coefficient, term, extents)
            total = part if total is None else apply("+", total, part)
        assert total is not None
        return apply("maximum", total, ZERO) if expansion.nonnegative else total
    groups = _merged(factors, extents)
    remaining = frozenset(variables)
    while groups:
        groups, remaining = _reduced_alone(groups, remaining, variables)
        if len(groups) <= 2:
            break
        groups, remaining = _smallest_pair_first(groups, remaining, variables, extents)
    return reduction(Reducer.SUM, tuple(name for name in variables if name in remaining), product(groups))


def _term(variables: tuple[str, ...], coefficient: int, factors: Sequence[Node], extents: Extents) -> Node:
    """Return a product, summed over the variables that its factors have.

    The coefficient counts the values of the others.
    """
    free = NOTHING.union(*(factor.free for factor in factors))
    present = tuple(name for name in variables if name in free)
    value = product([*factors, Constant(coefficient)])
    return _factored(present, value, extents) if present else value


def _factors(node: Node, bound: Names) -> list[Node]:
    match node:
        case Apply(function="*", arguments=(a, b)):
            return [*_factors(a, bound), *_factors(b, bound)]
        case Apply(function="negative", arguments=(a,)):
            return [Constant(-1), *_factors(a, bound)]
        case Apply(function="/", arguments=(a, divisor)):
            return _divided(node, _factors(a, bound), divisor)
        case Apply(function="where", arguments=(condition, x, Constant(value=0))):
            if not condition.free & bound:
                return [_mask(condition), *_factors(x, bound)]
            return [node] if condition.loads else _guarded(condition, _factors(x, bound))
        case _:
            return [node]


def _divided(quotient: Node, factors: list[Node], divisor: Node) -> list[Node]:
    """Return the factors of a quotient, of which the one with fewest variables that has the divisor's is
    divided.
    """
    hosts = [factor for factor in factors if divisor.free <= factor.free and _condition(factor) is None]
    if len(factors) < 2 or not hosts:
        return [quotient]
    host = factors.index(min(hosts, key=lambda factor: len(factor.free)))
    return [*factors[:host], apply("/", factors[host], divisor), *factors[host + 1 :]]


def _guarded(condition: Node, factors: list[Node]) -> list[Node]:
    """Return factors under a condition: those that might not be numbers if it fails stay under it."""
    kept = [factor for factor in factors if factor.free & condition.free and not _is_number(factor)]
    others = [factor for factor in factors if factor not in kept]
    return [apply("where", condition, product(kept), ZERO) if kept else _mask(condition), *others]


def _is_number(factor: Node) -> bool:
    """Return whether a factor is as finite as the tensors are."""
    match factor:
        case Constant() | Load():
            return True
        case Reduction(reducer=reducer):
            return reducer is Reducer.SUM
        case Apply():
            return _condition(factor) is not None
        case _:
            return False


def _merged(factors: list[Node], extents: Extents) -> list[Node]:
    """Multiply factors whose variables another one has too into the smallest such one."""
    groups = sorted(factors, key=lambda factor: size(factor.free, extents))
    result: list[Node] = []
    while groups:
        factor = groups.pop(0)
        hosts = [index for index, group in enumerate(groups) if factor.free <= group.free]
        if hosts:
            groups[hosts[0]] = _times(groups[hosts[0]], factor)
        else:
            result.append(factor)
    return result


def _reduced_alone(
    groups: list[Node], remaining: Names, variables: tuple[str, ...]
) -> tuple[list[Node], Names]:
    """Sum variables that only one of several factors has over that factor alone."""
    if len(groups) < 2:
        return groups, remaining
    result = []
    for group in groups:
        others = NOTHING.union(*(other.free for other in groups if other is not group))
        own = tuple(name for name in variables if name in remaining & group.free - others)
        remaining -= frozenset(own)
        result.append(reduction(Reducer.SUM, own, group))
    return result, remaining


def _smallest_pair_first(
    groups: list[Node], remaining: Names, variables: tuple[str, ...], extents: Extents
) -> tuple[list[Node], Names]:
    """Multiply the two factors with the smallest product, summed over what only they have."""

    def private(a: Node, b: Node) -> Names:
        others = NOTHING.union(*(other.free for other in groups if other not in (a, b)))
        return remaining & (a.free | b.free) - others

    pairs = [(a, b) for position, a in enumerate(groups) for b in groups[position + 1 :]]
    a, b = min(pairs, key=lambda pair: size((pair[0].free | pair[1].free) - private(*pair), extents))
    names = private(a, b)
    joined = reduction(Reducer.SUM, tuple(name for name in variables if name in names), _times(a, b))
    rest = [group for group in groups if group not in (a, b)]
    return _merged([*rest, joined], extents), remaining - names
