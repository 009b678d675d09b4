"""Solve a description's ranks and lengths of stars, for the ranks that are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from ...errors import ShapeError
from ...support.wording import counted
from ...tdl import ast
from ...tdl.printer import format_expression
from ...tdl.ranks import Equation, Tensor, Unknown, in_order
from ..source_errors import shown


def solve_ranks(
    description: ast.Description, ranks: Mapping[str, int] | Mapping[Tensor, int]
) -> dict[Unknown, int]:
    """Return `ranks` and everything that follows from them: ranks of tensors, and lengths of stars.

    Raises ShapeError if two ranks disagree, or if a tensor has fewer dimensions than indices.
    """
    values: dict[Unknown, int] = dict(ranks.items())
    origins: dict[Unknown, Equation] = {}
    for equation, unknown in in_order(description, ranks):
        used = equation.plain + sum(values[length] for length in equation.lengths if length != unknown)
        if unknown == equation.tensor:
            values[unknown] = used
            continue
        left, times = values[equation.tensor] - used, equation.lengths.count(unknown)
        if left != 0 if unknown is None else left < 0 or left % times:
            raise _misfit(description, equation, values, origins)
        if unknown is not None:
            values[unknown], origins[unknown] = left // times, equation
    return values


def _misfit(
    description: ast.Description,
    equation: Equation,
    values: Mapping[Unknown, int],
    origins: Mapping[Unknown, Equation],
) -> ShapeError:
    """Return the error: the rank, the number of indices, and the access that decided about each star."""
    decided = [length for length in equation.lengths if length in values]
    indices = counted(equation.plain + sum(map(values.__getitem__, decided)), "index", "indices")
    times = len(equation.lengths) - len(decided)
    more = f" and {times} times '*{equation.lengths[-1].star}'" if times > 1 else " or more" if times else ""
    reasons = [
        f"'*{length.star}' stands for {counted(values[length], 'variable')} in {_written(origins[length])}"
        for length in dict.fromkeys(decided)
    ]
    since = ", since " + " and ".join(reasons) if reasons else ""
    done = "read" if isinstance(equation.node, ast.Element) else "produced"
    dimensions = counted(values[equation.tensor], "dimension")
    return ShapeError(
        f"{description.name}: {_name(equation.tensor)} has {dimensions}, but is {done} with {indices}{more}"
        f"{since}; give tensors whose ranks fit, or change the indices"
        + shown(description, equation.node.span, "here")
    )


def _written(equation: Equation) -> str:
    match equation.node:
        case ast.Element() as element:
            return format_expression(element)
        case ast.Lambda():
            return _name(equation.tensor)
        case _:
            assert_never(equation.node)


def _name(tensor: Tensor) -> str:
    return f"output_{tensor}" if isinstance(tensor, int) else tensor
