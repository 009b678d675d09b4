"""Indices that bend, by `minimum`, `maximum` or `abs`, split at the bend.

Reading at `minimum(i, n - 1)` is reading at `i` where `i <= n - 1`, and at `n - 1` elsewhere: two sites with
straight indices. Each holds under a condition. Their contributions to the gradient are summed.
"""

from __future__ import annotations

from dataclasses import replace

from ...tdl.ast import Binary, Call, Element, Expression, Number, Unary
from ...tdl.traverse import Node, reads_elements, transform, variable_names, walk
from .sites import Site

MOST_PIECES = 16
"""Pieces of one access: beyond, its index is compared with every position."""


def straightened(site: Site) -> tuple[Site, ...]:
    """Return the pieces of a site; the site itself if it is straight, or would fall into too many pieces."""
    pending, straight = [site], []
    while pending:
        current = pending.pop(0)
        bend = _innermost_bend(current.element)
        if bend is None:
            straight.append(current)
        else:
            pending[:0] = [_piece(current, bend, *branch) for branch in _branches(bend)]
        if len(pending) + len(straight) > MOST_PIECES:
            return (site,)
    return tuple(straight)


def _innermost_bend(element: Element) -> Call | None:
    """Return a call in an index that bends with index variables and has no other such call inside."""
    found: Call | None = None
    for index in element.indices:
        if isinstance(index, Expression) and not reads_elements(index):
            for node in walk(index):
                if isinstance(node, Call) and variable_names(node):
                    found = node
    return found


def _branches(bend: Call) -> tuple[tuple[Expression, Expression], ...]:
    """Return what a bend is, each time with what is not negative if it is that."""
    match bend:
        case Call("minimum", (left, right)):
            return (left, Binary("-", right, left)), (right, _behind(left, right))
        case Call("maximum", (left, right)):
            return (left, Binary("-", left, right)), (right, _behind(right, left))
        case Call("abs", (operand,)):
            return (operand, operand), (Unary("-", operand), _behind(Number(0), operand))
        case _:
            raise AssertionError(f"'{bend.function}' does not bend an index")


def _behind(greater: Expression, less: Expression) -> Expression:
    """Return a difference that is not negative if and only if the first is greater."""
    return Binary("-", Binary("-", greater, less), Number(1))


def _piece(site: Site, bend: Call, value: Expression, condition: Expression) -> Site:
    """Return the site where a bend is one of its branches."""

    def straight(node: Node) -> Node:
        return value if node == bend else node

    element = transform(site.element, straight)
    conditions = tuple(transform(known, straight) for known in site.conditions)
    cofactor = transform(site.cofactor, lambda node: element if node == site.element else node)
    return replace(site, element=element, cofactor=cofactor, conditions=(*conditions, condition))
