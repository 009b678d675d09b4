"""One weird trick (Krizhevsky 2014): convolutions split samples, dense layers split their weights.

An operation of the forward pass that sums over a dimension of a weight uses it at every place of its output
that does not index the weight. If such a place is not a sample, it is like a convolution. If samples are the
only ones, it is dense: it, its gradients and updates are split along the variable that indexes both weight
and output. All else takes, in the order of the graph, the split over all workers for which the fewest bytes
move; the one along samples if several move as few.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ....analyzer.bind.bound import Bound
from ....analyzer.indices.region import Boxes, volume
from ....dataflow.graph import Operation, Phase, Role
from ....dataflow.parameter_copies import parameters_stood_for
from ....errors import PlanError
from ....programs.parts import Holding, Task
from ....support.wording import counted
from ...costs.box_counts import overlap
from ...layouts.choices import Counts
from ...layouts.uses import touched
from .configurations import Configuration
from .data_parallel import by_sample, configured
from .soap import Decision, Kind, Soap
from .strategy import Assigned, Strategies, Strategy


def one_weird_trick(strategies: Strategies) -> Strategy:
    """Split samples, but the weights of dense layers.

    Raises PlanError if a graph has no dense layers, or no weights that are used at many places: by an
    operation like a convolution, or by several operations, such as the time steps of a recurrence.
    """
    soap, strategy = strategies.soap, _Aligned(strategies)
    parameter = parameters_stood_for(soap.graph)
    weights = {each.index: list(_weights(soap, each, parameter)) for each in soap.graph.operations}
    uses = [use for each in weights.values() for use in each]
    dense = {parameter[tensor]: place for tensor, place in uses if place is not None}
    if not dense or len(dense) == len(uses):
        lacks = "no dense layer whose weight can be split" if not dense else "nothing like a convolution"
        raise PlanError(
            f"one-weird-trick splits the samples of convolutions and the weights of dense layers, but "
            f"{soap.graph.name!r} has {lacks} over {counted(soap.workers, 'worker')}; choose another method, "
            "such as 'data-parallel'"
        )
    for operation in soap.graph.operations:
        for tensor, place in weights[operation.index]:
            split = None if place is None else _along(soap, operation.index, tensor, place)
            decision = soap.decision_of[operation.index]
            strategy.give(decision, split or by_sample(soap.decisions[decision], soap.workers))
    for number, tensor, like in _trained(soap):
        if tensor in dense:
            split = _along(soap, number, like, dense[tensor])
            if split is not None:
                strategy.give(soap.decision_of[number], split)
    return strategy.result()


def _weights(
    soap: Soap, operation: Operation, parameter: Mapping[int, int]
) -> Iterator[tuple[int, int | None]]:
    """Yield the parameters over which an operation sums, with the dimension to split if it is dense."""
    bound, found = operation.bound, soap.indexing[operation.index]
    batch = soap.batch.get(operation.index)
    if operation.phase is not Phase.FORWARD or batch is None:
        return
    for tensor, use in touched(operation):
        if isinstance(use, int) or tensor not in parameter:
            continue
        index = {v: found.dimensions(v, use) for v in bound.splits}
        if not any(bound.kind(v) == "reduce" and index[v] for v in index):
            continue
        reused = [v for v in found.moved if bound.kind(v) == "concat" and not index.get(v) and v != batch]
        kept = [v for v in index if bound.kind(v) == "concat" and len(index[v]) == 1]
        wide = [v for v in kept if bound.extents[v] >= soap.workers]
        yield tensor, None if reused or not wide else min(index[wide[0]])


def _trained(soap: Soap) -> Iterator[tuple[int, int, int]]:
    """Yield operations that make the gradient of a parameter or update it, the parameter, and the tensor in
    which to find its dimensions.
    """
    tensors = soap.graph.tensors
    maker = {tensor: each.index for each in soap.graph.operations for tensor in each.outputs}
    for operation in soap.graph.operations:
        for output in operation.outputs:
            root = tensors[output].alias
            if root is None or tensors[root].role is not Role.PARAMETER:
                continue
            yield operation.index, root, output
            for tensor in operation.inputs:
                if tensor in maker and tensors[tensor].shape == tensors[root].shape:
                    yield maker[tensor], root, tensor


def _along(soap: Soap, number: int, tensor: int, place: int) -> Configuration | None:
    """Split an operation's decision along a dimension of a tensor; None if it has no variable for that."""
    decision, found = soap.decisions[soap.decision_of[number]], soap.indexing[number]
    uses = [use for each, use in touched(soap.graph.operations[number]) if each == tensor]
    at = decision.operations.index(number)
    for position, dimension in enumerate(decision.dimensions):
        label = dimension.labels[at]
        if isinstance(label, str) and place in found.dimensions(label, uses[0]):
            return _split(decision, position, soap.workers)
    return None


def _split(decision: Decision, position: int, workers: int) -> Configuration | None:
    """Split one dimension over all workers; None if it is too short."""
    if decision.dimensions[position].extent < workers:
        return None
    degrees = [workers if each == position else 1 for each in range(len(decision.dimensions))]
    return configured(decision, degrees, range(workers))


class _Aligned:
    """A strategy of which some configurations are given, and the others move as few bytes as possible."""

    def __init__(self, strategies: Strategies) -> None:
        self._strategies = strategies
        self._given: dict[int, Configuration] = {}
        soap = strategies.soap
        self._numbers = {tensor.name: tensor.index for tensor in soap.graph.tensors}
        self._held: dict[int, _Parts] = {}
        self._parts: dict[int, tuple[Sequence[Holding], _Parts]] = {}
        """Holdings and their parts, by the identity of the holdings."""
        self._missing: dict[tuple[Bound, tuple[str, ...], int, _Parts], int] = {}
        """The elements that tasks lack, by operator, parameters, identity of tasks, and what is held."""
        self._read: dict[tuple[Bound, int], tuple[Sequence[Task], Counts, dict[str, Boxes]]] = {}
        """Tasks, their workers and what they read, by operator and identity of the tasks."""

    def give(self, number: int, configuration: Configuration) -> None:
        """Give a decision its configuration, unless it has one."""
        if number not in self._given:
            self._given[number] = configuration
            self._hold(self._strategies.change(number, configuration))

    def result(self) -> Strategy:
        """Return the strategy."""
        soap = self._strategies.soap
        self._hold(self._strategies.whole(()))
        for number in range(len(soap.decisions)):
            if number not in self._given:
                self.give(number, self._fewest(number))
        return tuple(self._given[number] for number in range(len(soap.decisions)))

    def _fewest(self, number: int) -> Configuration:
        """Return the first split of a decision for which the fewest bytes move."""
        options = self._options(number)
        best = next(options)
        least = self._moved(number, best)
        while least and (option := next(options, None)) is not None:
            moved = self._moved(number, option, least)
            if moved < least:
                best, least = option, moved
        return best

    def _options(self, number: int) -> Iterator[Configuration]:
        """Yield the splits of a decision over all workers, the one along samples first."""
        soap = self._strategies.soap
        decision = soap.decisions[number]
        yield by_sample(decision, soap.workers)
        for position, dimension in enumerate(decision.dimensions):
            if dimension.kind not in (Kind.SAMPLE, Kind.REPLICA):
                split = _split(decision, position, soap.workers)
                if split is not None:
                    yield split

    def _hold(self, assigned: Assigned) -> None:
        for name, holdings in assigned.holdings.items():
            if id(holdings) not in self._parts:
                self._parts[id(holdings)] = holdings, _parts_of(holdings)
            self._held[self._numbers[name]] = self._parts[id(holdings)][1]

    def _moved(self, number: int, configuration: Configuration, most: int | None = None) -> int:
        """Count the bytes that a decision fetches, and twice those of the partial results that it makes.

        Counting ends if they are more than `most`.
        """
        tensors, total = self._strategies.soap.graph.tensors, 0
        for operation, done in self._strategies.tasks(number, configuration):
            for tensor, use in touched(operation):
                if most is not None and total > most:
                    return total
                itemsize = tensors[tensor].itemsize
                if isinstance(use, int):
                    terms = 1 + max(task.term or 0 for task in done)
                    total += 2 * (terms - 1) * prod(tensors[tensor].shape) * itemsize
                elif tensor in self._held:
                    total += self._fetched(operation.bound, use, done, self._held[tensor]) * itemsize
        return total

    def _fetched(self, bound: Bound, names: tuple[str, ...], done: Sequence[Task], held: _Parts) -> int:
        """Count the elements of a tensor that tasks lack for the parameter of which they lack most."""
        key = bound, names, id(done), held
        if key not in self._missing:
            workers, regions = self._needed(bound, done)
            self._missing[key] = max(held.lacking(workers, regions[name]) for name in names)
        return self._missing[key]

    def _needed(self, bound: Bound, done: Sequence[Task]) -> tuple[Counts, dict[str, Boxes]]:
        """Return the worker of each task, and what the tasks read of each parameter."""
        key = bound, id(done)
        if key not in self._read:
            workers = np.array([task.worker for task in done])
            regions = bound.input_regions(np.array([task.box for task in done], np.int64))
            self._read[key] = done, workers, regions
        return self._read[key][1:]


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """The parts of a tensor that workers hold."""

    workers: Counts
    """The worker that holds each part: `[parts]`."""

    regions: Boxes
    """The region of each part: `[parts, dimensions, 2]`."""

    def lacking(self, workers: Counts, regions: Boxes) -> int:
        """Count the elements of regions that the workers who read them do not hold."""
        common = overlap(regions[:, None], self.regions) * (workers[:, None] == self.workers)
        return int(np.maximum(volume(regions) - common.sum(axis=1), 0).sum())


def _parts_of(holdings: Sequence[Holding]) -> _Parts:
    workers = np.array([holding.worker for holding in holdings])
    regions = np.array([holding.region for holding in holdings], np.int64)
    return _Parts(workers, regions.reshape(len(holdings), -1, 2))
