"""Solve a window of decisions exactly by elimination, with tables of times, and propose the result.

    variables    up to `WINDOW` decisions around one; their neighbours stay as they are
    values       what a decision does now, what goes with each neighbour, and random configurations
    of one       the time of its busiest worker, and the hops from its tasks to the homes of its outputs
    of two       the hops from the homes of tensors that one makes to the tasks of the other one

A hop takes as long as its busiest lane, with all else idle, so the sum ignores what overlaps: the simulator
decides whether the proposal is accepted. Implemented in: `DecisionWindows.solved`, `solvers.elimination`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from ....dataflow.graph import Operation
from ....machines.machine import Machine
from ....simulator.times import NANOSECONDS, task_times
from ...costs.movement import Movements, OperatorRegions, WorkerRegions
from ...layouts.forms import Form
from ...layouts.step_split import Layout, prime_factors
from ...layouts.two_hops import in_two_hops
from ...solvers.elimination import CostTable, eliminate
from ..flexflow.configurations import Configuration, Drawable
from ..flexflow.strategy import Strategies
from ..hop_seconds import Hops
from .neighbours import Neighbours

WINDOW = 5
"""The most decisions that are solved together."""

VALUES = 10
"""The most configurations of a decision that are considered, its own included."""

LIMIT = 1 << 12
"""The configurations whose regions are kept; beyond it all are forgotten, and found again if needed."""


@dataclass(frozen=True, slots=True, eq=False)
class _Home:
    """Where a tensor is held."""

    held: WorkerRegions
    """The regions that workers hold."""

    stop: WorkerRegions | None
    """The regions in which partial results are reduced on their way; None if there are none."""


@dataclass(frozen=True, slots=True, eq=False)
class _Regions:
    """The regions of a decision in a configuration."""

    operations: Mapping[int, OperatorRegions]
    """Its operations, split into tasks."""

    homes: Mapping[int, _Home]
    """Where the tensors are held of which it decides."""


class DecisionWindows:
    """The windows of a space on a machine. Equal tasks and transfers are timed once."""

    def __init__(
        self,
        strategies: Strategies,
        drawn: Sequence[Drawable],
        neighbours: Neighbours,
        machine: Machine,
    ) -> None:
        soap = strategies.soap
        self._strategies = strategies
        self._drawn = drawn
        self._neighbours = neighbours
        self._machine = machine
        self._times = task_times(soap.graph, machine, soap.workers)
        self._factors = prime_factors(soap.workers)
        self._forget()
        maker = {tensor: each.index for each in soap.graph.operations for tensor in each.outputs}
        self._reads: dict[tuple[int, int], list[tuple[Operation, int]]] = {}
        """For a decision that makes tensors and one that reads them: the readers and the tensors."""
        for operation in soap.graph.operations:
            reader = soap.decision_of[operation.index]
            for tensor in dict.fromkeys(operation.inputs):
                if tensor in maker and soap.decision_of[maker[tensor]] != reader:
                    pair = soap.decision_of[maker[tensor]], reader
                    self._reads.setdefault(pair, []).append((operation, tensor))

    def _forget(self) -> None:
        workers = self._strategies.soap.workers
        self._movements = Movements(workers, self._factors)
        self._hops = Hops(self._machine, workers)
        self._seconds: dict[tuple[int, Configuration], float] = {}
        self._known: dict[tuple[int, Configuration], _Regions] = {}

    def solved(
        self, draw: Random, state: Sequence[Configuration | None], near: Sequence[int]
    ) -> dict[int, Configuration]:
        """Return the best configurations of the first decisions of a list that have one, given all others."""
        if len(self._known) > LIMIT:
            self._forget()
        window = [number for number in near if state[number] is not None][:WINDOW]
        values = {number: self._values(draw, state, number) for number in window}
        place = {number: at for at, number in enumerate(window)}
        tables = [
            CostTable((place[number],), np.array([self._alone(number, each) for each in listed]))
            for number, listed in values.items()
        ]
        for number, listed in values.items():
            for other in self._neighbours.of(number):
                kept = state[other]
                if other in place and place[other] > place[number]:
                    tables += self._between(place, number, other, listed, values[other])
                elif other not in place and kept is not None:
                    tables += self._between(place, number, other, listed, [kept])
        found = eliminate([len(values[number]) for number in window], tables).assignment
        return {number: values[number][at] for number, at in zip(window, found, strict=True)}

    def _values(
        self, draw: Random, state: Sequence[Configuration | None], number: int
    ) -> list[Configuration]:
        """Return the configurations that a decision may take."""
        found = [] if state[number] is None else [state[number]]
        for other in self._neighbours.of(number):
            configuration = state[other]
            if configuration is not None and len(found) < VALUES - 1:
                found.append(self._neighbours.carried(other, configuration, number))
        while len(found) < VALUES:
            found.append(self._drawn[number].aligned(draw))
        return list(dict.fromkeys(each for each in found if each is not None))

    def _alone(self, number: int, configuration: Configuration) -> float:
        """Return the seconds of a decision by itself."""
        key = number, configuration
        if key not in self._seconds:
            graph, total = self._strategies.soap.graph, 0.0
            found = self._regions(number, configuration)
            for place, regions in found.operations.items():
                operation = graph.operations[place]
                shape = len(regions.workers), len(operation.bound.variables), 2
                boxes = np.array(regions.boxes, np.int64).reshape(shape)
                workers = np.array(regions.workers, np.int64)
                times = self._times(operation, workers, boxes)
                total += float(np.bincount(workers, times).max()) / NANOSECONDS
                for made, tensor in zip(regions.outputs, operation.outputs, strict=True):
                    home = found.homes.get(tensor)
                    if home is not None:
                        total += self._to_home(made, home, graph.tensors[tensor].itemsize)
            self._seconds[key] = total
        return self._seconds[key]

    def _to_home(self, made: WorkerRegions, home: _Home, itemsize: int) -> float:
        if home.stop is None or made.terms == 1:
            return self._hops.seconds(made, home.held, itemsize, made=True)
        seconds = self._hops.seconds(made, home.stop, itemsize, made=True)
        return seconds + self._hops.seconds(home.stop, home.held, itemsize, made=True)

    def _regions(self, number: int, configuration: Configuration) -> _Regions:
        """Return the regions of a decision's operations, and of the tensors of which it decides."""
        key = number, configuration
        found = self._known.get(key)
        if found is None:
            soap = self._strategies.soap
            graph = soap.graph
            forms, homes = self._strategies.forms(number, configuration)
            operations = [graph.operations[place] for place in soap.decisions[number].operations]
            roots = dict.fromkeys(graph.roots[tensor] for each in operations for tensor in each.outputs)
            found = self._known[key] = _Regions(
                {each.index: self._movements.operator(each.bound, forms[each.name]) for each in operations},
                {
                    root: self._home(graph.tensors[root].shape, homes[graph.tensors[root].name])
                    for root in roots
                    if graph.tensors[root].name in homes
                },
            )
        return found

    def _home(self, shape: tuple[int, ...], form: Form) -> _Home:
        layout = in_two_hops(Layout(shape, form, self._factors))
        stop = None if layout.stop is None else self._movements.layout(layout.stop)
        return _Home(self._movements.layout(layout), stop)

    def _between(
        self,
        place: Mapping[int, int],
        one: int,
        other: int,
        mine: Sequence[Configuration],
        its: Sequence[Configuration],
    ) -> Iterator[CostTable]:
        """Yield the table of two decisions, one of which may be outside the window, with one value."""
        table = np.zeros((len(mine), len(its)))
        for row, first in enumerate(mine):
            for column, second in enumerate(its):
                table[row, column] = self._moved(one, first, other, second)
                table[row, column] += self._moved(other, second, one, first)
        if other in place:
            yield CostTable((place[one], place[other]), table)
        else:
            yield CostTable((place[one],), table[:, 0])

    def _moved(self, maker: int, made: Configuration, reader: int, read: Configuration) -> float:
        """Return the seconds of all hops from what one decision makes to the tasks of another one."""
        reads = self._reads.get((maker, reader))
        if reads is None:
            return 0.0
        graph = self._strategies.soap.graph
        homes, operations = self._regions(maker, made).homes, self._regions(reader, read).operations
        total = 0.0
        for operation, tensor in reads:
            root = graph.roots[tensor]
            home = homes.get(root)
            if home is None:
                continue
            needs = operations[operation.index].inputs
            for at, name in operation.bound.read_places:
                if operation.inputs[at] == tensor:
                    total += self._hops.seconds(home.held, needs[name], graph.tensors[root].itemsize)
        return total
