"""The body of a reducer as conditions and factors: `where(c and d, a * b, identity)`, in any spelling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce as folded

from ....tdl.ast import Reducer
from ..nodes import affine
from ..nodes.affine import AffineIndex
from ..nodes.functions import identity
from ..nodes.ir import NOTHING, Apply, Constant, Iota, Names, Node, Reduction, union

OPPOSITE = {"<": ">=", ">=": "<", "<=": ">", ">": "<=", "==": "!=", "!=": "=="}
TRUTH = affine.COMPARISONS | {"and", "or", "not"}


@dataclass(frozen=True, slots=True)
class Guarded:
    """The product of the factors where all conditions hold, else the reducer's identity.

    Only a Sum has several factors, or none, whose product is 1.
    """

    conditions: tuple[Node, ...]
    factors: tuple[Node, ...]

    def __add__(self, other: Guarded) -> Guarded:
        return Guarded((*self.conditions, *other.conditions), (*self.factors, *other.factors))


def guarded(reducer: Reducer, body: Node) -> Guarded:
    """Return the conditions and factors of a reducer's body."""
    neutral = identity(reducer)
    match body:
        case Apply(function="where", arguments=(condition, x, Constant(value=value))) if value == neutral:
            return Guarded(tuple(_conjuncts(condition)), ()) + guarded(reducer, x)
        case Apply(function="where", arguments=(condition, Constant(value=value), x)) if value == neutral:
            return Guarded(tuple(_conjuncts(apply("not", condition))), ()) + guarded(reducer, x)
    if reducer is not Reducer.SUM:
        return Guarded((), (body,))
    match body:
        case Constant(value=value) if value == 1:
            return Guarded((), ())
        case Apply(function="*", arguments=(a, b)):
            return guarded(reducer, a) + guarded(reducer, b)
        case Apply(function="negative", arguments=(a,)):
            return Guarded((), (Constant(-1),)) + guarded(reducer, a)
        case Apply(function=function) if function in TRUTH:
            return Guarded(tuple(_conjuncts(body)), ())
        case _:
            return Guarded((), (body,))


def _conjuncts(condition: Node) -> list[Node]:
    """Return conditions that all hold exactly where one holds."""
    match condition:
        case Apply(function="and", arguments=(a, b)):
            return [*_conjuncts(a), *_conjuncts(b)]
        case Apply(function="not", arguments=(Apply(function="not", arguments=(a,)),)):
            return _conjuncts(a)
        case Apply(function="not", arguments=(Apply(function="or", arguments=(a, b)),)):
            return [*_conjuncts(apply("not", a)), *_conjuncts(apply("not", b))]
        case Apply(function="not", arguments=(Apply(function=function, arguments=(a, b)),)) if (
            function in OPPOSITE and (not condition.loads or function in ("==", "!="))
        ):
            # NaN makes the negation of a comparison differ from the opposite comparison
            return [apply(OPPOSITE[function], a, b)]
        case _:
            return [condition]


def apply(function: str, *arguments: Node) -> Apply:
    """Return a function of nodes."""
    return Apply(function, arguments, union(arguments), any(argument.loads for argument in arguments))


def product(factors: Sequence[Node]) -> Node:
    """Return the product of factors; 1 if there are none."""
    return folded(lambda a, b: apply("*", a, b), factors) if factors else Constant(1)


def chosen(reducer: Reducer, conditions: Sequence[Node], value: Node) -> Node:
    """Return the value where all conditions hold, else the reducer's identity."""
    if not conditions:
        return value
    return apply("where", every(conditions), value, Constant(identity(reducer)))


def every(conditions: Sequence[Node]) -> Node:
    """Return whether all of one or more conditions hold."""
    return folded(lambda a, b: apply("and", a, b), conditions)


def reduction(reducer: Reducer, variables: Sequence[str], body: Node) -> Node:
    """Return a reduction; the body itself if nothing is reduced."""
    if not variables:
        return body
    return Reduction(reducer, tuple(variables), body, body.free - set(variables), body.loads)


def depending(nodes: Sequence[Node], names: Names) -> tuple[Node, ...]:
    """Return those of the nodes that depend on any of the variables."""
    return tuple(node for node in nodes if node.free & names)


def without(nodes: Sequence[Node], taken: Sequence[Node]) -> tuple[Node, ...]:
    """Return those of the nodes that are not among others."""
    return tuple(node for node in nodes if node not in taken)


def free(nodes: Sequence[Node]) -> Names:
    return NOTHING.union(*(node.free for node in nodes))


def form(node: Node) -> AffineIndex | None:
    """Return the affine form of sums, differences and multiples of index variables; None for all else."""
    match node:
        case Constant(value=bool()):
            return None
        case Constant(value=int(value)):
            return AffineIndex((), value)
        case Iota(variable=name):
            return affine.variable(name)
        case Apply(function="negative", arguments=(x,)):
            inner = form(x)
            return None if inner is None else affine.added(affine.ZERO, inner, -1)
        case Apply(function="+" | "-" | "*" as function, arguments=(x, y)) if not node.loads:
            a, b = form(x), form(y)
            return None if a is None or b is None else affine.applied(function, a, b, {})
        case _:
            return None
