"""AutoDist's guided sampler of strategies (section 2.4), with its three constraints.

1. Small variables are never cut, and large ones always are.
2. Servers are chosen after everything else: the largest first, on the worker with the fewest bytes so far.
3. All-reduces form random groups of similar load.

The paper states no thresholds. Here a variable is small if it has less than a part of all bytes, which is
drawn from `SMALL`, and large if it has more than a part from `LARGE`. All draws come from one seed.
"""

from __future__ import annotations

from random import Random

from .....dataflow.graph import Graph
from ..strategy import AllReduce, Server, Synchronisation, SyncStrategy, evenly
from ..variables import TrainedVariable, find_variables

SMALL = (0.0, 0.001, 0.01)
LARGE = (0.05, 0.2, 1.0)
MOST_GROUPS = 32


def sample(graph: Graph, workers: int, draw: Random) -> SyncStrategy:
    """Draw a strategy."""
    variables = find_variables(graph)
    total = sum(each.tensor.nbytes for each in variables)
    small, large = (draw.choice(limits) * total for limits in (SMALL, LARGE))
    reducing = draw.random()
    reduced = [draw.random() < reducing for _ in variables]
    axes = [_axis(each, workers, small, large, draw) for each in variables]
    proxy = draw.random() < 0.5
    group = _group_by_load([v for v, chosen in zip(variables, reduced, strict=True) if chosen], draw)
    servers = _balanced(
        [
            (variable, workers if axis is not None else 1)
            for variable, axis, chosen in zip(variables, axes, reduced, strict=True)
            if not chosen
        ],
        workers,
    )
    found = {}
    for variable, axis, chosen in zip(variables, axes, reduced, strict=True):
        name, shape = variable.tensor.name, variable.tensor.shape
        if chosen:
            found[name] = Synchronisation((AllReduce(group[name]),))
        else:
            parts = tuple(Server(worker, proxy) for worker in servers[name])
            partition = None if axis is None else evenly(axis, shape[axis], len(parts))
            found[name] = Synchronisation(parts, partition)
    return SyncStrategy(found, updates_last=draw.random() < 0.5)


def _axis(variable: TrainedVariable, workers: int, small: float, large: float, draw: Random) -> int | None:
    """Return the dimension along which a variable is cut; None if it stays whole."""
    shape, nbytes = variable.tensor.shape, variable.tensor.nbytes
    long = [axis for axis, extent in enumerate(shape) if extent >= workers]
    if not long or nbytes < small or (nbytes <= large and draw.random() < 0.5):
        return None
    return draw.choice(long)


def _balanced(variables: list[tuple[TrainedVariable, int]], workers: int) -> dict[str, tuple[int, ...]]:
    """Return the servers of each variable's parts, by load; parts of one variable are on different ones."""
    loads = [0.0] * workers
    found = {}
    for variable, parts in sorted(variables, key=lambda each: (-each[0].tensor.nbytes, each[0].tensor.index)):
        ascending = sorted(range(workers), key=loads.__getitem__)[:parts]
        for worker in ascending:
            loads[worker] += variable.tensor.nbytes / parts
        found[variable.tensor.name] = tuple(ascending)
    return found


def _group_by_load(variables: list[TrainedVariable], draw: Random) -> dict[str, int]:
    """Put each variable, in random order, into the group with the fewest bytes so far."""
    if not variables:
        return {}
    loads = [0] * draw.randint(1, min(MOST_GROUPS, len(variables)))
    found = {}
    for variable in draw.sample(variables, len(variables)):
        group = loads.index(min(loads))
        loads[group] += variable.tensor.nbytes
        found[variable.tensor.name] = group
    return found
