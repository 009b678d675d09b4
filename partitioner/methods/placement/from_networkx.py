"""Graphs with costs, as networkx holds them, as graphs to place.

Nodes have `seconds`, a number or one for each kind of device, and `bytes`, the size of their output, which
goes once to each worker that reads it. They may have

    persistent_bytes    bytes that they hold throughout
    output_persists     True if the output is in persistent memory, that of the node or of one that shares its
                        worker, and takes no more there
    colocate            a name or number; nodes with equal ones share a worker

Edges may have `bytes`. Such an edge is a value of its own, besides the output of its node. If they are 0,
nothing is sent: the edge is order alone. Other attributes are ignored, except names close to these.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from heapq import heapify, heappop, heappush
from math import isfinite
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import GraphError
from ....simulator.times import NANOSECONDS
from ....support.gc_pause import gc_paused
from ....support.integer_lists import IntegerLists
from .graph import PlacementGraph

if TYPE_CHECKING:
    import networkx

Edges = Mapping[Any, Mapping[Any, Mapping[str, object]]]
"""The attributes of the edges from each node to its readers."""

LARGEST_BYTES = 2**48
"""The most bytes of a value."""

MOST_BYTES = 2**60
"""The most bytes of all values together."""

MOST_SECONDS = 1e9
"""The most seconds of all nodes together."""

SHOWN = 8
"""The number of nodes of a cycle that an error names."""

OF_NODES = ("seconds", "bytes", "persistent_bytes", "output_persists", "colocate")
OF_EDGES = ("bytes",)

SIMILAR = 0.8
"""How similar a name is to that of an attribute if it is taken for a mistake, from 0 to 1."""


@dataclass(frozen=True, slots=True, eq=False)
class PlainGraph:
    """A graph to place, and the nodes that its user knows."""

    nodes: tuple[Hashable, ...]
    """The user's name of each node, in the order of `graph`."""

    graph: PlacementGraph
    """The graph."""


@gc_paused()
def from_networkx(graph: networkx.DiGraph[Any], kinds: Sequence[str]) -> PlainGraph:
    """Read a graph for devices of these kinds. Its nodes keep their order as far as edges allow.

    Raises GraphError naming the node or edge and the attribute.
    """
    _check_graph(graph)
    attributes: dict[Any, Mapping[str, object]] = dict(graph.nodes(data=True))
    edges: Edges = dict(graph.adjacency())
    nodes = _in_order(graph, edges)
    _check_names(attributes.values(), OF_NODES, "a node")
    _check_names((edge for of in edges.values() for edge in of.values()), OF_EDGES, "an edge")
    read = _Reading(edges, nodes, kinds)
    for place, node in enumerate(nodes):
        read.add(place, node, attributes[node])
    return PlainGraph(tuple(nodes), read.result())


def _check_graph(graph: object) -> None:
    """Raise GraphError for what is not a directed graph with nodes, each with a name of its own."""
    import networkx

    if not isinstance(graph, networkx.Graph):
        raise GraphError(f"expected a networkx.DiGraph, found a {type(graph).__name__}")
    if graph.is_multigraph():
        raise GraphError("the graph has several edges between two nodes; make it a networkx.DiGraph")
    if not graph.is_directed():
        raise GraphError("the graph has no directions; make it a networkx.DiGraph, from makers to readers")
    if not len(graph):
        raise GraphError("the graph has no nodes; add some")
    names: dict[str, Hashable] = {}
    for node in graph:
        other = names.setdefault(str(node), node)
        if other is not node:
            raise GraphError(f"nodes {other!r} and {node!r} have the same name as text; rename one")


def _check_names(given: Iterable[Mapping[str, object]], known: Sequence[str], what: str) -> None:
    """Raise GraphError if an attribute has a name that is close to a known one."""
    for name in {name: None for each in given for name in each}:
        near = [] if name in known else get_close_matches(str(name), known, 1, SIMILAR)
        if near:
            raise GraphError(f"{what} has the attribute {_shown(name)}; write {near[0]!r}, or another name")


def _in_order(graph: networkx.DiGraph[Any], edges: Edges) -> list[Any]:
    """Return the nodes so that edges lead forward: always the first one that is ready.

    Raises GraphError naming a cycle.
    """
    given = list(graph)
    place = {node: number for number, node in enumerate(given)}
    missing = [0] * len(given)
    for readers in edges.values():
        for reader in readers:
            missing[place[reader]] += 1
    ready = [number for number, count in enumerate(missing) if not count]
    heapify(ready)
    found = []
    while ready:
        node = given[heappop(ready)]
        found.append(node)
        for reader in edges[node]:
            number = place[reader]
            missing[number] -= 1
            if not missing[number]:
                heappush(ready, number)
    if len(found) < len(given):
        left = {node for node in given if missing[place[node]]}
        raise GraphError(_cycle(graph, next(node for node in given if node in left), left))
    return found


def _cycle(graph: networkx.DiGraph[Any], node: Hashable, left: set[Any]) -> str:
    """Say which nodes wait for each other. Each of those left has a predecessor among them."""
    seen: dict[Hashable, None] = {}
    while node not in seen:
        seen[node] = None
        node = next(each for each in graph.predecessors(node) if each in left)
    backwards = list(seen)
    around = backwards[backwards.index(node) :][::-1]
    if len(around) == 1:
        return f"node {node!r} reads itself; remove this edge"
    shown = [repr(each) for each in around[:SHOWN]] + ["..."] * (len(around) > SHOWN)
    return f"{len(around)} nodes form a cycle: {' -> '.join([*shown, repr(around[0])])}; remove an edge of it"


class _Reading:
    """Collects nodes and values."""

    def __init__(self, edges: Edges, nodes: list[Any], kinds: Sequence[str]) -> None:
        self._kinds = kinds
        self._place = {node: place for place, node in enumerate(nodes)}
        self._names = tuple(map(str, nodes))
        self._edges = edges
        self._seconds: list[list[float]] = []
        self._maker: list[int] = []
        self._sent: list[int] = []
        self._stored: list[int] = []
        self._readers: list[list[int]] = []
        self._lasting: list[bool] = []
        self._leader: list[int] = []
        self._after: list[tuple[int, int]] = []
        self._together: dict[Hashable, int] = {}

    def add(self, place: int, node: Hashable, given: Mapping[str, object]) -> None:
        """Add a node and its values."""
        where = f"node {node!r}"
        self._seconds.append(_seconds(given, where, self._kinds))
        common = []
        for reader, edge in self._edges[node].items():
            if "bytes" not in edge:
                common.append(self._place[reader])
            elif nbytes := _nbytes(edge["bytes"], "bytes", f"the edge from {node!r} to {reader!r}"):
                self._value(place, nbytes, nbytes, [self._place[reader]])
            else:
                self._after.append((place, self._place[reader]))
        if common and "bytes" not in given:
            raise GraphError(
                f"{where} has no `bytes`, but {self._names[min(common)]!r} reads its output; give its size"
            )
        if "bytes" in given:
            nbytes = _nbytes(given["bytes"], "bytes", where)
            stored = 0 if _flag(given, "output_persists", where) else nbytes
            self._value(place, nbytes, stored, sorted(common))
        if "persistent_bytes" in given:
            nbytes = _nbytes(given["persistent_bytes"], "persistent_bytes", where)
            self._value(place, 0, nbytes, [], lasting=True)
        self._leader.append(self._shared(place, given.get("colocate"), where))

    def _value(self, maker: int, sent: int, stored: int, readers: list[int], lasting: bool = False) -> None:
        self._maker.append(maker)
        self._sent.append(sent)
        self._stored.append(stored)
        self._readers.append(readers)
        self._lasting.append(lasting)

    def _shared(self, place: int, together: object, where: str) -> int:
        """Return the node whose worker a node shares: the first one with an equal value of `colocate`."""
        if together is None:
            return place
        if not isinstance(together, Hashable):
            raise GraphError(f"`colocate` of {where} is a {type(together).__name__}; give a name or a number")
        return self._together.setdefault(together, place)

    def result(self) -> PlacementGraph:
        """Return the graph. Raises GraphError if all its times or sizes together are too large."""
        seconds = np.array(self._seconds).T
        before, after = np.array(sorted(self._after), np.int64).reshape(-1, 2).T
        if seconds.sum(axis=1).max() > MOST_SECONDS:
            raise GraphError(
                f"all nodes together take {seconds.sum(axis=1).max():.3g} s; at most {MOST_SECONDS:.0e} s "
                f"are possible, so check the unit of `seconds`"
            )
        if sum(self._stored) > MOST_BYTES:
            raise GraphError(
                f"all values together have {sum(self._stored):,} bytes; at most {MOST_BYTES:,} are possible"
            )
        return PlacementGraph(
            names=self._names,
            nanoseconds=np.rint(seconds * NANOSECONDS).astype(np.int64),
            maker=np.array(self._maker, np.int64),
            sent_bytes=np.array(self._sent, np.int64),
            stored_bytes=np.array(self._stored, np.int64),
            readers=IntegerLists.of(self._readers),
            after=IntegerLists.grouped(before, after, len(self._names)),
            leader=np.array(self._leader, np.int64),
            lasting=np.array(self._lasting, bool),
            scratch_bytes=np.zeros(len(self._names), np.int64),
        )


def _seconds(given: Mapping[str, object], where: str, kinds: Sequence[str]) -> list[float]:
    """Return the seconds of a node on each kind of device."""
    if "seconds" not in given:
        raise GraphError(f"{where} has no `seconds`; give the time that it takes")
    known = given["seconds"]
    if isinstance(known, int | float) or not isinstance(known, Mapping):
        return [_number(known, "seconds", where)] * len(kinds)
    missing = [kind for kind in kinds if kind not in known]
    if missing:
        raise GraphError(
            f"`seconds` of {where} has no time for {missing[0]!r}, a kind of device of the machine; it has "
            f"{', '.join(map(repr, known)) or 'none'}"
        )
    return [_number(known[kind], f"seconds[{kind!r}]", where) for kind in kinds]


def _flag(given: Mapping[str, object], attribute: str, where: str) -> bool:
    """Return whether an attribute is set."""
    value = given.get(attribute, False)
    if not isinstance(value, bool):
        raise GraphError(f"`{attribute}` of {where} is {_shown(value)}; it must be True or False")
    return value


def _nbytes(value: object, attribute: str, where: str) -> int:
    """Return a number of bytes."""
    found = _number(value, attribute, where)
    if found != int(found):
        raise GraphError(f"`{attribute}` of {where} is {value!r}; it must be a whole number")
    if found > LARGEST_BYTES:
        raise GraphError(f"`{attribute}` of {where} is {value!r}; it must be at most {LARGEST_BYTES:,}")
    return int(found)


def _number(value: object, attribute: str, where: str) -> float:
    """Return a number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int | float | Real):
        raise GraphError(
            f"`{attribute}` of {where} is {_shown(value)}, a {type(value).__name__}; it must be a number"
        )
    try:
        found = float(value)
    except OverflowError:
        found = float("inf")
    if not isfinite(found) or found < 0:
        raise GraphError(f"`{attribute}` of {where} is {_shown(value)}; it must be finite and not negative")
    return found


def _shown(value: object) -> str:
    """Return a value as text of at most 60 characters."""
    try:
        text = repr(value)
    except ValueError:  # an integer with too many digits
        return "too large"
    return text if len(text) <= 60 else text[:57] + "..."
