"""Order a graph's vertices so that few are open at any time: already placed, with a neighbour still to come.

    variables    an order of the vertices
    objective    the least sum, over the positions, of the product of the domains of the open vertices

The product is the number of states that a search along the order may keep. The order is a heuristic: the best
of a few greedy ones. A network of layers is long and thin, so its vertices are first placed along it: by
their potential when every edge is a resistor and a voltage lies between the two ends. Then the vertex that
opens the fewest others goes next, with a preference for vertices that lie behind. This is Sloan's profile
reduction (1986) with potentials in place of distances, and weights in place of counts.

Implemented in: `_width` (the objective), `_potentials`, `_greedy`, `linear_order` (the best of all).
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterable, Sequence

Neighbours = Sequence[Sequence[int]]

PREFERENCES = (0.1, 0.15, 0.2, 0.3)
"""The advantage of lying one vertex further behind, in units of log2 of a domain."""


def linear_order(neighbours: Neighbours, domains: Sequence[int]) -> list[int]:
    """Return the best order found: least sum over positions of the product of the open vertices' domains."""
    weights = [math.log2(domain) for domain in domains]
    order: list[int] = []
    for component in _components(neighbours):
        tries: list[list[int]] = [[component[0]]]
        if len(component) > 1:
            ranks = _ranks(neighbours, component)
            backwards = {vertex: -rank for vertex, rank in ranks.items()}
            tries = [
                _greedy(neighbours, weights, along, preference)
                for preference in PREFERENCES
                for along in (ranks, backwards)
            ]
        order += min(tries, key=lambda found: _width(neighbours, weights, list(found)))
    return order


def _components(neighbours: Neighbours) -> list[list[int]]:
    seen: set[int] = set()
    found = []
    for vertex in range(len(neighbours)):
        if vertex not in seen:
            component = sorted(_distances(neighbours, vertex))
            seen.update(component)
            found.append(component)
    return found


def _distances(neighbours: Neighbours, start: int) -> dict[int, int]:
    distances = {start: 0}
    queue = deque([start])
    while queue:
        vertex = queue.popleft()
        for other in neighbours[vertex]:
            if other not in distances:
                distances[other] = distances[vertex] + 1
                queue.append(other)
    return distances


def _farthest(neighbours: Neighbours, start: int) -> int:
    distances = _distances(neighbours, start)
    return min(distances, key=lambda vertex: (-distances[vertex], vertex))


def _ranks(neighbours: Neighbours, component: Iterable[int]) -> dict[int, int]:
    """Return the places of a component's vertices by potential between two vertices far apart."""
    start = _farthest(neighbours, min(component))
    potentials = _potentials(neighbours, start, _farthest(neighbours, start))
    along = sorted(potentials, key=lambda vertex: (potentials[vertex], vertex))
    return {vertex: rank for rank, vertex in enumerate(along)}


def _potentials(neighbours: Neighbours, start: int, end: int) -> dict[int, float]:
    """Compute potentials between 0 at `start` and 1 at `end`; all edges have the same resistance.

    A vertex in the middle of a star is eliminated for a mesh among its neighbours, fewest first.
    """
    mesh = {v: dict.fromkeys(neighbours[v], 1.0) for v in _distances(neighbours, start)}
    heap = [(len(star), vertex) for vertex, star in mesh.items() if vertex not in (start, end)]
    heapq.heapify(heap)
    eliminated: list[tuple[int, dict[int, float]]] = []
    while heap:
        size, vertex = heapq.heappop(heap)
        if vertex not in mesh or size != len(mesh[vertex]):
            continue
        star = mesh.pop(vertex)
        total = sum(star.values())
        eliminated.append((vertex, {other: part / total for other, part in star.items()}))
        for other, part in star.items():
            row = mesh[other]
            del row[vertex]
            for third, its in star.items():
                if third != other:
                    row[third] = row.get(third, 0.0) + part * its / total
            if other not in (start, end):
                heapq.heappush(heap, (len(row), other))
    potentials = {start: 0.0, end: 1.0}
    for vertex, shares in reversed(eliminated):
        potentials[vertex] = sum(share * potentials[other] for other, share in shares.items())
    return potentials


def _greedy(
    neighbours: Neighbours, weights: Sequence[float], ranks: dict[int, int], preference: float
) -> list[int]:
    """Order from the lowest rank on: always take the vertex that opens least, and prefer low ranks.

    A score is computed again only if a vertex that was taken may have changed it, so the work is
    proportional to the edges, but for the heap.
    """
    left = set(ranks)
    closed = {vertex: len(neighbours[vertex]) for vertex in ranks}
    scores: dict[int, float] = {}
    heap: list[tuple[float, int]] = []
    reached: set[int] = set()
    order: list[int] = []

    def update(vertices: Iterable[int]) -> None:
        for vertex in vertices:
            opened = weights[vertex] if closed[vertex] else 0.0
            for other in neighbours[vertex]:
                if closed[other] == 1 and other not in left:
                    opened -= weights[other]
            scores[vertex] = opened + preference * ranks[vertex]
            heapq.heappush(heap, (scores[vertex], vertex))

    update([min(left, key=ranks.__getitem__)])
    while heap:
        score, vertex = heapq.heappop(heap)
        if vertex not in left or score != scores[vertex]:
            continue
        left.discard(vertex)
        order.append(vertex)
        changed: set[int] = set()
        for other in neighbours[vertex]:
            closed[other] -= 1
            if other in left and other not in reached:
                reached.add(other)
                new = (third for third in (other, *neighbours[other]) if third not in scores)
                changed.update(new)
        changed.update(v for v in _rescored(neighbours, closed, left, vertex) if v in scores)
        update(changed)
    return order


def _rescored(neighbours: Neighbours, closed: dict[int, int], left: set[int], taken: int) -> set[int]:
    """Return the vertices whose scores change when one is taken: those that now open nothing or close one."""
    found = {other for other in neighbours[taken] if not closed[other] and other in left}
    for other in (taken, *neighbours[taken]):
        if closed[other] == 1 and other not in left:
            found.update(third for third in neighbours[other] if third in left)
    return found


def _width(neighbours: Neighbours, weights: Sequence[float], order: Sequence[int]) -> float:
    """Return the sum over positions of the product of the open vertices' domains."""
    place = {vertex: position for position, vertex in enumerate(order)}
    closing = [0.0] * len(order)
    for position, vertex in enumerate(order):
        last = max((place[other] for other in neighbours[vertex]), default=position)
        closing[max(last, position)] += weights[vertex]
    width = total = 0.0
    for position, vertex in enumerate(order):
        width += weights[vertex]
        total += 2.0 ** min(width, 1000.0)
        width -= closing[position]
    return total
