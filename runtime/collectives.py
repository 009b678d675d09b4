"""Move tensors between workers: multi-fetch and reduction in a fixed order (Tofu, section 6).

Both are prepared once, as views of source and target. They count the bytes that they copy from other workers
while they copy them, so the count is of bytes that really moved.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..operators.derive.steps.layout import address_of
from ..operators.kernels.c_run import CallForm, CCall, CRun
from ..operators.kernels.kernel import Array, in_turn
from ..operators.kernels.strided import bound
from ..operators.kernels.workspace import Workspace
from ..operators.native.moves import combined, copied
from ..tdl import combiner
from ..tdl.ast import AnyReducer, Reducer
from ..tdl.reducers import UFUNCS

Step = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Transfer:
    """A copy between two views of the same shape."""

    source: Array
    """The view to read."""

    target: Array
    """The view to write."""

    remote: bool
    """Whether the source is in the memory of another worker."""


class FetchedBytes:
    """Bytes that one worker has read from other workers since the last reset."""

    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = array("q", [0])

    @property
    def nbytes(self) -> int:
        """Return the bytes."""
        return self._count[0]

    @nbytes.setter
    def nbytes(self, value: int) -> None:
        self._count[0] = value

    def counting(self, nbytes: int) -> CRun:
        """Return the run that adds to the bytes."""

        def run() -> None:
            self._count[0] += nbytes

        words = np.array((self._count.buffer_info()[0], nbytes), np.int64)
        return CRun(run, (CCall(CallForm.COUNT, words, self._count, "the count of bytes"),))


def multi_fetch(transfers: Sequence[Transfer], traffic: FetchedBytes) -> Step:
    """Copy every piece into its place in the target, in C if that is asked for."""
    in_c = _in_c((_copies(transfer) for transfer in transfers), transfers, traffic)
    if in_c is not None:
        return in_c
    local = [(t.source, t.target) for t in transfers if not t.remote]
    remote = [(t.source, t.target) for t in transfers if t.remote]

    def run() -> None:
        for source, target in local:
            target[...] = source
        fetched = 0
        for source, target in remote:
            target[...] = source
            fetched += source.nbytes
        traffic.nbytes += fetched

    return run


def fixed_order_reduce(
    reducer: AnyReducer, terms: Sequence[Sequence[Transfer]], traffic: FetchedBytes, workspace: Workspace
) -> Step:
    """Combine terms, each made of pieces that together cover the target, in the order given.

    The order never depends on which worker finishes first, so every run rounds in the same way. C computes it
    if that is asked for.
    """
    in_c = _in_c(_combinations(reducer, terms), [t for term in terms for t in term], traffic)
    if in_c is not None:
        return in_c
    first = [(t.source, t.target) for t in terms[0]]
    rest = [_combination(reducer, t, workspace) for term in terms[1:] for t in term]
    remote = [t.source for term in terms for t in term if t.remote]

    def run() -> None:
        for source, target in first:
            target[...] = source
        for combine in rest:
            combine()
        traffic.nbytes += sum(source.nbytes for source in remote)

    return run


def _in_c(
    parts: Iterator[Sequence[Step] | None], transfers: Sequence[Transfer], traffic: FetchedBytes
) -> Step | None:
    """Return the step of parts that are all computed in C; None if one is not."""
    steps: list[Step] = []
    for part in parts:
        if part is None:
            return None
        steps += part
    return in_turn([*steps, traffic.counting(sum(t.source.nbytes for t in transfers if t.remote))])


def _copies(transfer: Transfer) -> Sequence[Step] | None:
    run = copied(transfer.source, transfer.target)
    return None if run is None else (run,)


def _combinations(
    reducer: AnyReducer, terms: Sequence[Sequence[Transfer]]
) -> Iterator[Sequence[Step] | None]:
    """Yield the steps in C for each part of the target; None for one that NumPy computes.

    All terms have the same parts, or parts are added to the target one by one.
    """
    if not isinstance(reducer, Reducer):
        yield None
        return
    places = [{_place(t.target): t for t in term} for term in terms]
    if all(each.keys() == places[0].keys() for each in places):
        for key, transfer in places[0].items():
            yield combined(reducer, [each[key].source for each in places], transfer.target)
        return
    yield from map(_copies, terms[0])
    for term in terms[1:]:
        for t in term:
            yield combined(reducer, (t.target, t.source), t.target)


def _place(array: Array) -> tuple[object, ...]:
    return address_of(array), array.shape, array.strides


def _combination(reducer: AnyReducer, transfer: Transfer, workspace: Workspace) -> Step:
    """Return the step that combines a piece with its target, in the target."""
    source, target = transfer.source, transfer.target
    if isinstance(reducer, Reducer):
        return bound(UFUNCS[reducer], (target, source), target, workspace)
    combine = combiner(reducer)

    def run() -> None:
        combine(target, source, target)

    return run
