"""What the analyzer's tests share: binding text, and an oracle that lists every element read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

import pytest

from tofu import tdl
from tofu.analyzer.analysis import analyze
from tofu.analyzer.bound import Bound
from tofu.analyzer.specialize import specialize
from tofu.tdl import ast

Shapes = Mapping[str, tuple[int, ...]]
Box = Mapping[str, tuple[int, int]]
Reads = dict[str, set[tuple[int, ...]]]


@pytest.fixture(scope="session")
def bind() -> Callable[..., Bound]:
    """`bind(text, shapes, **attributes)`: parse, specialise, analyse and bind a description."""

    def bind_text(text: str, shapes: Shapes, **attributes: Any) -> Bound:
        ranks = {name: len(shape) for name, shape in shapes.items()}
        return analyze(specialize(tdl.parse(text), attributes, ranks)).bind(shapes)

    return bind_text


@pytest.fixture(scope="session")
def reads() -> Callable[..., Reads]:
    """`reads(bound, box)`: for every tensor the elements that a box reads, by running all its loops."""

    def enumerate_reads(bound: Bound, box: Box) -> Reads:
        found: Reads = {name: set() for name in bound.shapes}
        for output in bound.description.outputs:
            for at in _positions(output.variables, box, {}):
                _visit(output.body, at, box, bound.shapes, found)
        return found

    return enumerate_reads


def _positions(binders: tuple[ast.Binder, ...], box: Box, outer: dict[str, int]) -> Iterator[dict[str, int]]:
    names = [binder.name for binder in binders]
    for values in product(*(range(*box[name]) for name in names)):
        yield outer | dict(zip(names, values, strict=True))


def _visit(node: Any, at: dict[str, int], box: Box, shapes: Shapes, found: Reads) -> None:
    match node:
        case ast.Reduce(_, variables, body):
            for inner in _positions(variables, box, at):
                _visit(body, inner, box, shapes, found)
        case ast.Element(tensor, indices):
            _read(tensor, indices, at, shapes, found)
        case _:
            for child in tdl.children(node):
                _visit(child, at, box, shapes, found)


def _read(tensor: str, indices: tuple[Any, ...], at: dict[str, int], shapes: Shapes, found: Reads) -> None:
    places = tuple(_index(index, at, shapes) for index in indices)
    if all(0 <= place < extent for place, extent in zip(places, shapes[tensor], strict=True)):
        found[tensor].add(places)


def _index(node: Any, at: dict[str, int], shapes: Shapes) -> int:
    match node:
        case ast.Number(value):
            return int(value)
        case ast.Variable(name):
            return at[name]
        case ast.Extent(tensor, axis):
            return shapes[tensor][axis]
        case ast.Unary("-", operand):
            return -_index(operand, at, shapes)
        case ast.Binary(operator, left, right):
            a, b = _index(left, at, shapes), _index(right, at, shapes)
            return {"+": a + b, "-": a - b, "*": a * b, "//": a // (b or 1), "%": a % (b or 1)}[operator]
        case _:
            raise AssertionError(f"no such index in these tests: {node}")
