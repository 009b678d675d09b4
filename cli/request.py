"""Options for the search of a plan on the command line: constraints, layouts, a machine, memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ..dataflow.graph import Graph
    from ..machines.machine import Machine
    from ..partitioner import Fitting, SearchSettings
    from ..partitioner.costs.traffic import Traffic
    from ..partitioner.methods.limit import Limit
    from ..partitioner.methods.method import Method
    from ..partitioner.methods.simulated import Watch
    from ..partitioner.plans.sampling import Sampling
    from ..programs.program import PartitionedGraph
    from ..simulator.timeline import Timeline


@dataclass(frozen=True)
class Request:
    """A user's settings of the search and of the report on its plan."""

    workers: int | None
    """Number of workers; None for the fewest whose plan fits the limit."""

    settings: SearchSettings
    """The settings of the search."""

    machine: Machine | None
    """The machine whose links carry the traffic, whatever is minimised."""

    limit: Limit
    """The memory of each device; None for the default of a search."""

    @classmethod
    def read(
        cls,
        workers: int | None,
        pins: tuple[str, ...],
        forbidden: tuple[str, ...],
        layouts: Path | None,
        machine: str | None,
        objective: str,
        memory: str | None,
        replicate: bool,
        keep: bool,
        feed: str,
    ) -> Request:
        """Read the values of the options. Raises TofuError for the first malformed one."""
        from ..machines.machine_file import load_machine
        from ..partitioner import SearchSettings
        from ..partitioner.methods.limit import parse_limit
        from ..partitioner.methods.manual import read_layouts
        from ..partitioner.problem.constraints import parse_forbid, parse_pin

        found = None if machine is None else load_machine(machine)
        if found is None and objective != "bytes":
            raise click.UsageError(f"--objective {objective} needs --machine, whose links carry the traffic")
        if found is not None and workers is not None:
            found.check_workers(workers)
        written = None
        if layouts is not None:
            if workers is None:
                raise click.UsageError("--layouts are for one number of workers; give it instead of auto")
            written = read_layouts(layouts, workers)
        settings = SearchSettings(
            constraints=(*map(parse_pin, pins), *map(parse_forbid, forbidden)),
            layouts=written,
            machine=None if objective == "bytes" else found,
            objective=objective,
            replicate=replicate,
            keep=keep,
            feed=feed,
        )
        return cls(workers, settings, found, parse_limit(memory, "--memory", found))

    def on_groups(self, groups: str | None) -> Request:
        """Return the request with the groups of workers on which operations are placed."""
        return replace(self, settings=replace(self.settings, groups=groups))

    def copying_activations(self, copied: bool) -> Request:
        """Return the request that may copy activations, or may not."""
        return replace(self, settings=replace(self.settings, copy_activations=copied))

    def merging(self, merge: bool) -> Request:
        """Return the request that may merge operations, or may not."""
        return replace(self, settings=replace(self.settings, merge=merge))

    def drawing(
        self, seed: int, proposals: int | None, beta: float | None, seconds: float | None, slower: float
    ) -> Request:
        """Return the request with the seed and the budget of methods that draw."""
        from ..partitioner.plans.sampling import Sampling

        given = Sampling(seed, proposals, seconds=seconds, slower=slower)
        sampling = given if beta is None else replace(given, beta=beta)
        return replace(self, settings=replace(self.settings, sampling=sampling))

    def each(self) -> dict[str, Request]:
        """Return the request for each method. Layouts go only to the methods that score them; without layouts
        these methods are left out. The seed, the budget, the groups and copies of activations go only to
        methods that take them.
        """
        from ..partitioner.methods.method import every_method

        given = self.settings
        return {
            name: replace(
                self,
                settings=replace(
                    given,
                    sampling=_sampling(given.sampling, method),
                    groups=given.groups if method.takes_groups else None,
                    layouts=given.layouts if method.takes_layouts else None,
                    copy_activations=given.copy_activations and method.copies_activations,
                ),
            )
            for name, method in every_method().items()
            if given.layouts is not None or not method.takes_layouts
        }

    def partition(
        self,
        graph: Graph,
        method: str,
        report: Callable[[int, int], None] | None = None,
        watch: Watch | None = None,
        trying: Callable[[int], None] | None = None,
    ) -> Fitting:
        """Search by one method, see `tofu.partition`. Raises PlanError if it cannot do what is asked.

        If no plan for these workers fits the memory, the one that needs the least is returned. If the fewest
        workers are asked for, `trying` is called with every number before its search.
        """
        from ..partitioner.methods.method import find_method
        from ..within_limit import search_fewest, search_within

        settings = replace(self.settings, method=method, report=report, watch=watch)
        if find_method(method).simulates:
            settings = replace(settings, machine=self.machine)
        if self.workers is None:
            return search_fewest(graph, settings, self.limit, self.machine, trying)
        return search_within(graph, self.workers, settings, self.limit)

    def front(self, graph: Graph, method: str) -> tuple[Fitting, ...]:
        """Return plans from the least memory up to the best plan, see `memory_front`."""
        from ..partitioner import memory_front, peak_bytes

        assert self.workers is not None, "the search has found their number"
        settings = replace(self.settings, method=method)
        return memory_front(graph, self.workers, settings, partial(peak_bytes, graph))

    def require_fit(self, graph: Graph, found: Fitting) -> None:
        """Raise PlanError if a plan takes more than each device has."""
        from ..errors import PlanError
        from ..within_limit import refusal

        refused = refusal(graph, found, self.limit)
        if refused is not None:
            raise PlanError(refused)

    def timeline(self, programs: PartitionedGraph) -> Timeline | None:
        """Simulate one iteration; None without a machine that says how fast its devices are."""
        from ..simulator import simulate

        if self.machine is None or not self.machine.kinds:
            return None
        return simulate(programs, self.machine)

    def facts(
        self, programs: PartitionedGraph | None, timeline: Timeline | None, found: Fitting
    ) -> dict[str, Any]:
        """Return what there is to say of a plan beyond its bytes, as `--json` prints it."""
        from ..partitioner.costs.traffic import traffic
        from ..partitioner.methods.limit import worker_limits

        facts: dict[str, Any] = {}
        if self.settings.constraints:
            facts["constraints"] = [str(constraint) for constraint in self.settings.constraints]
        if self.machine is not None:
            assert programs is not None, "what crosses its links is counted in programs"
            facts["machine"] = self.machine.name
            facts["objective"] = self.settings.objective
            if self.machine.levels:
                facts |= _by_level(traffic(programs, self.machine))
        facts["step_seconds"] = None if timeline is None else timeline.seconds
        facts["step_bound_seconds"] = None if timeline is None else timeline.bound_seconds
        limits = worker_limits(self.limit, found.plan.workers)
        if limits is not None:
            facts["device_memory_bytes"] = min(limits)
            facts["fits"] = found.peak_bytes <= max(limits)
            if min(limits) < max(limits):
                facts["memory_limit_bytes_per_worker"] = list(limits)
        facts["workspace_bytes_per_worker"] = found.workspace_bytes
        facts["memory_limit_bytes"] = found.plan.space.memory_bytes
        if found.larger and "memory_limit_bytes_per_worker" not in facts:
            facts["more_memory"] = point(found.larger[0])
        return facts


def _sampling(given: Sampling, method: Method) -> Sampling:
    """Return what a method takes of the seed and the budget."""
    from ..partitioner.plans.sampling import Sampling

    if not method.draws:
        return Sampling()
    taken = given.of_trials() if method.only_trials else given
    return taken if method.lightens else replace(taken, slower=0.0)


def _by_level(crossing: Traffic) -> dict[str, Any]:
    """Return what crosses each level of a machine, as `--json` prints it."""
    entries = zip(
        crossing.levels,
        crossing.crossing_bytes,
        crossing.busiest_bytes,
        crossing.busiest_seconds,
        strict=True,
    )
    names = "level", "crossing_bytes", "busiest_link_bytes", "busiest_link_seconds"
    return {
        "levels": [dict(zip(names, entry, strict=True)) for entry in entries],
        "transfer_seconds": crossing.transfer_seconds,
    }


def point(found: Fitting) -> dict[str, float]:
    """Return a plan as a point of cost against memory, as `--json` prints it."""
    plan = found.plan
    facts: dict[str, float] = {"peak_bytes_per_worker": found.peak_bytes, "cost_bytes": plan.cost_bytes}
    if plan.transfer_time is not None:
        facts["objective_seconds"] = plan.transfer_time.seconds
    if plan.step_seconds is not None:
        facts["step_seconds"] = plan.step_seconds
    return facts
