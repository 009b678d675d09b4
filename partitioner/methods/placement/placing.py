"""One graph on groups of one size: from the worker or the group of every node to a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, log2

import numpy as np
import numpy.typing as npt

from ....dataflow.graph import Phase
from ....dataflow.micro_batches import copy_name
from ....errors import PlanError
from ....simulator.times import task_times
from ....support.integers import Integers
from ...plans.plan import Plan
from ...plans.simulation import Simulations
from ..flexflow.configurations import divisors
from ..simulated import SimulatedSearch
from ..with_backward import with_backward
from ..worker_memory import WorkerMemory
from .devices import devices_of
from .graph import NodeSchedule, PlacementDevices, PlacementGraph
from .grouped_plan import Inside, grouped_plan, inside_of, whole_operations
from .mend import least_bytes, mend
from .pipeline_order import PipelineOrder, pipeline_priorities
from .shares import shares_of, too_large, with_shares
from .training import operation_times, training_nodes

ROUNDS = 6
"""How often the limit is lowered by what arenas need above live bytes."""

LARGE = (1.0, 0.5, 0.25)
"""The parts of the memory of a group above which more workers share an operation, until a plan fits."""

SMALL = (0.0625, 0.0)
"""The parts above which all workers share an operation if nothing else helps, in the end every one."""

TIGHTER = 5
"""How many limits below the one that is asked for are tried if no plan is found for that."""

STEPS_PER_DOUBLING = 6
"""These limits are powers of two in steps of a sixth, so that neighbouring limits try the same ones."""


@dataclass(frozen=True, slots=True, eq=False)
class _Sharing:
    """Nodes, some of which more workers than those of a group share."""

    nodes: PlacementGraph
    """The nodes, with the bytes of a share."""

    shared: npt.NDArray[np.bool_]
    """Whether each node is shared: `[n]`."""

    inside: Inside | None
    """How workers share the operations; None if they share none."""


class Placing:
    """The nodes of a graph and the groups that they are placed on."""

    def __init__(self, asked: SimulatedSearch, groups: int) -> None:
        self._asked = asked
        self.groups = groups
        self.group_workers = size = asked.workers // groups
        graph, machine = asked.graph, asked.machine
        self._inside: Inside = whole_operations(graph) if size == 1 else inside_of(graph, asked.inside(size))
        self._times = task_times(graph, machine, asked.workers)
        self._simulations = Simulations(graph, machine)
        limits = None if asked.memory is None else asked.memory.limits(asked.workers)
        devices = devices_of(machine, asked.workers, limits)
        self.training = training_nodes(graph, operation_times(graph, self._times, devices.kind, self._inside))
        self.devices = _of_groups(devices, size)
        self._kinds = devices.kind
        self._known: dict[tuple[bytes, int], _Sharing] = {}
        self._arenas: dict[tuple[int, bytes, bytes], int] = {}  # if all operations are shared, by way
        self.whole = self.training.nodes
        """The nodes if workers share none of them."""
        memory = self.devices.memory_bytes
        if groups > 1 and memory is not None:
            most_bytes = int(memory.max())
            among = self._numbers_of_workers(most_bytes, most_bytes)[0]
            self.training = replace(self.training, nodes=self._sharing(most_bytes, among).nodes)

    def plan(self, schedule: NodeSchedule) -> Plan:
        """Return the plan of a placement, with its simulated time."""
        return self._timed(self._composed(schedule))

    def _composed(self, schedule: NodeSchedule, shared: Inside | None = None) -> Plan:
        """Return the plan of a placement; more workers share what is in `shared`."""
        asked, training = self._asked, self.training
        return grouped_plan(
            asked.graph,
            self._inside,
            self.groups,
            training.of_operations(schedule.worker).tolist(),
            training.order_of(schedule.order),
            asked.space,
            shared,
        )

    def _timed(self, plan: Plan) -> Plan:
        """Return a plan with its simulated time."""
        found = self._simulations.of(plan)
        return replace(plan, step_seconds=found.seconds, step_bound_seconds=found.bound_seconds)

    def fitting(self, schedule: NodeSchedule, spare: int = 0) -> Plan:
        """Return the plan of a placement, after moves that make arenas fit and leave memory to spare.

        Raises PlanError if no moves are found.
        """
        memory = self._asked.memory
        if memory is None:
            return self.plan(schedule)
        return self._sharing_more([schedule], LARGE, memory, memory.nbytes, spare)

    def fitting_tighter(self, schedule: NodeSchedule, spare: int = 0) -> Plan:
        """Return the plan of a placement as `fitting` does; if that finds none, by further moves.

        Nodes run in the graph's order then, which holds less at once than one that keeps all workers busy.
        More operations are shared until that helps. Moves for tighter limits are tried as well, so that a
        larger limit is not refused if a smaller one leads to a plan. Raises PlanError if none does.
        """
        memory = self._asked.memory
        if memory is None:
            return self.plan(schedule)
        refused: PlanError | None = None
        in_turn = replace(schedule, order=np.arange(self.whole.count))
        for limit in (memory.nbytes, *tighter_limits(memory.nbytes)):
            try:
                return self._sharing_more([schedule, in_turn], LARGE + SMALL, memory, limit, spare)
            except PlanError as error:
                refused = refused or error
        assert refused is not None
        raise refused

    def _sharing_more(
        self,
        schedules: Sequence[NodeSchedule],
        parts: Sequence[float],
        memory: WorkerMemory,
        limit: int,
        spare: int,
    ) -> Plan:
        """Return the fastest plan whose arenas fit, after moves within a limit that is at most the memory.

        Several workers share operations that need more than the limit: as few as it takes, or more. If
        nothing fits for any schedule, they share operations that need a smaller part of it as well. Raises
        PlanError if none of that helps.
        """
        refused: PlanError | None = None
        before = -1
        for part in parts:
            size = self.group_workers
            most_bytes = int(limit * size * part) - spare * size if part else -1
            among = self._numbers_of_workers(most_bytes, (limit - spare) * size)
            sharings = [self._sharing(most_bytes, each) for each in (among[-1:] if part in SMALL else among)]
            count = int(sharings[0].shared.sum())
            if count <= before:
                continue
            before = count
            for schedule in schedules:
                found: list[Plan] = []
                for sharing in sharings:
                    try:
                        found.append(self._timed(self._fitting(schedule, sharing, memory, limit, spare)))
                    except PlanError as error:
                        refused = refused or error
                if found:
                    return self._best(found)
        assert refused is not None
        raise refused

    def _best(self, found: list[Plan]) -> Plan:
        """Return the fastest plan that leaves memory for the scratch of kernels, or what lacks least."""
        if len(found) == 1:
            return found[0]
        return min(found, key=lambda plan: (self._asked.lacking(plan), plan.step_seconds))

    def _fitting(
        self, schedule: NodeSchedule, sharing: _Sharing, memory: WorkerMemory, limit: int, spare: int
    ) -> Plan:
        """Return a plan whose arenas fit.

        Nodes move until live bytes fit the limit. If an arena needs more than the memory, they move again for
        a limit that is lower by the difference, and then by twice the difference each time.
        """
        if sharing.shared.all():
            return self._all_shared(schedule, sharing, memory, spare)
        limit, excess = limit - spare, 0
        for step in range(ROUNDS):
            limit = max(limit, 0)
            self._check_operations(sharing.nodes, limit)
            within = replace(self.devices, memory_bytes=self._lowered(memory.nbytes - limit))
            worker = mend(sharing.nodes, within, schedule.order, schedule.worker)
            plan = self._composed(replace(schedule, worker=worker), sharing.inside)
            excess = memory.arena(plan) + spare - memory.nbytes
            if excess <= 0:
                return plan
            limit -= excess << step
        raise PlanError(
            f"live bytes fit {memory.nbytes:,} bytes a worker, but arenas and the scratch of kernels need "
            f"{excess:,} more; allow more (--memory), or use more workers"
        )

    def _all_shared(
        self, schedule: NodeSchedule, sharing: _Sharing, memory: WorkerMemory, spare: int
    ) -> Plan:
        """Return a plan by which all workers share all operations, by one for the limit if no other fits.

        Raises PlanError if none fits.
        """
        excess = 0
        for inside in self._all_sharing(sharing):
            neighbours = schedule.worker * self.group_workers // inside.workers
            key = id(inside), neighbours.tobytes(), schedule.order.tobytes()
            known = self._arenas.get(key, 0)
            if known + spare <= memory.nbytes:
                plan = self._composed(schedule, inside)
                known = self._arenas[key] = memory.arena(plan)
                if known + spare <= memory.nbytes:
                    return plan
            excess = known + spare - memory.nbytes
        raise PlanError(
            f"the arena of a worker needs {excess:,} bytes more even if all share all operations; allow more "
            "(--memory), or use more workers"
        )

    def _all_sharing(self, sharing: _Sharing) -> Iterator[Inside]:
        """Generate the ways in which all workers share all operations, the way for the limit last."""
        assert sharing.inside is not None, "all operations are shared"
        yield sharing.inside
        if self._inside_memory is not None:
            yield self._inside_memory

    @cached_property
    def _inside_memory(self) -> Inside | None:
        """Return how all workers share all operations within the limit; None if no way is known."""
        asked, training = self._asked, self.training
        if asked.inside_memory is None:
            return None
        return shares_of(training, np.ones(training.nodes.count, bool), asked.inside_memory())

    def _lowered(self, nbytes: int) -> Integers:
        """Return the memory of groups if each worker has fewer bytes than it may hold."""
        memory = self.devices.memory_bytes
        assert memory is not None
        return np.maximum(memory - nbytes * self.group_workers, 0)

    def _numbers_of_workers(self, most_bytes: int, memory_bytes: int) -> list[int]:
        """Return how many workers may share the nodes that need more than `most_bytes` of a group.

        Even parts of them fit into the memory of a group. It is the number of a group if none needs more.
        """
        size, needed = self.group_workers, int(least_bytes(self.whole).max(initial=0))
        if self.groups == 1 or needed <= most_bytes:
            return [size]
        several = [each for each in divisors(self._asked.workers) if each > size and each % size == 0]
        enough = [each for each in several if needed * size <= memory_bytes * each]
        return enough or several[-1:]

    def _sharing(self, most_bytes: int, among: int) -> _Sharing:
        """Let that many workers share nodes that need more than the given bytes of a group."""
        asked, training = self._asked, self.training
        large = too_large(self.whole, most_bytes)
        if among == self.group_workers:
            return _Sharing(self.whole, np.zeros(len(large), bool), None)
        key = large.tobytes(), among
        if key not in self._known:
            inside = shares_of(training, large, asked.inside(among))
            times = operation_times(asked.graph, self._times, self._kinds, inside)
            nanoseconds = self.whole.nanoseconds.copy()
            first = training.first_operation
            for number in np.flatnonzero(large[first:]).tolist():
                nanoseconds[:, first + number] = times(asked.graph.operations[number])
            nodes = with_shares(self.whole, large, nanoseconds, among // self.group_workers)
            self._known[key] = _Sharing(nodes, large, inside)
        return self._known[key]

    def _check_operations(self, nodes: PlacementGraph, limit: int) -> None:
        """Raise PlanError if an operation, or a share of it, needs more than a limit for each worker."""
        training, size = self.training, self.group_workers
        needed = training.of_operations(least_bytes(nodes))
        if not len(needed) or needed.max() <= limit * size:
            return
        name = training.graph.operations[int(needed.argmax())].name
        raise PlanError(
            f"operation {name!r} needs about {-(-needed.max() // size):,} bytes on each worker that runs all "
            f"or a share of it, and each has {limit:,} left for it; allow more (--memory), or use more "
            "workers"
        )

    @cached_property
    def tied(self) -> Integers:
        """Return for each node the one in whose chunk it belongs.

        The backward pass goes with the forward pass, and all micro-batches with the first one.
        """
        training = self.training
        graph, first = training.graph, training.first_operation
        numbers = {each.name: each.index for each in graph.operations}
        forward = {}
        for each in graph.operations:
            if each.phase is Phase.FORWARD:
                batch = each.micro_batch
                name = copy_name(each.name.removesuffix(f"@{batch}"), 0) if batch else each.name
                forward[each.index] = numbers[name]
        found = training.nodes.leader.copy()
        found[first:] = np.array(with_backward(graph, forward), np.int64) + first
        found[:first] = found[found[:first]]
        return found

    def orders(self, worker: Integers) -> Mapping[str, Integers]:
        """Return the orders of pipelines as priorities of nodes, if the graph has several micro-batches."""
        training = self.training
        if all(not each.micro_batch for each in training.graph.operations):
            return {}
        stages = training.of_operations(worker)
        found = {}
        for order in PipelineOrder:
            places = pipeline_priorities(training.graph, stages, order)
            found[str(order)] = np.concatenate([np.ones(training.first_operation, np.int64), -places])
        return found


def tighter_limits(nbytes: int) -> list[int]:
    """Return the limits that are tried if no plan is found for one, the highest first."""
    if nbytes <= 1:
        return []
    last = ceil(log2(nbytes) * STEPS_PER_DOUBLING) - 1
    steps = range(last, last - TIGHTER, -1)
    return [int(2.0 ** (step / STEPS_PER_DOUBLING)) for step in steps]


def _of_groups(devices: PlacementDevices, size: int) -> PlacementDevices:
    """Return groups of neighbours as devices: the links of their workers carry messages side by side."""
    if size == 1:
        return devices
    firsts = np.arange(0, devices.workers, size)
    memory = devices.memory_bytes
    if memory is not None:
        memory = memory.reshape(-1, size).min(axis=1) * size
    between = np.ix_(firsts, firsts)
    return PlacementDevices(
        devices.kind[firsts], devices.latency[between], devices.per_byte[between] / size, memory
    )
