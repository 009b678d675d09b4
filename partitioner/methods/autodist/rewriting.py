"""The graph that a strategy trains: gradients that are encoded or delayed are rewritten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from ....dataflow.graph import Graph
from ....dataflow.merging.merged import merged
from ....dataflow.rewrites.encoders import NO_REWRITE, Rewrite
from ....dataflow.rewrites.rewriting import rewritten
from ....errors import PlanError
from ...layouts.step_split import Layout
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
    if isinstance(of, Plan) and of.merged:
        graph = merged(graph)
    changes = {name: each for name, each in of.rewrites.items() if each != NO_REWRITE}
    if not changes:
        return graph
    soap = find_soap(graph, workers)
    terms = frozenset[int]().union(*(decision.terms for decision in soap.decisions))
    return rewritten(graph, workers, changes, soap.batch, terms)


def check_base_rewrites(rewrites: Mapping[str, Rewrite]) -> None:
    """Raise PlanError naming a variable whose rewrite is not for plans on top of a base."""
    name = next((name for name, each in rewrites.items() if each.of_samples), None)
    if name is not None:
        raise PlanError(
            f"variable {name!r} has an encoder, parts with their own rewrites, or gradients that are applied "
            "as they arrive. These take one gradient from each worker, of an equal share of the samples, "
            "which data parallelism alone makes; leave out the base or the rewrite. A delay of the whole "
            "variable may stay"
        )


def rewritten_base(base: Plan, graph: Graph) -> Plan:
    """Return a base as a plan for the graph in which gradients are delayed: all workers have what is new."""
    everywhere = (None,) * len(base.factors)
    new = [tensor for tensor in graph.tensors if tensor.name not in base.layouts]
    added = [each.name for each in graph.operations if each.name not in base.strategies]
    return replace(
        base,
        fingerprint=graph.fingerprint,
        graph=graph,
        layouts={**base.layouts, **{t.name: Layout(t.shape, everywhere, base.factors) for t in new}},
        strategies={**base.strategies, **dict.fromkeys(added, everywhere)},
        written_order=None if base.written_order is None else (*base.written_order, *added),
    )


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
