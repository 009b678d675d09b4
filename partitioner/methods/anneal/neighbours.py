"""Carry a decision's configuration over to another one that touches one of its tensors.

Dimensions that index the same dimension of the tensor have the same degree, and tasks that touch the same
part of it run on the same worker. Samples and replicas stand for each other: a gradient that is summed over
samples goes to replicas of an update.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from ...layouts.uses import touched
from ..flexflow.configurations import Configuration, Holders
from ..flexflow.soap import Kind, Soap

_STANDS_FOR = {Kind.SAMPLE: Kind.REPLICA, Kind.REPLICA: Kind.SAMPLE}


class Neighbours:
    """The decisions of a space that touch the same tensors."""

    def __init__(self, soap: Soap) -> None:
        self._soap = soap
        touching: dict[int, list[int]] = {}
        for operation in soap.graph.operations:
            for tensor in dict.fromkeys((*operation.inputs, *operation.outputs)):
                touching.setdefault(tensor, []).append(operation.index)
        self._shared: list[dict[int, tuple[int, int, int]]] = [{} for _ in soap.decisions]
        """For each decision, its neighbours: an operation of each, and the tensor that both touch."""
        for tensor, operations in touching.items():
            first = operations[0]
            for other in operations[1:]:
                self._add(first, other, tensor)
                self._add(other, first, tensor)
        self._places: dict[tuple[int, int], tuple[int | None, ...]] = {}

    def _add(self, first: int, other: int, tensor: int) -> None:
        mine, its = self._soap.decision_of[first], self._soap.decision_of[other]
        if mine != its:
            self._shared[mine].setdefault(its, (first, other, tensor))

    def of(self, number: int) -> Mapping[int, object]:
        """Return the neighbours of a decision: the maker of each tensor, or those that read what it makes."""
        return self._shared[number]

    def carried(self, source: int, configuration: Configuration, target: int) -> Configuration | None:
        """Return the configuration of a neighbour that moves little; None if its dimensions are too short."""
        places = self._matched(source, target)
        decision = self._soap.decisions[target]
        degrees = [1 if place is None else configuration.degrees[place] for place in places]
        pairs = list(zip(decision.dimensions, degrees, strict=True))
        if any(degree > dimension.extent for dimension, degree in pairs):
            return None
        workers = []
        for parts in product(*map(range, degrees)):
            at = dict(zip(places, parts, strict=True))
            task = 0
            for place, degree in enumerate(configuration.degrees):
                task = task * degree + at.get(place, 0)
            workers.append(configuration.workers[task])
        split = [dimension for dimension, degree in pairs if degree > 1]
        if any(each.kind is Kind.REPLICA for each in split) and len(set(workers)) < len(workers):
            return None
        reduces = any(each.reduces for each in split)
        return Configuration(tuple(degrees), tuple(workers), Holders.ALL if reduces else Holders.PARTS)

    def _matched(self, source: int, target: int) -> tuple[int | None, ...]:
        """Return the dimension of `source` that each dimension of `target` follows."""
        key = source, target
        if key not in self._places:
            first, other, tensor = self._shared[source][target]
            theirs = self._indexed(source, first, tensor)
            mine = self._indexed(target, other, tensor)
            taken: set[int] = set()
            found: list[int | None] = []
            for index in mine:
                at = [place for place, its in enumerate(theirs) if index & its and place not in taken]
                found.append(at[0] if at else None)
                taken.update(at[:1])
            kinds = [dimension.kind for dimension in self._soap.decisions[source].dimensions]
            for place, dimension in enumerate(self._soap.decisions[target].dimensions):
                wanted = _STANDS_FOR.get(dimension.kind)
                if found[place] is None and wanted in kinds and kinds.index(wanted) not in taken:
                    found[place] = kinds.index(wanted)
                    taken.add(kinds.index(wanted))
            self._places[key] = tuple(found)
        return self._places[key]

    def _indexed(self, number: int, operation: int, tensor: int) -> list[frozenset[int]]:
        """Return the dimensions of a tensor that each dimension of a decision indexes."""
        decision, found = self._soap.decisions[number], self._soap.indexing[operation]
        place = decision.operations.index(operation)
        uses = [use for each, use in touched(self._soap.graph.operations[operation]) if each == tensor]
        result = []
        for dimension in decision.dimensions:
            label = dimension.labels[place]
            known = isinstance(label, str)
            result.append(
                frozenset().union(*(found.dimensions(str(label), use) for use in uses))
                if known
                else frozenset()
            )
        return result
