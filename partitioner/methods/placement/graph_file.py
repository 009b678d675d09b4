"""Files of plain graphs: JSON in networkx's node-link form, read with distrust.

    {"directed": true, "multigraph": false, "graph": {},
     "nodes": [{"id": "a", "seconds": 0.01, "bytes": 4000}, {"id": "b", "seconds": 0.02}],
     "edges": [{"source": "a", "target": "b"}]}

`networkx.node_link_data` writes it. Older versions of networkx write `links` instead of `edges`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....errors import GraphError, PlanError
from ....support.gc_pause import gc_paused
from ....support.strict_documents import expect_keys, parse_json, read_bounded, typed, typed_object

if TYPE_CHECKING:
    import networkx

LIMIT_BYTES = 1 << 29
"""The largest file that is read."""

FLAGS = {"directed": True, "multigraph": False}
"""The flags of a graph, which a file may leave out."""


@gc_paused()
def read_graph(path: Path) -> networkx.DiGraph[Any]:
    """Read a file. Raises GraphError naming the file and the place in it."""
    data = read_bounded(path, "graph file", GraphError, LIMIT_BYTES)
    try:
        return _decoded(parse_json(data))
    except PlanError as failure:
        raise GraphError(f"the graph file {str(path)!r} cannot be used: {failure}") from failure


def _decoded(document: object) -> networkx.DiGraph[Any]:
    import networkx

    entry = typed_object(document, "the file")
    edges = "links" if "links" in entry else "edges"
    expect_keys(entry, ("nodes", edges), "the file", optional=(*FLAGS, "graph"))
    for flag, needed in FLAGS.items():
        if entry.get(flag, needed) is not needed:
            raise PlanError(f"{flag!r} is {entry[flag]!r}; it must be {str(needed).lower()}")
    found: networkx.DiGraph[Any] = networkx.DiGraph()
    nodes: dict[str | int, dict[str, object]] = {}
    for number, given in enumerate(typed(entry["nodes"], list, "nodes")):
        name, attributes = _named(given, ("id",), "nodes", number)
        if name[0] in nodes:
            raise PlanError(f"nodes[{number}] has the id {name[0]!r} of an earlier node; give it another one")
        nodes[name[0]] = attributes
    found.add_nodes_from(nodes.items())
    known: dict[tuple[str | int, ...], dict[str, object]] = {}
    for number, given in enumerate(typed(entry[edges], list, edges)):
        ends, attributes = _named(given, ("source", "target"), edges, number)
        for end in ends:
            if end not in nodes:
                raise PlanError(f"{edges}[{number}] names {end!r}, which is not a node; add it to `nodes`")
        if ends in known:
            raise PlanError(f"{edges}[{number}] is a second edge from {ends[0]!r} to {ends[1]!r}; join them")
        known[ends] = attributes
    found.add_edges_from((*ends, attributes) for ends, attributes in known.items())
    return found


def _named(
    given: object, keys: tuple[str, ...], where: str, number: int
) -> tuple[tuple[str | int, ...], dict[str, object]]:
    """Return the names of nodes under some keys of an entry, and its other attributes."""
    if not isinstance(given, dict):
        typed_object(given, f"{where}[{number}]")
    attributes: dict[str, object] = dict(given)  # type: ignore[call-overload]
    names = tuple([attributes.pop(key, None) for key in keys])
    for key, name in zip(keys, names, strict=True):
        if type(name) is not str and type(name) is not int:
            raise PlanError(
                f"{key!r} of {where}[{number}] is {name!r:.60}; it must be text or an integer, a node's name"
            )
    return names, attributes  # type: ignore[return-value]
