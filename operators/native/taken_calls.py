"""Which calls functions in C++ compute, and for which layouts these are written.

A call is taken if its iteration space is not much larger than its arrays. Others need an algorithm more than
a compiler: NumPy computes products of matrices, windows and scans. NumPy also computes functions that
compilers have no vector instructions for, and indices with quotients and remainders.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from math import prod

import numpy as np

from ...analyzer.indices.region import Interval
from ...tdl import ast
from ...tdl.traverse import walk
from ..emit.datatypes import DATA_TYPES
from ..emit.loops import LANES, LayoutClass
from ..emit.parameters import ParameterStruct
from ..emit.statements import free_variables
from ..kernels.kernel import Array, KernelCall
from .joined_variables import JoinedCall

FEW_VISITS = 1 << 12
"""The most elements of a reduction that is taken however they lie, and of a function that takes a call for
each."""

FAST = frozenset(
    ("where", "sqrt", "rsqrt", "square", "reciprocal", "abs", "sign", "floor", "ceil", "round", "trunc")
) | frozenset(("relu", "maximum", "minimum", "uniform"))
"""Functions of which a loop becomes vector instructions."""

FAST_IN_SINGLE = frozenset(("exp", "log", "log1p", "tanh", "erf", "sigmoid", "softplus"))
"""Functions of which that is so in float32, by `vector_math.h`."""

MOST_NODES = 1000
"""The largest description of a kernel, in nodes of its tree: a compiler takes a second or two for it."""

MOST_VISITS = 4
"""The largest iteration space of a kernel, as a multiple of the elements of its arrays.

It counts once for each case that positions decide: a function visits every case everywhere, and NumPy only
where the case holds."""


def takes(call: KernelCall) -> bool:
    """Tell whether the arrays are of types with kernels, hold something, and are as large as the work, and
    whether the description is short enough for a compiler."""
    arrays = (*call.inputs.values(), *call.outputs)
    if any(array.dtype.name not in DATA_TYPES or 0 in array.shape for array in arrays):
        return False
    if any(stride % array.itemsize for array in arrays for stride in array.strides):
        return False
    description, box = call.bound.description, call.box
    if sum(1 for _ in walk(description)) > MOST_NODES:
        return False
    visits = max(_visits(_bodies(description), box)) * (1 + _cases_by_position(description))
    single = not any(array.dtype == np.float64 for array in arrays)
    slow = max(_visits(_slow(description, single), box), default=0)
    return visits <= MOST_VISITS * sum(array.size for array in arrays) and slow <= FEW_VISITS


def _visits(sets: Iterable[Set[str]], box: Mapping[str, Interval]) -> Iterator[int]:
    """Yield the number of settings of each set of index variables."""
    for names in sets:
        yield prod(max(box[name][1] - box[name][0], 0) for name in names)


def _cases_by_position(description: ast.Description) -> int:
    """Count the conditions that read no tensor, such as those that choose a part of a stack."""
    return sum(
        isinstance(node, ast.Call)
        and node.function == "where"
        and not any(isinstance(part, ast.Element) for part in walk(node.arguments[0]))
        for node in walk(description)
    )


def _bodies(description: ast.Description) -> Iterator[Set[str]]:
    """Yield the index variables on which the body of each output and of each reduction depends."""
    for node in walk(description):
        match node:
            case ast.Lambda(variables=variables):
                yield {binder.name for binder in variables}
            case ast.ReducerCall(variables=variables, body=body):
                yield {binder.name for binder in variables} | free_variables(body)
            case _:
                pass


def _slow(description: ast.Description, single: bool) -> Iterator[Set[str]]:
    """Yield the index variables of each value that takes a call for every element."""
    fast = FAST | FAST_IN_SINGLE if single else FAST
    everything = set[str]().union(*_bodies(description))
    for node in walk(description):
        match node:
            case ast.Element(indices=indices) if not all(map(_is_linear, indices)):
                yield everything
            case ast.Call(function=function) if function not in fast:
                yield free_variables(node)
            case ast.Binary(operator="//" | "%"):
                yield free_variables(node)
            case ast.Binary(operator="**", right=right) if not _is_whole(right):
                yield free_variables(node)
            case _:
                pass


def _is_linear(index: ast.Index) -> bool:
    """Tell whether an index is made of sums and products alone."""
    return not any(
        isinstance(node, ast.Call) or (isinstance(node, ast.Binary) and node.operator in ("//", "%", "**"))
        for node in walk(index)
    )


def _is_whole(node: ast.Expression) -> bool:
    return isinstance(node, ast.Number) and isinstance(node.value, int) and node.value >= 0


def across_memory(small: JoinedCall) -> frozenset[str] | None:
    """Return the innermost variables of the long reductions that run across the memory of what they read.

    None if there are some for which no function is written: their neighbours in memory are not neighbours in
    the output. Tensors that are the same for a whole row of the output do not matter, if there are others.
    """
    found = set()
    columns = {
        output.variables[-1].name if output.variables else None for output in small.description.outputs
    }
    for node in walk(small.description):
        if isinstance(node, ast.ReducerCall):
            last = node.variables[-1].name
            (visits,) = _visits([free_variables(node.body) | {last}], small.box)
            elements = [part for part in walk(node.body) if isinstance(part, ast.Element)]
            inside = [part for part in elements if columns & free_variables(part)]
            fastest = {_fastest(part, small.inputs) for part in inside or elements} - {None}
            if visits <= FEW_VISITS or last in fastest or not fastest:
                continue
            if fastest != columns:
                return None
            found.add(last)
    return frozenset(found)


def _fastest(node: ast.Element, inputs: Mapping[str, Array]) -> str | None:
    """Return the variable whose neighbours lie next to each other in what is read; None if none does."""
    array = inputs[node.tensor]
    for index, length, stride in zip(node.indices, array.shape, array.strides, strict=True):
        if length > 1 and stride == array.itemsize and isinstance(index, ast.Variable):
            return index.name
    return None


def layout_class(parameters: ParameterStruct, small: JoinedCall, across: frozenset[str]) -> LayoutClass:
    """Return the class of layouts for which the function is written."""
    named = [(f"in_{name}", small.inputs[name]) for name, _ in parameters.inputs]
    named += [(f"out_{number}", array) for number, array in enumerate(small.outputs)]
    neighbours = tuple(
        f"{name}.stride[{axis}]"
        for name, array in named
        for axis, (length, stride) in enumerate(zip(array.shape, array.strides, strict=True))
        if length > 1 and stride == array.itemsize
    )
    long = (name for name, (lower, upper) in small.box.items() if upper - lower >= LANES)
    return LayoutClass(neighbours, frozenset(long), across)
