"""Sufficient factors: what a gradient is computed from, if it is a sum over samples (Poseidon).

A gradient of a matrix product is a sum of outer products, one for each sample. Its factors are the tensors
that its operation reads along the samples. This follows from descriptions, for any operation.
"""

from __future__ import annotations

from math import prod

from ....dataflow.graph import Graph
from ...layouts.uses import touched
from ..flexflow.soap import find_soap
from .variables import find_variables


def find_factors(graph: Graph, workers: int) -> dict[str, int]:
    """Return the elements of all factors of each variable whose gradient is a sum over samples.

    Gradients that are added, such as those of time steps, have the factors of all of them.
    """
    soap = find_soap(graph, workers)
    terms = frozenset[int]().union(*(decision.terms for decision in soap.decisions))
    maker = {tensor: each for each in graph.operations for tensor in each.outputs}
    index = {tensor.name: tensor.index for tensor in graph.tensors}
    found: dict[str, int] = {}
    for variable in find_variables(graph):
        updates = {each.index for each in variable.updates}
        makers = [maker[index[name]] for name in variable.together if index[name] in maker]
        pending = [each for each in makers if each.index not in updates]
        elements, sums = 0, False
        while pending:
            operation = pending.pop()
            pending += [maker[tensor] for tensor in operation.inputs if tensor in terms]
            samples = soap.batch.get(operation.index)
            if samples is None or operation.bound.kind(samples) != "reduce":
                continue
            sums = True
            elements += sum(
                prod(graph.tensors[tensor].shape)
                for tensor, use in touched(operation)
                if not isinstance(use, int) and soap.indexing[operation.index].dimensions(samples, use)
            )
        if sums:
            found[variable.tensor.name] = elements
    return found
