"""The graph that a strategy trains: gradients that are encoded or delayed are rewritten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from ....dataflow.graph import Graph
from ....dataflow.merging.merged import merged
from ....dataflow.rewrites.encoders import NO_REWRITE, Rewrite
from ....dataflow.rewrites.rewriting import rewritten
from ....errors import GraphError
from ....support.checked_argument import require
from ...plans.plan import Plan, require_graph, require_workers
from ..flexflow.soap import Soap, find_soap


class Rewriting(Protocol):
    """A strategy, or the plan of one."""

    @property
    def rewrites(self) -> Mapping[str, Rewrite]:
        """Return what happens to the gradients of variables, by name."""


def rewrite(graph: Graph, workers: int, of: Rewriting) -> Graph:
    """Return the graph that a strategy trains, or the one that its plan is for, from a training graph.

    It is the same graph if no gradient is encoded or delayed, and no operation is merged. Raises GraphError
    for what cannot be rewritten.
    """
    require_graph(graph)
    require_workers(workers)
    require(hasattr(of, "rewrites"), of, "of", "a plan or a strategy", GraphError)
    if isinstance(of, Plan) and of.merged:
        graph = merged(graph)
    changes = {name: each for name, each in of.rewrites.items() if each != NO_REWRITE}
    if not changes:
        return graph
    soap = find_soap(graph, workers)
    terms = frozenset[int]().union(*(decision.terms for decision in soap.decisions))
    return rewritten(graph, workers, changes, soap.batch, terms)


def overwritten_by_samples(soap: Soap) -> Iterator[int]:
    """Yield the tensors of which each worker overwrites the part of its samples or of its replica."""
    for operation in soap.graph.operations:
        samples = soap.batch.get(operation.index)
        if samples is None or operation.bound.kind(samples) != "concat":
            continue
        found = soap.indexing[operation.index]
        for output, tensor in enumerate(operation.outputs):
            alias = soap.graph.tensors[tensor].alias
            if alias is not None and found.dimensions(samples, output) == {0}:
                yield alias
