"""The time line of tasks and holdings, found again after each change of a few of them.

    tasks       of each operation: who computes which box
    holdings    of each tensor: who holds which region; if nothing else is said, the workers that make it
    copies      of some tensors: who holds which region, made from which version, read by which operations

The jobs are those of the program that `lower` makes of the same tasks and holdings, without making it. A
change replaces the blocks (`blocks`) of the operations that it concerns: those whose tasks change, and those
that make or read a tensor whose holdings change. All else keeps its times up to the first moment at which
something changes (`events`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TypeVar

from ..dataflow.graph import Graph
from ..errors import MachineError, PlanError
from ..machines.machine import Machine
from ..machines.machine_file import machine_of
from ..programs.parts import Holding, Task
from ..support.gc_pause import gc_paused
from ..support.wording import alternatives, counted
from .block_cache import BlockCache
from .blocks import OperationBlock
from .box_jobs import BoxJobs
from .build_block import Holdings
from .placed_blocks import PlacedBlocks
from .task_sets import TaskSet
from .timeline import Timeline
from .times import NANOSECONDS, TaskTimes
from .versions import HeldCopy

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class _State:
    """The tasks and holdings that are simulated, or the part of them that a change replaces."""

    tasks: dict[int, TaskSet]
    """The tasks of operations."""

    given: dict[int, Holdings | None]
    """The holdings that versions were given; None if they follow the tasks that make them."""

    held: dict[int, Holdings]
    """The holdings of versions that have storage of their own."""

    blocks: dict[int, OperationBlock]
    """The blocks of operations."""


class Simulation:
    """One iteration of a graph whose tasks and holdings change again and again."""

    def __init__(
        self,
        graph: Graph,
        machine: Machine | str,
        workers: int,
        tasks: Mapping[str, Sequence[Task]],
        holdings: Mapping[str, Sequence[Holding]],
        *,
        stops: Mapping[str, Sequence[Holding]] | None = None,
        copies: Mapping[str, Sequence[HeldCopy]] | None = None,
        order: Sequence[str] | None = None,
        times: TaskTimes | None = None,
        cache: BlockCache | None = None,
    ) -> None:
        """Simulate one iteration.

        `tasks` has those of every operation. A tensor without `holdings` is held by the workers that make it,
        or is where the tensor is that it overwrites; a tensor that nothing makes needs some. `stops` are
        where partial results are reduced on their way to their holdings. `copies` are the versions of
        tensors besides their holdings. `order` are the operations in the order in which they run, if it is
        not the graph's. `times` gives the times of tasks, which are the machine's otherwise; equal operators
        take equal times. `cache` has what other simulations of the graph made, with the same machine, workers
        and times.

        Raises PlanError for tasks, holdings or copies that do not fit, and MachineError as `tofu.simulate`.
        """
        found = machine_of(machine)
        found.check_workers(workers)
        if found.processes:
            raise MachineError(
                f"plans that change are not simulated on processes, which the devices of machine "
                f"{found.name!r} have; simulate programs with tofu.simulate, or leave out `process`"
            )
        self._graph = graph
        self._machine = found
        self._workers = workers
        with gc_paused():
            self._cache = BlockCache(graph, found, workers, times) if cache is None else cache
            self._structure = self._cache.structures.of(graph, copies or {}, order)
            self._placed = PlacedBlocks(self._structure.net, workers, self._cache.messages.ways)
            self._state = _State({}, {}, {}, {})
            self._earlier: tuple[_State, int] | None = None
            """The part of the state that the open proposal replaced, and the time before it."""
            self._check_complete(tasks, holdings)
            held = {name: [copy.holdings for copy in listed] for name, listed in (copies or {}).items()}
            first = self._change(tasks, holdings, stops or {}, held)
            self._replace(first)
            self._nanoseconds = self._placed.begin(first.blocks)
            self._exceeds = False
            """Whether the open proposal takes longer than its limit."""

    def __repr__(self) -> str:
        return (
            f"<{self._graph.name} on {counted(self._workers, 'worker')} of {self._machine.name}: "
            f"{self.seconds * 1e3:.3f} ms>"
        )

    @property
    def nanoseconds(self) -> int:
        """The time of an iteration, with the open proposal if there is one."""
        return self._nanoseconds

    def propose(
        self,
        tasks: Mapping[str, Sequence[Task]],
        holdings: Mapping[str, Sequence[Holding]] | None = None,
        *,
        stops: Mapping[str, Sequence[Holding]] | None = None,
        copies: Mapping[str, Sequence[Sequence[Holding]]] | None = None,
        limit: float = inf,
    ) -> int:
        """Change tasks of operations and holdings of tensors; return the nanoseconds of an iteration.

        Tensors that were given no holdings follow the tasks that make them. New holdings come without the
        old `stops`. `copies` has new holdings of all copies of a tensor, whose readers stay. Call `accept`
        or `refuse` before the next proposal. If an iteration takes more than `limit` nanoseconds, a time
        between both may be returned. Then the proposal can only be refused.

        Raises PlanError if the change does not fit; then nothing changes.
        """
        if self._earlier is not None:
            raise PlanError("the last proposal is open; accept or refuse it before the next one")
        change = self._change(tasks, holdings or {}, stops or {}, copies or {})
        touched = {version for operation in change.blocks for version in self._structure.touched[operation]}
        overwriting = {int(self._structure.net.overwriter[version]) for version in touched} - {-1}
        self._earlier = self._replace(change), self._nanoseconds
        self._nanoseconds = self._placed.propose(change.blocks, sorted(overwriting), limit)
        self._exceeds = self._nanoseconds > limit
        return self._nanoseconds

    def accept(self) -> None:
        """Keep the open proposal. Raises PlanError if there is none, or if it exceeds its limit."""
        self._require_times()
        self._close()
        self._placed.accept()

    def refuse(self) -> None:
        """Go back to what was before the open proposal, exactly. Raises PlanError if there is none."""
        earlier, self._nanoseconds = self._close()
        self._replace(earlier)
        self._placed.refuse()

    @property
    def seconds(self) -> float:
        """The time of an iteration, with the open proposal if there is one."""
        return self._nanoseconds / NANOSECONDS

    @property
    def bound_seconds(self) -> float:
        """The bound that the time line states: no order of the same jobs takes less."""
        return max(self._placed.critical_path(), self._placed.busiest_lane()) / NANOSECONDS

    def moved(self) -> list[int]:
        """Return the bytes of each operation's messages, with the open proposal if there is one."""
        return [self._state.blocks[operation].moved_bytes for operation in range(len(self._state.blocks))]

    def unhindered(self) -> list[int]:
        """Return when each operation would end if no lane made any job wait, in nanoseconds."""
        return self._placed.unhindered()

    def deciding(self) -> list[int]:
        """Return the nanoseconds of each operation on a chain of jobs that takes the whole iteration.

        Each job starts when the one before ends, because it needs it or because a lane is occupied.
        """
        self._require_times()
        return self._placed.deciding()

    @property
    def timeline(self) -> Timeline:
        """The time line of an iteration, with the open proposal if there is one. Its jobs are made for it."""
        self._require_times()
        found = BoxJobs(self._cache.messages.ways)
        for number in map(int, self._structure.net.order):
            storage, times = self._structure.storage[number], self._placed.times(number)
            found.add(number, self._state.blocks[number], storage, times)
        work, moments = found.result()
        counts = found.sources_of_times
        profiled = self._machine.profile is not None
        return Timeline(
            self._graph,
            self._workers,
            None,
            self._machine,
            counts.weakest if profiled else "estimated",
            counts.shares if profiled else {},
            work,
            moments,
        )

    def _require_times(self) -> None:
        if self._earlier is not None and self._exceeds:
            raise PlanError(
                "the open proposal takes longer than its limit, so its times are not known; refuse it"
            )

    def _close(self) -> tuple[_State, int]:
        if self._earlier is None:
            raise PlanError("there is no open proposal; call propose first")
        found, self._earlier = self._earlier, None
        return found

    def _change(
        self,
        tasks: Mapping[str, Sequence[Task]],
        holdings: Mapping[str, Sequence[Holding]],
        stops: Mapping[str, Sequence[Holding]],
        copies: Mapping[str, Sequence[Sequence[Holding]]],
    ) -> _State:
        """Return the parts of the state that a change replaces, without changing anything."""
        operations, state = self._graph.operations, self._state
        done = self._cache.tasks(self._structure, _numbered("operation", tasks, self._structure.operations))
        given = self._given(holdings, stops) | self._copied(copies)
        held = dict(given)
        for number, found in done.items():
            for output, tensor in enumerate(operations[number].outputs):
                own = self._structure.versions.roots[tensor] == tensor
                if own and tensor not in held and state.given.get(tensor) is None:
                    held[tensor] = self._cache.made_by(found, output)
        concerned = {number for number, found in done.items() if state.tasks.get(number) is not found}
        for version, parts in held.items():
            if state.held.get(version) is not parts:
                concerned.update(self._structure.users[version])
        blocks = {}
        for number in sorted(concerned):
            storage = self._structure.storage[number]
            parts_of = [held[root] if root in held else state.held[root] for root in storage]
            found = done[number] if number in done else state.tasks[number]
            like = self._structure.likes[number]
            blocks[number] = self._cache.block(operations[number], like, found, parts_of)
        return _State(done, dict(given), held, blocks)

    def _given(
        self, holdings: Mapping[str, Sequence[Holding]], stops: Mapping[str, Sequence[Holding]]
    ) -> dict[int, Holdings]:
        """Return the holdings that tensors are given. Raises PlanError for those that cannot be."""
        for name in stops:
            if name not in holdings:
                raise PlanError(f"tensor {name!r} has stops but no holdings; give it holdings as well")
        named = list(_numbered("tensor", holdings, self._structure.tensors))
        for number, _ in named:
            tensor = self._graph.tensors[number]
            if tensor.alias is not None:
                other = self._graph.tensors[self._structure.versions.roots[number]].name
                raise PlanError(
                    f"tensor {tensor.name!r} is where {other!r} is, which it overwrites; give {other!r} the "
                    f"holdings instead"
                )
        names = self._graph.tensors
        listed = ((number, each, stops.get(names[number].name)) for number, each in named)
        return self._cache.given(self._structure, listed)

    def _copied(self, copies: Mapping[str, Sequence[Sequence[Holding]]]) -> dict[int, Holdings]:
        """Return the holdings that copies are given. Raises PlanError for those that cannot be."""
        listed: list[tuple[int, Sequence[Holding], None]] = []
        for name, given in copies.items():
            known = self._structure.versions.copies.get(name, [])
            if len(given) != len(known):
                raise PlanError(
                    f"tensor {name!r} has {counted(len(known), 'copy', 'copies')}, but holdings are given "
                    f"for {len(given)}; give those of each"
                )
            listed += [(version, each, None) for version, each in zip(known, given, strict=True)]
        return self._cache.given(self._structure, listed)

    def _replace(self, change: _State) -> _State:
        """Replace parts of the state, and return what was there before."""
        state = self._state
        earlier = _State(
            {number: state.tasks[number] for number in change.tasks if number in state.tasks},
            {number: state.given.get(number) for number in change.given},
            {number: state.held[number] for number in change.held if number in state.held},
            {number: state.blocks[number] for number in change.blocks if number in state.blocks},
        )
        state.tasks.update(change.tasks)
        state.given.update(change.given)
        state.held.update(change.held)
        state.blocks.update(change.blocks)
        return earlier

    def _check_complete(self, tasks: Mapping[str, object], holdings: Mapping[str, object]) -> None:
        """Raise PlanError if an operation has no tasks, or a tensor that nothing makes no holdings."""
        made = {tensor for operation in self._graph.operations for tensor in operation.outputs}
        homeless = [
            tensor.name
            for tensor in self._graph.tensors
            if tensor.alias is None and tensor.index not in made and tensor.name not in holdings
        ]
        listed = set(tasks)
        idle = [name for name in self._structure.operations if name not in listed]
        for what, names, lacks in (("operation", idle, "tasks"), ("tensor", homeless, "holdings")):
            if names:
                raise PlanError(f"{what} {names[0]!r} has no {lacks} ({len(names)} in all); give it some")


def _numbered(
    what: str, listed: Mapping[str, Sequence[Value]], numbers: Mapping[str, int]
) -> Iterable[tuple[int, Sequence[Value]]]:
    """Yield the number of each name and what is listed for it. Raises PlanError for unknown names."""
    for name, each in listed.items():
        if name not in numbers:
            raise PlanError(f"there is no {what} {name!r}{alternatives(name, numbers)}")
        yield numbers[name], each
