"""Level-aware balancing: the clusters that locality left (ParDNN, section 3.1.2, equation 1).

Clusters are taken by falling criticality. Each goes to the worker for which the sum is least of its work in
the span of the cluster, the cluster's time there, and the messages between the cluster and other workers. The
equation leaves the cluster's time out, since the paper's workers are equally fast. Ties go to the worker that
the cluster talks to most, then to the lowest number.
"""

from __future__ import annotations

from ....support.compiled import Numbers, compiled
from ..placement.wires import Wires
from .clusters import Board, Clusters, look, map_to, weigh


@compiled
def balance(net: Wires, known: Clusters, state: Board, order: Numbers) -> None:
    """Map the clusters of an order that have no worker yet."""
    for place in range(len(order)):
        cluster = order[place]
        if state.worker[cluster] < 0:
            look(net, known, state, cluster)
            weigh(known, state, cluster)
            map_to(known, state, cluster, least_cost(known, state, cluster))


@compiled
def least_cost(known: Clusters, state: Board, cluster: int) -> int:
    """Return the worker on which the cluster that was looked at last costs least."""
    mapped = 0
    for worker in range(len(state.kind)):
        mapped += state.toward[worker]
    best, least = -1, 0
    for worker in range(len(state.kind)):
        weight = known.weights[state.kind[worker] * len(known.lower) + cluster]
        cost = state.loads[worker] + weight + mapped - state.toward[worker]
        if best < 0 or cost < least or (cost == least and state.toward[worker] > state.toward[best]):
            best, least = worker, cost
    return best
