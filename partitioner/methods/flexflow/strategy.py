"""Strategies of the SOAP space: what decisions in configurations compute and hold.

Workers hold what they make. Partial results are reduced by workers that make them (`Holders`), and readers
fetch what they need. A tensor that an operation overwrites is held where the operation makes it: weights live
where they are updated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ....analyzer.bind.bound import Bound
from ....analyzer.indices.region import Boxes, Region, to_regions
from ....dataflow.graph import Operation, Role
from ....programs.parts import Holding, Task
from ...layouts.forms import Form, Parts, Spread, Steps
from ...layouts.parts import Held, tasks_of
from ...layouts.shared_out import shared_out
from ...layouts.step_split import Layout, OperationParts, prime_factors, split_operation
from ...plans.compose import compose
from ...plans.plan import Plan
from ...plans.space import Space
from ...problem.sequences import by_batch
from .configurations import Configuration, Holders
from .soap import Soap

LIMIT = 1 << 13
"""The homes of outputs that are kept; beyond it everything is forgotten, and made again if needed."""

Strategy = tuple[Configuration, ...]
"""The configuration of each decision."""


class Assigned(NamedTuple):
    """The tasks of operations and the holdings of tensors, as a simulation takes them."""

    tasks: Mapping[str, Sequence[Task]]
    """The tasks of operations."""

    holdings: Mapping[str, Sequence[Holding]]
    """The holdings of tensors."""

    stops: Mapping[str, Sequence[Holding]]
    """The holdings in which partial results are reduced on their way."""


@dataclass(frozen=True, slots=True)
class _Home:
    """Where an output is held."""

    form: Parts
    """The parts."""

    holdings: tuple[Holding, ...]
    """The same, one by one."""

    stop: tuple[Holding, ...] | None
    """Where partial results are reduced on their way, if there is such a place."""


class Strategies:
    """The strategies of a space. Equal forms are made once."""

    def __init__(self, soap: Soap, space: Space) -> None:
        self.soap = soap
        graph = soap.graph
        self._factors = prime_factors(soap.workers)
        self._tasks: dict[tuple[Bound, Spread], tuple[Task, ...]] = {}
        self._split: dict[tuple[Bound, Spread], OperationParts] = {}
        self._homes: dict[tuple[Bound, Spread, int, bool, Holders], _Home] = {}
        self._changes: dict[tuple[int, Configuration], Assigned] = {}
        roots = graph.roots
        self._decides: dict[int, int] = {}
        """For what is overwritten, the tensor that is written last: its maker decides where both are."""
        for operation in graph.operations:
            self._decides.update(
                (roots[tensor], tensor) for tensor in operation.outputs if roots[tensor] != tensor
            )
        self._roots = roots
        made = {tensor for operation in graph.operations for tensor in operation.outputs}
        self.sources: dict[str, Form] = {}
        """The forms of tensors that nothing makes or overwrites."""
        for tensor in graph.tensors:
            if tensor.alias is None and tensor.index not in made and tensor.index not in self._decides:
                everywhere: Steps = (None,) * len(self._factors)
                fed = tensor.role is Role.DATA and space.feed == "batch"
                self.sources[tensor.name] = by_batch(tensor.shape, self._factors) if fed else everywhere

    def change(self, number: int, configuration: Configuration) -> Assigned:
        """Return what a decision does in a configuration."""
        key = number, configuration
        if key not in self._changes:
            names = self.soap.graph.tensors
            done, held, stops = {}, {}, {}
            for operation, form in self._forms(number, configuration):
                done[operation.name] = self._tasks_of(operation.bound, form)
                for tensor, home in self._homes_of(number, operation, form, configuration.holders):
                    held[names[tensor].name] = home.holdings
                    if home.stop is not None:
                        stops[names[tensor].name] = home.stop
            self._changes[key] = Assigned(done, held, stops)
        return self._changes[key]

    def tasks(self, number: int, configuration: Configuration) -> Iterator[tuple[Operation, Sequence[Task]]]:
        """Yield the operations of a decision, and what workers compute of them in a configuration."""
        for operation, form in self._forms(number, configuration):
            yield operation, self._tasks_of(operation.bound, form)

    def changes(self, configurations: Mapping[int, Configuration]) -> Assigned:
        """Return what several decisions do."""
        done: dict[str, Sequence[Task]] = {}
        homes: dict[str, Sequence[Holding]] = {}
        stops: dict[str, Sequence[Holding]] = {}
        for number, configuration in configurations.items():
            change = self.change(number, configuration)
            done.update(change.tasks)
            homes.update(change.holdings)
            stops.update(change.stops)
        return Assigned(done, homes, stops)

    def whole(self, strategy: Strategy) -> Assigned:
        """Return what all decisions do, and where inputs are held."""
        held = Held()
        shapes = {tensor.name: tensor.shape for tensor in self.soap.graph.tensors}
        found = self.changes(dict(enumerate(strategy)))
        fed = {
            name: held.of(Layout(shapes[name], form, self._factors)) for name, form in self.sources.items()
        }
        return found._replace(holdings={**fed, **found.holdings})

    def forms(self, number: int, configuration: Configuration) -> tuple[dict[str, Form], dict[str, Form]]:
        """Return the forms of a decision's operations, and of the tensors of which it decides."""
        operations: dict[str, Form] = {}
        tensors: dict[str, Form] = {}
        for operation, form in self._forms(number, configuration):
            operations[operation.name] = form
            for tensor, home in self._homes_of(number, operation, form, configuration.holders):
                tensors[self.soap.graph.tensors[tensor].name] = home.form
        return operations, tensors

    def plan(self, strategy: Strategy) -> Plan:
        """Return the plan of a strategy."""
        operations: dict[str, Form] = {}
        tensors = dict(self.sources)
        for number, configuration in enumerate(strategy):
            done, held = self.forms(number, configuration)
            operations.update(done)
            tensors.update(held)
        return compose(self.soap.graph, self.soap.workers, operations, tensors)

    def _forms(self, number: int, configuration: Configuration) -> Iterator[tuple[Operation, Spread]]:
        """Yield the operations of a decision with their forms."""
        decision = self.soap.decisions[number]
        for place, operation in enumerate(decision.operations):
            degrees = tuple(
                (dimension.labels[place], degree)
                for dimension, degree in zip(decision.dimensions, configuration.degrees, strict=True)
                if degree > 1
            )
            yield self.soap.graph.operations[operation], Spread(degrees, configuration.workers)

    def _homes_of(
        self, number: int, operation: Operation, form: Spread, holders: Holders
    ) -> Iterator[tuple[int, _Home]]:
        """Yield the tensors whose holdings follow from an operation's tasks."""
        for output, tensor in enumerate(operation.outputs):
            root = self._roots[tensor]
            if root == tensor or self._decides[root] == tensor:
                stays = tensor in self.soap.decisions[number].terms
                yield root, self._home(operation.bound, form, output, stays, holders)

    def _tasks_of(self, bound: Bound, form: Spread) -> tuple[Task, ...]:
        key = bound, form
        if key not in self._tasks:
            self._tasks[key] = tasks_of(self._split_of(bound, form))
        return self._tasks[key]

    def _split_of(self, bound: Bound, form: Spread) -> OperationParts:
        key = bound, form
        if key not in self._split:
            self._split[key] = split_operation(bound, form, self._factors)
        return self._split[key]

    def _home(self, bound: Bound, form: Spread, output: int, stays: bool, holders: Holders) -> _Home:
        """Return where an output is held; `stays` says whether it stays in terms."""
        key = bound, form, output, stays, holders
        if key not in self._homes:
            if len(self._homes) > LIMIT:
                self._forget()
            split = self._split_of(bound, form)
            made = bound.output_regions(split.boxes)[output]
            self._homes[key] = _home(split, made, stays, holders)
        return self._homes[key]

    def _forget(self) -> None:
        for cache in (self._tasks, self._split, self._homes, self._changes):
            cache.clear()


def _home(split: OperationParts, made: Boxes, stays: bool, holders: Holders) -> _Home:
    """Return where an output is held, of which tasks make the regions `made`."""
    workers, regions = split.workers.tolist(), to_regions(made)
    if stays and split.terms > 1:
        terms = split.term.tolist()
        with_terms = tuple(dict.fromkeys(zip(workers, regions, terms, strict=True)))
        return _Home(Parts(with_terms), tuple(Holding(*part) for part in with_terms), None)
    parts = tuple(dict.fromkeys(zip(workers, regions, strict=True)))
    if split.terms == 1:
        return _Home(Parts(parts), _held(parts), None)
    shares = parts
    if holders is not Holders.FIRST and parts[0][1]:
        cut = shared_out(np.array([region for _, region in parts], np.int64))
        shares = tuple(zip((worker for worker, _ in parts), to_regions(cut), strict=True))
    if holders is Holders.ALL:
        return _Home(Parts(parts), _held(parts), None if shares == parts else _held(shares))
    first = {region: worker for worker, region in reversed(shares)}
    parts = tuple((worker, region) for region, worker in reversed(first.items()))
    return _Home(Parts(parts), _held(parts), None)


def _held(parts: Iterable[tuple[int, Region]]) -> tuple[Holding, ...]:
    return tuple(Holding(worker, region) for worker, region in parts)
