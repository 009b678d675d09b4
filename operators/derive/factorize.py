"""Sums of products, rewritten so that matrix products show.

    Sum(k: s * a * b)                     ->  s * Sum(k: a * b)                 where s does not depend on k
    Sum(k: where(c, a * b, 0))            ->  Sum(k: where(c, a, 0) * b)        where b shares nothing with c
    Sum(k, l: a[.., k] * b[.., k, l])     ->  Sum(k: a * Sum(l: b))
    Sum(k, l: a[i, k] * b[k, l] * c[l])   ->  Sum(k: a * Sum(l: b * c))         the smallest product first

The rewritten sum of two factors, neither of which has all the variables of the other, is a contraction.
Where `c` is false the value of `b` is multiplied by zero: it should be a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ...tdl.ast import Reducer
from .ahead import planned
from .ir import NOTHING, Apply, Constant, Lowered, Names, Node, Output, Reduction

Extents = Mapping[str, int]


def factorize(lowered: Lowered, extents: Extents) -> Lowered:
    """All outputs with their sums rewritten."""
    done: dict[Node, Node] = {}
    outputs = tuple(
        Output(output.variables, _rewrite(output.value, extents, done)) for output in lowered.outputs
    )
    return Lowered(outputs, lowered.variables)


def product(factors: list[Node]) -> Node:
    """The product of one or more factors."""
    result = factors[0]
    for factor in factors[1:]:
        result = _apply("*", result, factor)
    return result


def _apply(function: str, *arguments: Node) -> Apply:
    free = NOTHING.union(*(argument.free for argument in arguments))
    return Apply(function, arguments, free, any(argument.loads for argument in arguments))


def _sum(variables: tuple[str, ...], body: Node) -> Node:
    if not variables:
        return body
    return Reduction(Reducer.SUM, variables, body, body.free - set(variables), body.loads)


def _rewrite(node: Node, extents: Extents, done: dict[Node, Node]) -> Node:
    if (known := done.get(node)) is not None:
        return known
    result = node
    match node:
        case Apply(function=function, arguments=arguments):
            parts = tuple(_rewrite(argument, extents, done) for argument in arguments)
            if any(new is not old for new, old in zip(parts, arguments, strict=True)):
                result = _apply(function, *parts)
        case Reduction(reducer=reducer, variables=variables, body=body):
            new = _rewrite(body, extents, done)
            whole = node if new is body else Reduction(reducer, variables, new, node.free, node.loads)
            result = whole
            # a sum that has a plan of its own would lose the form that the plan recognises
            if planned(whole, extents) is None and reducer is Reducer.SUM and new.free.issuperset(variables):
                result = _factored(variables, new, extents)
    done[node] = result
    return result


def _factored(variables: tuple[str, ...], body: Node, extents: Extents) -> Node:
    bound = frozenset(variables)
    factors = _factors(body)
    outside = [factor for factor in factors if not factor.free & bound]
    groups = _merged([factor for factor in factors if factor.free & bound], extents)
    remaining = bound
    while groups:
        groups, remaining = _reduced_alone(groups, remaining, variables)
        if len(groups) <= 2:
            break
        groups, remaining = _smallest_pair_first(groups, remaining, variables, extents)
    inner = _sum(tuple(name for name in variables if name in remaining), product(groups))
    return product([*outside, inner])


def _factors(node: Node) -> list[Node]:
    match node:
        case Apply(function="*", arguments=(a, b)):
            return [*_factors(a), *_factors(b)]
        case Apply(function="negative", arguments=(a,)):
            return [Constant(-1), *_factors(a)]
        case Apply(function="where", arguments=(condition, x, Constant(value=0))) if not condition.loads:
            return _guarded(condition, _factors(x))
        case _:
            return [node]


def _guarded(condition: Node, factors: list[Node]) -> list[Node]:
    zero = Constant(0)
    guarded = [factor for factor in factors if factor.free & condition.free]
    others = [factor for factor in factors if not factor.free & condition.free]
    kept = product(guarded) if guarded else Constant(1)
    return [_apply("where", condition, kept, zero), *others]


def _merged(factors: list[Node], extents: Extents) -> list[Node]:
    """Factors whose variables another one has too are multiplied into the smallest such one."""
    groups = sorted(factors, key=lambda factor: _size(factor.free, extents))
    result: list[Node] = []
    while groups:
        factor = groups.pop(0)
        hosts = [index for index, group in enumerate(groups) if factor.free <= group.free]
        if hosts:
            groups[hosts[0]] = _apply("*", groups[hosts[0]], factor)
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
        result.append(_sum(own, group))
    return result, remaining


def _smallest_pair_first(
    groups: list[Node], remaining: Names, variables: tuple[str, ...], extents: Extents
) -> tuple[list[Node], Names]:
    """Multiply the two factors with the smallest product, summed over what only they have."""

    def private(a: Node, b: Node) -> Names:
        others = NOTHING.union(*(other.free for other in groups if other not in (a, b)))
        return remaining & (a.free | b.free) - others

    pairs = [(a, b) for position, a in enumerate(groups) for b in groups[position + 1 :]]
    a, b = min(pairs, key=lambda pair: _size((pair[0].free | pair[1].free) - private(*pair), extents))
    names = private(a, b)
    joined = _sum(tuple(name for name in variables if name in names), _apply("*", a, b))
    rest = [group for group in groups if group not in (a, b)]
    return _merged([*rest, joined], extents), remaining - names


def _size(names: Names, extents: Extents) -> int:
    return prod(extents[name] for name in names)
