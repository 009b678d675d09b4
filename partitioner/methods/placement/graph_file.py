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
    for number, given in enumerate(typed(entry["nodes"], list, "nodes")):
        place = f"nodes[{number}]"
        attributes = dict(typed_object(given, place))
        name = _name(attributes, "id", place)
        if name in found:
            raise PlanError(f"{place} has the id {name!r} of an earlier node; give it another one")
        found.add_node(name, **attributes)
    for number, given in enumerate(typed(entry[edges], list, edges)):
        place = f"{edges}[{number}]"
        attributes = dict(typed_object(given, place))
        ends = [_name(attributes, end, place) for end in ("source", "target")]
        for end in ends:
            if end not in found:
                raise PlanError(f"{place} names {end!r}, which is not a node; add it to `nodes`")
        if found.has_edge(*ends):
            raise PlanError(f"{place} is a second edge from {ends[0]!r} to {ends[1]!r}; join them")
        found.add_edge(*ends, **attributes)
    return found


def _name(attributes: dict[str, object], key: str, place: str) -> str | int:
    """Take the name of a node out of attributes."""
    name = attributes.pop(key, None)
    if not isinstance(name, str | int) or isinstance(name, bool):
        raise PlanError(f"{key!r} of {place} is {name!r:.60}; it must be text or an integer, a node's name")
    return name
