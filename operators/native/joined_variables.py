"""Index variables that are one: neighbours in memory in every array, so that one loop runs over both.

`x[n, c, y, z]` over whole contiguous images is a loop of `y * z` elements, and a whole contiguous tensor is
one loop. A variable is joined with the one before it if they index neighbouring dimensions of the same
tensors and outputs, if they are used for nothing else, and if a step of the first is a run of the second in
each array.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from math import prod

import numpy as np

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Interval, Region
from ...tdl import ast
from ...tdl.traverse import Node, transform, walk
from ..kernels.kernel import Array, KernelCall

Dimensions = frozenset[tuple[str | int, int]]
"""Dimensions of tensors, by their name, and of outputs, by their number."""


@dataclass(frozen=True, slots=True)
class JoinedCall:
    """A description with fewer index variables, and the box and the arrays on which it computes a call."""

    description: ast.Description
    """The description. Extents in it are those of the call's operator."""

    box: Mapping[str, Interval]
    """The interval of every index variable; from zero for joined ones."""

    inputs: Mapping[str, Array]
    """Views of the call's inputs."""

    regions: Mapping[str, Region]
    """The regions that the inputs hold."""

    outputs: tuple[Array, ...]
    """Views of the call's outputs."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two neighbouring index variables that are used together."""

    first: str
    second: str

    dimensions: Dimensions
    """The dimensions that the second one indexes. The first one indexes those before them."""


def joined(call: KernelCall) -> JoinedCall:
    """Return the call with as few index variables as its arrays allow."""
    arrays: dict[str | int, Array] = dict(call.inputs.items())
    arrays.update(enumerate(call.outputs))
    fits = tuple(pair for pair in _pairs(call.bound) if _is_run(pair, call, arrays))
    gone = frozenset(dimension for pair in fits for dimension in pair.dimensions)
    views = {name: _view(array, {d for key, d in gone if key == name}) for name, array in arrays.items()}
    runs = _runs(fits)
    box = {name: interval for name, interval in call.box.items() if name not in {p.second for p in fits}}
    for first, others in runs.items():
        box[first] = (0, prod(call.box[name][1] - call.box[name][0] for name in (first, *others)))
    starts = {(key, d - 1) for key, d in gone} - gone
    regions = {
        name: tuple(
            (0, views[name].shape[place]) if (name, dimension) in starts else region[dimension]
            for place, dimension in enumerate(d for d in range(len(region)) if (name, d) not in gone)
        )
        for name, region in call.regions.items()
    }
    return JoinedCall(
        _rewritten(call.bound, fits),
        box,
        {name: views[name] for name in call.inputs},
        regions,
        tuple(views[number] for number in range(len(call.outputs))),
    )


@lru_cache(maxsize=4096)
def _pairs(bound: Bound) -> tuple[_Pair, ...]:
    """Return the neighbouring index variables that are used for nothing but indexing together."""
    description = bound.description
    places: dict[str, set[tuple[str | int, int]]] = {}
    mentioned: dict[str, int] = {}
    indexed: dict[str, int] = {}
    accesses: dict[str, set[tuple[ast.Index, ...]]] = {}
    padded = {node.element.tensor for node in walk(description) if isinstance(node, ast.Pad)}
    for node in walk(description):
        match node:
            case ast.Variable(name=name):
                mentioned[name] = mentioned.get(name, 0) + 1
            case ast.Element(tensor=tensor, indices=indices):
                accesses.setdefault(tensor, set()).add(indices)
                for dimension, index in enumerate(indices):
                    if isinstance(index, ast.Variable):
                        indexed[index.name] = indexed.get(index.name, 0) + 1
                        places.setdefault(index.name, set()).add((tensor, dimension))
            case _:
                pass
    for number, output in enumerate(description.outputs):
        for dimension, binder in enumerate(output.variables):
            places.setdefault(binder.name, set()).add((number, dimension))
    several = {tensor for tensor, found in accesses.items() if len(found) > 1}
    barred = {
        name
        for name, found in places.items()
        if mentioned.get(name, 0) != indexed.get(name, 0) or any(key in padded | several for key, _ in found)
    }
    return tuple(
        _Pair(first, second, frozenset(places[second]))
        for first, second in dict.fromkeys(_neighbours(description))
        if not {first, second} & barred
        and places.get(second)
        and {(key, d - 1) for key, d in places[second]} == places.get(first)
    )


def _neighbours(description: ast.Description) -> Iterator[tuple[str, str]]:
    """Yield index variables that follow one another in a lambda."""
    for node in walk(description):
        if isinstance(node, ast.Lambda | ast.ReducerCall):
            yield from pairwise(binder.name for binder in node.variables)


def _is_run(pair: _Pair, call: KernelCall, arrays: Mapping[str | int, Array]) -> bool:
    """Tell whether a step of the first variable is a run of the second in every array."""
    for key, dimension in pair.dimensions:
        if isinstance(key, str):
            held = call.regions[key][dimension - 1 : dimension + 1]
            if held != (call.box[pair.first], call.box[pair.second]):
                return False
        array = arrays[key]
        strides = steps(array)
        if strides[dimension - 1] != strides[dimension] * array.shape[dimension]:
            return False
    return True


def steps(array: Array) -> tuple[int, ...]:
    """Return the strides of an array; those of dimensions of one element as if the array were contiguous."""
    found: list[int] = []
    step = array.itemsize
    for length, stride in zip(reversed(array.shape), reversed(array.strides), strict=True):
        found.append(step if length == 1 else stride)
        step = found[-1] * length
    return tuple(reversed(found))


def _view(array: Array, gone: set[int]) -> Array:
    """Return an array whose dimensions in `gone` are joined with those before them."""
    shape: list[int] = []
    strides: list[int] = []
    for dimension, (length, stride) in enumerate(zip(array.shape, steps(array), strict=True)):
        if dimension in gone:
            shape[-1] *= length
            strides[-1] = stride
        else:
            shape.append(length)
            strides.append(stride)
    return np.lib.stride_tricks.as_strided(array, shape, strides)


def _runs(pairs: Iterable[_Pair]) -> dict[str, list[str]]:
    """Return the first variable of each run, with those that are joined with it."""
    first_of: dict[str, str] = {}
    runs: dict[str, list[str]] = {}
    for pair in pairs:
        first_of[pair.second] = first = first_of.get(pair.first, pair.first)
        runs.setdefault(first, []).append(pair.second)
    return runs


@lru_cache(maxsize=4096)
def _rewritten(bound: Bound, pairs: tuple[_Pair, ...]) -> ast.Description:
    """Return the operator's description without the second variable of each pair."""
    gone = {dimension for pair in pairs for dimension in pair.dimensions}
    names = {pair.second for pair in pairs}

    def kept(binders: Sequence[ast.Binder]) -> tuple[ast.Binder, ...]:
        return tuple(replace(binder, extent=None) for binder in binders if binder.name not in names)

    def joined_node(node: Node) -> Node:
        match node:
            case ast.Element(tensor=tensor, indices=indices):
                left = tuple(index for d, index in enumerate(indices) if (tensor, d) not in gone)
                return replace(node, indices=left)
            case ast.Lambda(variables=variables) | ast.ReducerCall(variables=variables):
                return replace(node, variables=kept(variables))
            case _:
                return node

    return transform(bound.description, joined_node)
