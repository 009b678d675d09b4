"""Locality-first lookahead: clusters on the workers that they talk to most (ParDNN, 3.1.2, algorithm 2).

Clusters are taken by falling criticality. One that only talks to clusters of one worker is *totally
communicating*, and one that talks to a worker more than the K-th part of all its talk is *maximally
communicating*. Such a cluster is mapped to the worker that it talks to most if one of three conditions holds,
each for the span of the cluster:

- (a) the work that is not mapped yet covers the imbalance that the cluster causes: what the worker would then
  have more than each other one that has less,
- (b) the worker would not have more than the busiest one has,
- (c) the messages are more than the cluster's own time, more than the worker's work, and more than the work
  that is not mapped yet.

The paper's loop ends after one round, since its counter never grows; here there are log2 of the nodes rounds.
It looks at all clusters in every round. Here a round only looks at those next to a cluster that was mapped
since they were looked at, which keeps the time near linear.
"""

from __future__ import annotations

import numpy as np

from ....support.compiled import Numbers, compiled, looped, zeros
from ..placement.wires import Wires
from .clusters import Board, Clusters, look, map_to, weigh


def by_criticality(known: Clusters, primaries: int) -> Numbers:
    """Return the secondary clusters, the most critical ones first, ties by number."""
    criticality = np.asarray(known.criticality, np.int64)[primaries:]
    return looped(primaries + np.argsort(-criticality, kind="stable"))


@compiled
def map_near(net: Wires, known: Clusters, state: Board, order: Numbers, maximal: bool) -> None:
    """Map the totally communicating clusters of an order, and, if asked to, the maximally communicating."""
    rank = zeros(len(known.lower))
    waiting = zeros(len(known.lower))
    for place in range(len(order)):
        rank[order[place]] = place
        waiting[order[place]] = 1
    turn = list(range(len(order)))
    rounds = 1
    while 2**rounds < len(known.of):
        rounds += 1
    while rounds > 0 and len(turn) > 0:
        rounds -= 1
        following = [0] * 0
        for place in turn:
            cluster = order[place]
            waiting[cluster] = 0
            worker = wanted(net, known, state, cluster, maximal)
            if worker >= 0:
                map_to(known, state, cluster, worker)
                wake(net, known, state, cluster, rank, waiting, following)
        following.sort()
        turn = following


@compiled
def wanted(net: Wires, known: Clusters, state: Board, cluster: int, maximal: bool) -> int:
    """Return the worker to which a cluster is mapped; -1 if it is mapped already, or not yet."""
    if state.worker[cluster] >= 0:
        return -1
    total = look(net, known, state, cluster)
    target = 0
    for worker in range(len(state.kind)):
        if state.toward[worker] > state.toward[target]:
            target = worker
    talk = state.toward[target]
    if talk == 0 or (talk < total and not (maximal and talk * len(state.kind) > total)):
        return -1
    return target if fits_in(known, state, cluster, target) else -1


@compiled
def fits_in(known: Clusters, state: Board, cluster: int, target: int) -> bool:
    """Return whether one of the three conditions holds for a cluster and a worker."""
    unmapped = weigh(known, state, cluster)
    weight = known.weights[state.kind[target] * len(known.lower) + cluster]
    load = state.loads[target] + weight
    most, imbalance = 0, 0
    for worker in range(len(state.kind)):
        most = max(most, state.loads[worker])
        if worker != target:
            imbalance += max(0, load - state.loads[worker])
    if unmapped >= imbalance or load <= most:
        return True
    return bool(state.toward[target] > max(weight, state.loads[target], unmapped))


@compiled
def wake(
    net: Wires,
    known: Clusters,
    state: Board,
    cluster: int,
    rank: Numbers,
    waiting: Numbers,
    following: list[int],
) -> None:
    """Note for the next round the unmapped clusters that talk to a cluster."""
    for place in range(known.member_firsts[cluster], known.member_firsts[cluster + 1]):
        node = known.members[place]
        for number in range(net.input_firsts[node], net.input_firsts[node + 1]):
            other = known.of[net.maker[net.inputs[number]]]
            if state.worker[other] < 0 and waiting[other] == 0:
                waiting[other] = 1
                following.append(rank[other])
        for number in range(net.value_firsts[node], net.value_firsts[node + 1]):
            value = net.values[number]
            for reading in range(net.reader_firsts[value], net.reader_firsts[value + 1]):
                other = known.of[net.readers[reading]]
                if state.worker[other] < 0 and waiting[other] == 0:
                    waiting[other] = 1
                    following.append(rank[other])
