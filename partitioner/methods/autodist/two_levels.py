"""Sums in two levels: first within boxes of neighbouring workers, then over boxes.

    all-reduce    a worker sums its share of the tensor within its box, then the share of that share over
                  boxes; its box gets each share back once, and shares it out
    server        a worker of each box sums the whole tensor within its box, the server over boxes; each box
                  fetches the variable once

Boxes have equally many workers. An all-reduce brings at most 2 (b - 1) / b of a tensor into each of b boxes,
half of it on each way if there are two. These are layouts: a gradient is held in one term for each box on
its way, and the operation that relays has its tasks on the workers through which a box is entered.
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
    """The forms of gradients that are summed within boxes, and of copies of parameters."""

    copies: dict[str, list[Copy]] = field(default_factory=dict)
    """The sums over boxes."""


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
            found.operations[reader] = Parts(tuple(_copies_of_boxes(variable.tensor.shape, how)))
            found.tensors[self._graph.tensors[output].name] = everywhere
        return found

    def _all_reduce(self, relay: Operation, how: Synchronisation, found: OnTheWay) -> None:
        """Add the forms of a gradient that an operation relays."""
        shape, boxes = relay.bound.output_shapes[0], how.parts[0].levels
        size = self._workers // boxes
        if max(shape, default=0) < self._workers:
            return
        within, over, back = [], [], []
        for worker in range(self._workers):
            box, place = divmod(worker, size)
            share = _share(whole(shape), place, size)
            within.append((worker, to_region(share), box))
            over.append((worker, to_region(_share(share, box, boxes))))
            back.append((worker, to_region(share)))
        reduced = self._graph.tensors[relay.inputs[0]].name
        found.tensors[reduced] = Parts(tuple(within))
        found.copies[reduced] = [Copy(Parts(tuple(over)), (relay.name,))]
        found.operations[relay.name] = Parts(tuple(back))


def check_levels(name: str, workers: int, how: Synchronisation) -> None:
    """Raise PlanError naming a variable whose boxes or relaying workers do not fit."""
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
            f"variable {name!r} has parts with two levels and others; give all the same kind and boxes"
        )
    boxes = how.parts[0].levels
    if workers % boxes or workers == boxes:
        raise PlanError(
            f"variable {name!r}: {workers} workers do not make {boxes} boxes of several; use a divisor"
        )
    size = workers // boxes
    for part in how.parts:
        for box, worker in enumerate(part.via if isinstance(part, Server) else ()):
            if worker // size != box:
                raise PlanError(
                    f"variable {name!r} goes via worker {worker} in box {box}, which has workers "
                    f"{box * size} to {(box + 1) * size - 1}; choose one of them"
                )


def _share(box: Boxes, number: int, count: int) -> Boxes:
    """Return one of the even parts of a box along its longest dimension."""
    axis = int((box[:, 1] - box[:, 0]).argmax())
    lower, length = int(box[axis, 0]), int(box[axis, 1] - box[axis, 0])
    found = box.copy()
    found[axis] = lower + number * length // count, lower + (number + 1) * length // count
    return found


def _sums_at_servers(shape: Shape, how: Synchronisation) -> Iterator[tuple[int, Region, int]]:
    """Yield the parts of a gradient that are summed within boxes, on the workers that relay them."""
    for part, region in zip(how.parts, _regions(shape, how), strict=True):
        assert isinstance(part, Server)
        for box, worker in enumerate(part.via):
            yield worker, region, box


def _copies_of_boxes(shape: Shape, how: Synchronisation) -> Iterator[tuple[int, Region]]:
    """Yield the parts of a variable that enter boxes."""
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
