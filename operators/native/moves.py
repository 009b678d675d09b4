"""Copies of arrays, and combinations of several arrays element by element, as calls in C.

A combination is computed from a description, as any operator is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache, partial
from types import MappingProxyType

import numpy as np

from ... import tdl
from ...analyzer.bind.analysis import Analysis, analyze
from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Shape
from ...tdl.ast import Reducer
from ..derive.steps.layout import address_of
from ..kernels.axes import merged
from ..kernels.c_run import CallForm, CCall, CRun
from ..kernels.kernel import Array, KernelCall, Run
from .asked import is_asked
from .generated import generated

MOST_TERMS = 8
"""The most arrays that one function combines."""

FLOATS = ("float32", "float64")
"""The types that are combined. Others are rounded or wrap in their own ways."""

COMBINED: Mapping[Reducer, str] = MappingProxyType(
    {
        Reducer.SUM: "({} + {})",
        Reducer.PROD: "({} * {})",
        Reducer.MAX: "maximum({}, {})",
        Reducer.MIN: "minimum({}, {})",
    }
)
"""How two values are combined."""


def copied(source: Array, target: Array) -> Run | None:
    """Return the run that copies an array of the same shape; None if NumPy is to copy it."""
    if not is_asked() or source.dtype != target.dtype:
        return None
    axes = [
        (length, (written, read))
        for length, written, read in zip(target.shape, target.strides, source.strides, strict=True)
        if length != 1
    ]
    (run, _), *outer = reversed(merged([*axes, (target.itemsize, (1, 1))]))
    words = [address_of(target), address_of(source), run, len(outer)]
    for length, strides in outer:
        words += (length, *strides)
    call = CCall(CallForm.COPY, np.array(words, np.int64), (source, target), "a copy")
    return CRun(partial(np.copyto, target, source), (call,))


def combined(reducer: Reducer, terms: Sequence[Array], target: Array) -> tuple[Run, ...] | None:
    """Return the runs that combine arrays of one shape in their order; None if NumPy is to combine them.

    Raises ExecutionError if a function cannot be built.
    """
    same = all(array.dtype == target.dtype for array in terms)
    if not is_asked() or not same or target.dtype.name not in FLOATS:
        return None
    runs: list[Run] = []
    for start in range(0, len(terms), MOST_TERMS):
        some = (*((target,) if start else ()), *terms[start : start + MOST_TERMS])
        run = generated(_call(_nested(COMBINED[reducer], len(some)), some, target))
        if run is None:
            return None
        runs.append(run)
    return tuple(runs)


@cache
def _nested(pair: str, count: int) -> str:
    """Return the text that combines values from left to right."""
    return pair.format(_nested(pair, count - 1), "{}") if count > 1 else "{}"


def _call(text: str, sources: tuple[Array, ...], target: Array) -> KernelCall:
    if not target.ndim:
        sources, target = tuple([source.reshape(1) for source in sources]), target.reshape(1)
    bound = _bound(text, len(sources), target.shape)
    box = {name: (0, extent) for name, extent in bound.extents.items()}
    region = tuple(box.values())
    names = bound.description.tensor_names
    return KernelCall(
        bound, box, dict(zip(names, sources, strict=True)), dict.fromkeys(names, region), (target,)
    )


@lru_cache(maxsize=4096)
def _bound(text: str, sources: int, shape: Shape) -> Bound:
    return Bound(_analysis(text, sources, len(shape)), dict.fromkeys(_names("t", sources), shape))


@cache
def _analysis(text: str, sources: int, rank: int) -> Analysis:
    tensors, indices = _names("t", sources), ", ".join(_names("i", rank))
    values = text.format(*(f"{tensor}[{indices}]" for tensor in tensors))
    return analyze(tdl.parse(f"def move({', '.join(tensors)}):\n    return lambda {indices}: {values}"))


def _names(letter: str, count: int) -> list[str]:
    return [f"{letter}{number}" for number in range(count)]
