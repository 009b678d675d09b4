"""Rank polymorphism: `*i` stands for as many index variables as the ranks of the tensors leave over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

from ...errors import ShapeError
from ...support.wording import counted
from ...tdl import ast
from ...tdl.traverse import Node, custom_reducers, transform, walk


def expand_stars(
    description: ast.Description, ranks: Mapping[str, int]
) -> tuple[ast.Description, dict[str, int]]:
    """Return the description with every `*i` replaced by `i0, i1, ...`, and the ranks of all tensors.

    A star's name means the same variables in all outputs. In each stage it means separate ones. Raises
    ShapeError if ranks do not fit the indices or leave a star's number of variables open.
    """
    known = dict(ranks)
    taken = {node.name for node in walk(description) if isinstance(node, ast.Variable | ast.Binder)}
    taken |= set(description.tensor_names) | {str(reducer) for reducer in custom_reducers(description)}
    taken |= set(description.opaques) | {stage.name for stage in description.stages}
    stages = []
    for stage in description.stages:
        (value,) = _expand(description.name, (stage.value,), known, taken)
        known[stage.name] = len(value.variables)
        stages.append(replace(stage, value=value))
    outputs = _expand(description.name, description.outputs, known, taken)
    return replace(description, stages=tuple(stages), outputs=outputs), known


def _expand(
    operator: str, lambdas: Sequence[ast.Lambda], ranks: dict[str, int], taken: set[str]
) -> tuple[ast.Lambda, ...]:
    elements = [node for value in lambdas for node in walk(value) if isinstance(node, ast.Element)]
    counts = _counts(operator, elements, ranks)
    for value in lambdas:
        for node in walk(value):
            if isinstance(node, ast.Binder) and node.star and node.name not in counts:
                raise ShapeError(
                    f"{operator}: the ranks of the tensors do not say how many variables '*{node.name}' "
                    f"stands for; index a tensor of known rank with it"
                )
    names = {star: tuple(_fresh(star, number, taken)) for star, number in counts.items()}

    def spread(node: Node) -> Node:
        match node:
            case ast.Lambda() | ast.Reduce():
                return replace(node, variables=tuple(_binders(node.variables, names)))
            case ast.Element() | ast.OpaqueElement():
                return replace(node, indices=tuple(_indices(node.indices, names)))
            case _:
                return node

    return tuple(transform(value, spread) for value in lambdas)


def _counts(operator: str, elements: Sequence[ast.Element], ranks: dict[str, int]) -> dict[str, int]:
    """Return how many variables each star stands for; completes `ranks`.

    Raises ShapeError on disagreement.
    """
    counts: dict[str, int] = {}
    waiting = list(elements)
    while waiting:
        still = []
        for element in waiting:
            stars = [index.name for index in element.indices if isinstance(index, ast.Star)]
            plain = len(element.indices) - len(stars)
            unknown = [star for star in stars if star not in counts]
            used = plain + sum(counts.get(star, 0) for star in stars)
            rank = ranks.get(element.tensor)
            if not unknown:
                if ranks.setdefault(element.tensor, used) != used:
                    raise _misfit(operator, element.tensor, ranks[element.tensor], used)
            elif rank is None or len(set(unknown)) > 1:
                still.append(element)
            elif (rank - used) % len(unknown) or rank < used:
                raise _misfit(operator, element.tensor, rank, used)
            else:
                counts[unknown[0]] = (rank - used) // len(unknown)
        if len(still) == len(waiting):
            break
        waiting = still
    return counts


def _misfit(operator: str, tensor: str, rank: int, used: int) -> ShapeError:
    return ShapeError(
        f"{operator}: {tensor} has {counted(rank, 'dimension')}, but is read with "
        f"{counted(used, 'index', 'indices')}"
    )


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
