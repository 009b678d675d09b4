"""Write out starred variables: `*i` stands for as many index variables as the ranks of the tensors say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import assert_never

from ...errors import ShapeError
from ...support.wording import counted
from ...tdl import ast
from ...tdl.printer import format_expression
from ...tdl.ranks import Length, RankEquation, Tensor, Unknown, in_order, undecided_stars
from ...tdl.traverse import Node, custom_reducers, transform, walk
from ..source_errors import shown


def expand_stars(
    description: ast.Description, ranks: Mapping[str, int]
) -> tuple[ast.Description, dict[str, int]]:
    """Return the description with every `*i` replaced by `i0, i1, ...`, and the ranks of all tensors.

    A star's name means the same variables in all outputs. In each stage it means separate ones. Raises
    ShapeError if ranks do not fit the indices or leave a star's number of variables open.
    """
    solved = solve_ranks(description, ranks)
    for binder in undecided_stars(description, ranks):
        raise ShapeError(
            f"{description.name}: the ranks of the tensors do not say how many variables '*{binder.name}' "
            f"stands for; give the rank of a tensor that it indexes" + shown(description, binder.span, "here")
        )
    taken = {node.name for node in walk(description) if isinstance(node, ast.Variable | ast.Binder)}
    taken |= set(description.tensor_names) | {str(reducer) for reducer in custom_reducers(description)}
    taken |= set(description.opaques) | {stage.name for stage in description.stages}
    names: dict[str, dict[str, tuple[str, ...]]] = {}
    for unknown, value in solved.items():
        if isinstance(unknown, Length):
            chosen = names.setdefault(unknown.scope, {})
            used = taken.union(*chosen.values())
            chosen[unknown.star] = tuple(_fresh(unknown.star, value, used))
    stages = tuple(
        replace(stage, value=_spread(stage.value, names.get(stage.name, {}))) for stage in description.stages
    )
    outputs = tuple(_spread(value, names.get("", {})) for value in description.outputs)
    known = {tensor: value for tensor, value in solved.items() if isinstance(tensor, str)}
    return replace(description, stages=stages, outputs=outputs), known


def _spread(value: ast.Lambda, names: Mapping[str, tuple[str, ...]]) -> ast.Lambda:
    """Return a lambda with the variables `names` in the places of its stars."""

    def spread(node: Node) -> Node:
        match node:
            case ast.Lambda() | ast.ReducerCall():
                return replace(node, variables=tuple(_binders(node.variables, names)))
            case ast.Element() | ast.OpaqueElement():
                return replace(node, indices=tuple(_indices(node.indices, names)))
            case _:
                return node

    return transform(value, spread)


def _fresh(star: str, number: int, taken: set[str]) -> Iterator[str]:
    """Yield names `i0`, `i1`, ... that mean nothing else."""
    candidates = (f"{star}{suffix}" for suffix in count())
    for _ in range(number):
        name = next(name for name in candidates if name not in taken)
        yield name


def _binders(binders: tuple[ast.Binder, ...], names: Mapping[str, tuple[str, ...]]) -> Iterator[ast.Binder]:
    for binder in binders:
        if binder.star:
            yield from (ast.Binder(name, span=binder.span) for name in names[binder.name])
        else:
            yield binder


def _indices(indices: tuple[ast.Index, ...], names: Mapping[str, tuple[str, ...]]) -> Iterator[ast.Index]:
    for index in indices:
        if isinstance(index, ast.Star):
            yield from (ast.Variable(name, index.span) for name in names[index.name])
        else:
            yield index


def solve_ranks(
    description: ast.Description, ranks: Mapping[str, int] | Mapping[Tensor, int]
) -> dict[Unknown, int]:
    """Return `ranks` and everything that follows from them: ranks of tensors, and lengths of stars.

    Raises ShapeError if two ranks disagree, or if a tensor has fewer dimensions than indices.
    """
    values: dict[Unknown, int] = dict(ranks.items())
    origins: dict[Unknown, RankEquation] = {}
    for equation, unknown in in_order(description, ranks):
        used = equation.plain + sum(values[length] for length in equation.lengths if length != unknown)
        if unknown == equation.tensor:
            values[unknown] = used
            continue
        left, times = values[equation.tensor] - used, equation.lengths.count(unknown)
        fits = left == 0 if unknown is None else left >= 0 and left % times == 0
        if not fits:
            raise _misfit(description, equation, values, origins)
        if unknown is not None:
            values[unknown], origins[unknown] = left // times, equation
    return values


def _misfit(
    description: ast.Description,
    equation: RankEquation,
    values: Mapping[Unknown, int],
    origins: Mapping[Unknown, RankEquation],
) -> ShapeError:
    """Return the error: the rank, the number of indices, and the access that decided about each star."""
    decided = [length for length in equation.lengths if length in values]
    indices = counted(equation.plain + sum(map(values.__getitem__, decided)), "index", "indices")
    free = [length for length in equation.lengths if length not in values]
    more = f" and {len(free)} times '*{free[0].star}'" if len(free) > 1 else " or more" if free else ""
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


def _written(equation: RankEquation) -> str:
    match equation.node:
        case ast.Element() as element:
            return format_expression(element)
        case ast.Lambda():
            return _name(equation.tensor)
        case _:
            assert_never(equation.node)


def _name(tensor: Tensor) -> str:
    return f"output_{tensor}" if isinstance(tensor, int) else tensor
