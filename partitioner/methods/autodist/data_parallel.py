"""Data parallelism: the base of strategies that name none.

    operations     run along their samples on all replicas; those without samples are repeated
    data           are fed by samples
    other tensors  are held by every replica if they last or sum samples, else where they are made

No operator is known by its name: samples follow from `find_soap`.
"""

from __future__ import annotations

from functools import lru_cache

from ....dataflow.graph import Graph, Operation, Role
from ....errors import PlanError
from ...layouts.forms import Form, Label, Partial, Spread
from ...layouts.step_split import prime_factors
from ...layouts.uses import read
from ...plans.compose import uncounted
from ...plans.plan import Plan
from ...problem.sequences import by_batch
from ..flexflow.soap import Soap, find_soap
from .rewriting import overwritten_by_samples


@lru_cache(maxsize=1)
def data_parallel(graph: Graph, workers: int, replicas: tuple[int, ...]) -> Plan:
    """Return the plan in which replicas share the samples, and all of them hold all that lasts.

    Its bytes are not counted. The last one is kept: builders ask for that of one graph in turn.

    Raises PlanError for a batch with fewer samples than there are replicas.
    """
    return _DataParallel(graph, workers, replicas).plan()


class _DataParallel:
    def __init__(self, graph: Graph, workers: int, replicas: tuple[int, ...]) -> None:
        self._graph = graph
        self._workers = workers
        self._replicas = replicas
        self._factors = prime_factors(workers)
        self._soap: Soap = find_soap(graph, workers)
        self._terms = frozenset[int]().union(*(decision.terms for decision in self._soap.decisions))

    def plan(self) -> Plan:
        """Return the plan."""
        operations = {each.name: self._operation(each) for each in self._graph.operations}
        return uncounted(self._graph, self._workers, operations, self._tensors())

    def _operation(self, operation: Operation) -> Form:
        if not self._terms.isdisjoint(read(operation)):
            return self._over(Partial())
        samples = self._soap.batch.get(operation.index)
        if samples is None:
            return self._over(None)
        extent = operation.bound.extents[samples]
        if extent < len(self._replicas):
            raise PlanError(
                f"the samples of operation {operation.name!r} are split over {len(self._replicas)} workers, "
                f"but it has {extent}; choose a larger batch or fewer workers"
            )
        return self._over(samples)

    def _over(self, entry: Label | Partial | None) -> Form:
        """Return the form that splits along a label over all replicas."""
        if self._replicas == tuple(range(self._workers)):
            return (entry,) * len(self._factors)
        return Spread(((entry, len(self._replicas)),), self._replicas)

    def _tensors(self) -> dict[str, Form]:
        """Return the forms of tensors that are not held where they are made."""
        made = {tensor: each for each in self._graph.operations for tensor in each.outputs}
        of_replicas = set(overwritten_by_samples(self._soap))
        found: dict[str, Form] = {}
        for tensor in self._graph.tensors:
            if tensor.alias is not None:
                continue
            maker = made.get(tensor.index)
            if tensor.role is Role.SCALAR:
                found[tensor.name] = (None,) * len(self._factors)
            elif tensor.role is Role.DATA or tensor.index in of_replicas:
                found[tensor.name] = self._fed(tensor.shape)
            elif maker is None or (tensor.index not in self._terms and self._sums_samples(maker)):
                found[tensor.name] = self._over(None)
        return found

    def _fed(self, shape: tuple[int, ...]) -> Form:
        if self._replicas == tuple(range(self._workers)):
            return by_batch(shape, self._factors)
        return self._over(0 if shape and shape[0] >= len(self._replicas) else None)

    def _sums_samples(self, operation: Operation) -> bool:
        samples = self._soap.batch.get(operation.index)
        reduces = samples is not None and operation.bound.kind(samples) == "reduce"
        return reduces or not self._terms.isdisjoint(read(operation))
