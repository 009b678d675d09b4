"""AutoDist's builders: strategies that follow from the shapes of variables (`autodist/strategy/`).

    ps                      every variable on worker 0
    ps_load_balancing       each on the worker with the fewest bytes so far
    partitioned_ps          parts along dimension 0, as many as its least divisor, on the least loaded workers
    uneven_partitioned_ps   as many as the least number that does not divide it
    all_reduce              all are reduced; a group has `chunk_size` variables
    partitioned_all_reduce  parts along dimension 0 are reduced; a group has `chunk_size` parts
    random_axis_partitioned_all_reduce  along a dimension drawn at random; 0 for a sparse variable
    parallax                sparse variables as in ps_load_balancing, others as in all_reduce
    byteps                  as ps_load_balancing, on the last workers, which are not replicas
    poseidon                sufficient factors if they move less than a server, others as in ps_load_balancing

The last two are of its history. Servers are workers, where AutoDist has the processors of nodes. The first of
equally loaded workers is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import cycle, islice
from math import prod
from random import Random

from ....dataflow.graph import Graph
from ....errors import PlanError
from .factors import find_factors
from .strategy import AllReduce, Server, Synchronisation, SyncStrategy, evenly
from .variables import TrainedVariable, find_variables

CHUNK_SIZE = 128
"""AutoDist's size of a group."""


def ps(graph: Graph, workers: int, *, proxy: bool = False) -> SyncStrategy:
    """Put every variable on worker 0."""
    return _strategy((each, Synchronisation((Server(0, proxy),))) for each in find_variables(graph))


def ps_load_balancing(graph: Graph, workers: int, *, proxy: bool = False) -> SyncStrategy:
    """Put each variable on the worker with the fewest bytes so far."""
    loads = _Loads(range(workers))
    return _strategy((each, loads.place(each, 1, proxy)) for each in find_variables(graph))


def partitioned_ps(graph: Graph, workers: int, *, proxy: bool = False) -> SyncStrategy:
    """Cut dimension 0 into as many parts as its least divisor above 1, and spread them over servers."""
    loads = _Loads(range(workers))
    return _strategy(
        (each, loads.place(each, least_divisor(_rows(each)), proxy)) for each in find_variables(graph)
    )


def uneven_partitioned_ps(graph: Graph, workers: int, *, proxy: bool = False) -> SyncStrategy:
    """Cut dimension 0 into as many parts as the least number that does not divide it."""
    loads = _Loads(range(workers))
    return _strategy(
        (each, loads.place(each, least_uneven(_rows(each)), proxy)) for each in find_variables(graph)
    )


def all_reduce(graph: Graph, workers: int, *, chunk_size: int = CHUNK_SIZE) -> SyncStrategy:
    """Reduce the gradients of all variables; neighbours share a group."""
    _require_chunk(chunk_size)
    return _strategy(
        (each, Synchronisation((AllReduce(number // chunk_size),)))
        for number, each in enumerate(find_variables(graph))
    )


def partitioned_all_reduce(graph: Graph, workers: int, *, chunk_size: int = CHUNK_SIZE) -> SyncStrategy:
    """Cut dimension 0 into as many parts as its least divisor above 1, and reduce each."""
    return _all_reduced_parts(graph, chunk_size, lambda variable: 0)


def random_axis_partitioned_all_reduce(
    graph: Graph, workers: int, *, chunk_size: int = CHUNK_SIZE, seed: int = 0
) -> SyncStrategy:
    """Cut a dimension drawn among those longer than 1, or dimension 0 of a sparse variable."""
    draw = Random(seed)

    def axis(variable: TrainedVariable) -> int:
        long = [d for d, extent in enumerate(variable.tensor.shape) if extent > 1]
        return 0 if variable.sparse or not long else draw.choice(long)

    return _all_reduced_parts(graph, chunk_size, axis)


def parallax(graph: Graph, workers: int, *, chunk_size: int = CHUNK_SIZE) -> SyncStrategy:
    """Put sparse variables on servers by load, and reduce the gradients of all others."""
    _require_chunk(chunk_size)
    loads = _Loads(range(workers))
    return _strategy(
        (
            each,
            loads.place(each, 1, False)
            if each.sparse
            else Synchronisation((AllReduce(number // chunk_size),)),
        )
        for number, each in enumerate(find_variables(graph))
    )


def byteps(graph: Graph, workers: int, *, servers: int = 1, proxy: bool = False) -> SyncStrategy:
    """Put each variable on the least loaded of the last workers, and run the model on the others."""
    if not 1 <= servers < workers:
        raise PlanError(
            f"{servers} of {workers} workers are servers only; leave at least one worker for each of both"
        )
    loads = _Loads(range(workers - servers, workers))
    made = _strategy((each, loads.place(each, 1, proxy)) for each in find_variables(graph))
    return replace(made, replicas=(tuple(range(workers - servers)),))


def poseidon(graph: Graph, workers: int, *, servers: int | None = None, proxy: bool = False) -> SyncStrategy:
    """Send the factors of a gradient if that moves less than a server, and use a server otherwise.

    With `B` samples on each of `P` workers, `S` servers, factors of `F` elements for a sample and a gradient
    of `G`, that is so if `2 B (P - 1) F <= 2 G (S + P - 2) / S`. A matrix product has `F = M + N`, `G = M N`.
    """
    count = workers if servers is None else servers
    if not 1 <= count <= workers:
        raise PlanError(f"{count} of {workers} workers are servers; choose 1 to {workers}")
    loads = _Loads(range(count))
    factors = find_factors(graph, workers)
    found = []
    for each in find_variables(graph):
        elements = factors.get(each.tensor.name)
        served = Fraction(2 * prod(each.tensor.shape) * (count + workers - 2), count)
        cheaper = elements is not None and Fraction(2 * elements * (workers - 1), workers) <= served
        if cheaper and not each.sparse:
            found.append((each, Synchronisation((AllReduce(),), factors=True)))
        else:
            found.append((each, loads.place(each, 1, proxy)))
    return _strategy(found)


BUILDERS: dict[str, Callable[..., SyncStrategy]] = {
    build.__name__.replace("_", "-"): build
    for build in (
        ps,
        ps_load_balancing,
        partitioned_ps,
        uneven_partitioned_ps,
        all_reduce,
        partitioned_all_reduce,
        random_axis_partitioned_all_reduce,
        parallax,
        byteps,
        poseidon,
    )
}
"""The builders by the names of their methods."""


def least_divisor(extent: int) -> int:
    """Return the least divisor above 1; 1 if there is none.

    >>> [least_divisor(extent) for extent in (1, 2, 7, 15)]
    [1, 2, 7, 3]
    """
    return next((d for d in range(2, int(extent**0.5) + 1) if extent % d == 0), extent)


def least_uneven(extent: int) -> int:
    """Return the least number from 2 on that does not divide an extent; itself if none below it does not.

    >>> [least_uneven(extent) for extent in (1, 2, 3, 4, 12)]
    [1, 2, 2, 3, 5]
    """
    return next((d for d in range(2, extent) if extent % d), extent)


class _Loads:
    """The bytes that each server holds so far."""

    def __init__(self, servers: Iterable[int]) -> None:
        self._bytes = dict.fromkeys(servers, 0.0)

    def place(self, variable: TrainedVariable, parts: int, proxy: bool) -> Synchronisation:
        """Put parts on the least loaded workers in turn. Each counts as an even share, as in AutoDist."""
        ascending = sorted(self._bytes, key=self._bytes.__getitem__)
        servers = tuple(islice(cycle(ascending), parts))
        for worker in servers:
            self._bytes[worker] += variable.tensor.nbytes / parts
        partition = None if parts == 1 else evenly(0, variable.tensor.shape[0], parts)
        return Synchronisation(tuple(Server(worker, proxy) for worker in servers), partition)


def _all_reduced_parts(
    graph: Graph, chunk_size: int, axis_of: Callable[[TrainedVariable], int]
) -> SyncStrategy:
    """Cut each variable along an axis, and number its parts and those of all others for their groups."""
    _require_chunk(chunk_size)
    number, found = 0, []
    for variable in find_variables(graph):
        axis, shape = axis_of(variable), variable.tensor.shape
        parts = least_divisor(shape[axis]) if shape else 1
        reduced = tuple(AllReduce(each // chunk_size) for each in range(number, number + parts))
        partition = None if parts == 1 else evenly(axis, shape[axis], parts)
        found.append((variable, Synchronisation(reduced, partition)))
        number += parts
    return _strategy(found)


def _rows(variable: TrainedVariable) -> int:
    return variable.tensor.shape[0] if variable.tensor.shape else 1


def _require_chunk(size: int) -> None:
    if size < 1:
        raise PlanError(f"a group has {size} variables; choose a chunk size of at least 1")


def _strategy(pairs: Iterable[tuple[TrainedVariable, Synchronisation]]) -> SyncStrategy:
    return SyncStrategy({variable.tensor.name: found for variable, found in pairs})
