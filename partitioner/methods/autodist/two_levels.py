"""Sums in two levels: first within hosts of neighbouring workers, then over hosts.

    all-reduce    a worker sums its share of the tensor within its host, then the share of that share over
                  hosts; its host gets each share back once, and shares it out
    server        a worker of each host sums the whole tensor within its host, the server over hosts; each
                  host fetches the variable once

Hosts have equally many workers. An all-reduce brings (h - 1) / h of a tensor into each of h hosts on each
way. These are layouts: a gradient is held in one term for each host on
its way, and the operation that relays has its tasks on the workers through which a host is entered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from ....analyzer.indices.region import Boxes, Region, Shape, to_region, whole
from ....dataflow.graph import Graph, Operation, Role
from ....dataflow.rewrites.encoders import PowerSgd, Relay
from ....errors import PlanError
from ...layouts.copies import Copy
from ...layouts.forms import Form, Parts
from .strategy import Server, Synchronisation
from .variables import TrainedVariable


@dataclass(slots=True)
class OnTheWay:
    """Forms that replace those of data parallelism."""

    operations: dict[str, Form] = field(default_factory=dict)
    """The forms of operations that relay."""

    tensors: dict[str, Form] = field(default_factory=dict)
    """The forms of gradients that are summed within hosts, and of copies of parameters."""

    copies: dict[str, list[Copy]] = field(default_factory=dict)
    """The sums over hosts."""


class TwoLevels:
    """Finds the forms of variables with two levels in a graph that relays them."""

    def __init__(self, graph: Graph, workers: int) -> None:
        self._graph = graph
        self._workers = workers
        self._maker = {tensor: each for each in graph.operations for tensor in each.outputs}
        self._tensors = {tensor.name: tensor for tensor in graph.tensors}
        self._operations = {operation.name: operation for operation in graph.operations}

    def of(self, variable: TrainedVariable, how: Synchronisation, held: Form, everywhere: Form) -> OnTheWay:
        """Return the forms of two levels for a variable that is held so; none if it has one level."""
        relay, found = how.relay, OnTheWay()
        gradients = [t for name in variable.together if (t := self._tensors[name]).role is Role.GRADIENT]
        for gradient in gradients:
            if relay is Relay.GRADIENT:
                self._all_reduce(self._maker[gradient.index], how, found)
            elif relay is Relay.PARAMETER:
                found.tensors[gradient.name] = Parts(tuple(_sums_at_servers(variable.tensor.shape, how)))
                readers = [each.name for each in variable.updates if gradient.index in each.inputs]
                found.copies[gradient.name] = [Copy(held, tuple(readers))]
        if relay is Relay.PARAMETER:
            (reader,) = variable.readers
            (output,) = self._operations[reader].outputs
            found.operations[reader] = Parts(tuple(_copies_of_hosts(variable.tensor.shape, how)))
            found.tensors[self._graph.tensors[output].name] = everywhere
        return found

    def _all_reduce(self, relay: Operation, how: Synchronisation, found: OnTheWay) -> None:
        """Add the forms of a gradient that an operation relays."""
        shape, hosts = relay.bound.output_shapes[0], how.parts[0].levels
        size = self._workers // hosts
        if max(shape, default=0) < self._workers:
            return
        within, over, back = [], [], []
        for worker in range(self._workers):
            host, place = divmod(worker, size)
            share = _share(whole(shape), place, size)
            within.append((worker, to_region(share), host))
            over.append((worker, to_region(_share(share, host, hosts))))
            back.append((worker, to_region(share)))
        reduced = self._graph.tensors[relay.inputs[0]].name
        found.tensors[reduced] = Parts(tuple(within))
        found.copies[reduced] = [Copy(Parts(tuple(over)), (relay.name,))]
        found.operations[relay.name] = Parts(tuple(back))


def check_levels(name: str, workers: int, how: Synchronisation) -> None:
    """Raise PlanError naming a variable whose hosts or relaying workers do not fit."""
    if all(part.levels == 1 for part in how.parts):
        return
    if isinstance(how.rewrite.encoder, PowerSgd):
        raise PlanError(
            f"variable {name!r} exchanges factors, which are not summed in two levels; leave out its encoder "
            "or its levels"
        )
    kinds = {(type(part), part.levels) for part in how.parts}
    if len(kinds) > 1:
        raise PlanError(
            f"variable {name!r} has parts with two levels and others; give all the same kind and hosts"
        )
    hosts = how.parts[0].levels
    if workers % hosts or workers == hosts:
        raise PlanError(
            f"variable {name!r}: {workers} workers do not make {hosts} hosts of several; use a divisor"
        )
    size = workers // hosts
    for part in how.parts:
        for host, worker in enumerate(part.via if isinstance(part, Server) else ()):
            if worker // size != host:
                raise PlanError(
                    f"variable {name!r} goes via worker {worker} in host {host}, which has workers "
                    f"{host * size} to {(host + 1) * size - 1}; choose one of them"
                )


def _share(box: Boxes, number: int, count: int) -> Boxes:
    """Return one of the even parts of a box along its longest dimension."""
    axis = int((box[:, 1] - box[:, 0]).argmax())
    lower, length = int(box[axis, 0]), int(box[axis, 1] - box[axis, 0])
    found = box.copy()
    found[axis] = lower + number * length // count, lower + (number + 1) * length // count
    return found


def _sums_at_servers(shape: Shape, how: Synchronisation) -> Iterator[tuple[int, Region, int]]:
    """Yield the parts of a gradient that are summed within hosts, on the workers that relay them."""
    for part, region in zip(how.parts, _regions(shape, how), strict=True):
        assert isinstance(part, Server)
        for host, worker in enumerate(part.via):
            yield worker, region, host


def _copies_of_hosts(shape: Shape, how: Synchronisation) -> Iterator[tuple[int, Region]]:
    """Yield the parts of a variable that enter hosts."""
    for worker, region, _ in _sums_at_servers(shape, how):
        yield worker, region


def _regions(shape: Shape, how: Synchronisation) -> list[Region]:
    """Return the region of each part of a variable."""
    box = whole(shape)
    if how.partition is None:
        return [to_region(box)]
    axis = how.partition.axis
    edges = (0, *how.partition.bounds, shape[axis])
    boxes = np.repeat(box[None], len(edges) - 1, axis=0)
    boxes[:, axis] = list(pairwise(edges))
    return list(map(to_region, boxes))
