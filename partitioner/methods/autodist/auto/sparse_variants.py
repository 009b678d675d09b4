"""Sparse variables as rows, columns or masked sums, in a strategy that was found.

    dense       as the strategy has it
    rows        a server that looks up for all samples; indices and rows travel
    columns     a part of every row on each worker, which looks it up for all samples
    masked      a part of the rows on each worker; sums of masked rows travel

The fast model does not know how few rows have a gradient, so these are simulated: one variable after the
other, the largest first, whichever is fastest with all others as they are. Masked sums rewrite the graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from .....dataflow.rewrites.masked_lookups import chosen_axes
from .....errors import PlanError
from ..strategy import Server, Synchronisation, evenly
from ..variables import TrainedVariable, find_variables
from .candidates import Candidates, SyncCandidate

MOST_VARIABLES = 8
"""The most sparse variables for which choices are simulated."""


def sparse_variants(
    trying: Candidates, best: SyncCandidate, servers: dict[str, Synchronisation], rewrites: bool
) -> Iterator[SyncCandidate]:
    """Yield strategies that are like the best one but for sparse variables, each faster than the one before.

    `servers` has the server of each variable, if it has one. The graph stays as it is if not `rewrites`.
    """
    sparse = [each for each in find_variables(trying.graph) if each.sparse]
    sparse.sort(key=lambda each: (-each.tensor.nbytes, each.tensor.index))
    for variable in sparse[:MOST_VARIABLES]:
        name, before = variable.tensor.name, best
        for kind, how in _choices(trying, variable, servers):
            if how.masked and not rewrites:
                continue
            changed = {**before.strategy.variables, name: how}
            with suppress(PlanError):
                found, _ = trying.simulated(
                    f"{before.name}, {kind} of {name}", replace(before.strategy, variables=changed)
                )
                if found.seconds < best.seconds:
                    best = found
        if best is not before:
            yield best


def _choices(
    trying: Candidates, variable: TrainedVariable, servers: dict[str, Synchronisation]
) -> Iterator[tuple[str, Synchronisation]]:
    """Yield the synchronisations of a sparse variable, with their names."""
    shape, workers = variable.tensor.shape, trying.workers
    yield "rows", replace(servers[variable.tensor.name], rows=True)
    chosen = frozenset[int]().union(
        *(chosen_axes(each, variable.tensor.index) for each in trying.graph.operations)
    )
    for axis, extent in enumerate(shape):
        if extent >= workers > 1:
            parts = tuple(Server(worker, True) for worker in range(workers))
            cut = Synchronisation(parts, evenly(axis, extent, workers), rows=True)
            yield "columns" if axis not in chosen else "rows of parts", cut
            if axis in chosen:
                yield "masked sums", replace(cut, rows=False, masked=True)
