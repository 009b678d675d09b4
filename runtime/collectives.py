"""Move tensors between workers: multi-fetch and reduction in a fixed order (Tofu, section 6).

Both are prepared once, as views of source and target. They count the bytes that they copy from other workers
while they copy them, so the count is of bytes that really moved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..operators.kernels.kernel import Array
from ..operators.kernels.strided import bound
from ..operators.kernels.workspace import Workspace
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

    __slots__ = ("nbytes",)

    def __init__(self) -> None:
        self.nbytes = 0


def multi_fetch(transfers: Sequence[Transfer], traffic: FetchedBytes) -> Step:
    """Copy every piece into its place in the target."""
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

    The order never depends on which worker finishes first, so every run rounds in the same way.
    """
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


def _combination(reducer: AnyReducer, transfer: Transfer, workspace: Workspace) -> Step:
    """Return the step that combines a piece with its target, in the target."""
    source, target = transfer.source, transfer.target
    if isinstance(reducer, Reducer):
        return bound(UFUNCS[reducer], (target, source), target, workspace)
    combine = combiner(reducer)

    def run() -> None:
        combine(target, source, target)

    return run
