"""The settings of a search."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ...dataflow.graph import Graph
from ...errors import PlanError
from ...machines.machine import Machine
from ...machines.machine_file import machine_of
from ...simulator.times import task_times
from ..plans.sampling import Sampling
from ..plans.space import Space, parse_feed
from ..problem.constraints import Constraint
from ..problem.moved_bytes import MovedBytes
from ..problem.problem import Objective
from ..problem.step_time import StepTime
from ..problem.transfer_time import TransferTime
from ..solvers.anytime import Report
from .manual import Layouts
from .method import Method, Search, every_method, find_method
from .simulated import Watch
from .worker_memory import WorkerMemory

OBJECTIVES = ("bytes", "time", "step-time")


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """The settings of a search, besides a graph and a number of workers."""

    method: str | Method | Search = "recursive"
    """A method's name, a method, or a function of a `Problem` and a number of workers."""

    constraints: Iterable[Constraint | str] = ()
    """Pins and prohibitions, see `constraints`. The plan's lower bound holds for plans that obey them."""

    layouts: Layouts | None = None
    """Layouts to score, or a plan written in full, see `manual`."""

    machine: Machine | str | None = None
    """For the objectives `time` and `step-time`, and for methods that simulate: a machine, a preset's name or
    a file.
    """

    objective: str = "bytes"
    """The quantity to minimise: `bytes`, the `time` that the traffic takes over the machine's links, or
    `step-time`, which adds that of computations.
    """

    replicate: bool = True
    """Whether steps may replicate tensors that they could split."""

    keep: bool = True
    """Whether plans may keep what is made, see `Space.keep`; for `bytes`, and methods that do so."""

    copy_activations: bool = False
    """Whether activations may have copies as well, see `Space.activations`."""

    feed: str = "batch"
    """Where data and labels arrive: split by `batch`, or `anywhere`, wherever a plan likes."""

    report: Report | None = None
    """Called with the progress, by methods that report it."""

    sampling: Sampling = field(default_factory=Sampling)
    """The seed and the budget of methods that draw."""

    memory: WorkerMemory | None = None
    """The memory of each worker, for methods that simulate; None if there is no limit."""

    groups: str | None = None
    """For methods that place: the groups and the workers of each, such as `2x4`; None for the best."""

    merge: bool = False
    """Whether operations that do the same to several tensors may be one, see `dataflow.merging`."""

    watch: Watch | None = None
    """Called with the progress, by methods that simulate."""

    def chosen_method(self) -> Method:
        """Return the method. Raises PlanError if it is unknown or other settings do not go with it."""
        method = find_method(self.method)
        if self.objective not in OBJECTIVES:
            raise PlanError(f"there is no objective {self.objective!r}; there are: {', '.join(OBJECTIVES)}")
        self.sampling.check()
        if self.sampling != Sampling() and not method.draws:
            able = ", ".join(name for name, each in every_method().items() if each.draws)
            raise PlanError(
                f"the method {method.name!r} draws nothing, so it takes no seed, proposals, beta, seconds or "
                f"slower; leave them out, or choose one of {able}"
            )
        if method.only_trials and self.sampling != self.sampling.of_trials():
            able = ", ".join(n for n, each in every_method().items() if each.draws and not each.only_trials)
            raise PlanError(
                f"the method {method.name!r} makes a number of trials (--proposals), so it takes no beta and "
                f"no seconds; leave them out, or choose one of {able}"
            )
        if self.sampling.slower and not method.lightens:
            able = ", ".join(name for name, each in every_method().items() if each.lightens)
            raise PlanError(
                f"the method {method.name!r} gives up no time for fewer bytes; leave out how much slower "
                f"the plan may be (--slower), or choose {able}"
            )
        if self.groups is not None and not method.takes_groups:
            able = ", ".join(name for name, each in every_method().items() if each.takes_groups)
            raise PlanError(
                f"the method {method.name!r} places nothing on groups of workers; leave out the groups "
                f"(--groups), or choose {able}"
            )
        if self.machine is not None and self.objective == "bytes" and not method.simulates:
            raise PlanError(
                "a machine needs the objective 'time' or 'step-time'; add objective='time', or leave out the "
                "machine"
            )
        if isinstance(self.constraints, str):
            raise PlanError(f"constraints are a list of pins and prohibitions; write [{self.constraints!r}]")
        if (self.layouts is None) == method.takes_layouts:
            raise PlanError(
                f"the method {method.name!r} needs layouts, such as {{'fc1_weight': 0}}, or a file of them "
                "(--layouts)"
                if self.layouts is None
                else f"layouts are for the method 'manual', not {method.name!r}; choose that, or pin tensors"
            )
        return method

    def space(self) -> Space:
        """Return the space that is searched.

        Raises PlanError for an unknown feed, or if activations cannot be copied.
        """
        method = find_method(self.method)
        keeps = self.keep and self.objective == "bytes" and method.keeps
        if self.copy_activations and not (keeps and method.copies_activations):
            able = ", ".join(name for name, each in every_method().items() if each.copies_activations)
            raise PlanError(
                f"the method {method.name!r} with the objective {self.objective!r} and keep="
                f"{self.keep} searches no copies of activations; leave them out (copy_activations, "
                f"--copy-activations), or choose one of {able} with the objective 'bytes' and copies kept"
            )
        return Space(self.replicate, parse_feed(self.feed), keeps, activations=self.copy_activations)

    def known_machine(self) -> Machine | None:
        """Return the machine, read if it is a name or a file. Raises MachineError for a bad one."""
        return None if self.machine is None else machine_of(self.machine)

    def simulated_machine(self, workers: int) -> Machine:
        """Return the machine on which a method simulates.

        Raises PlanError if none was given, and MachineError for a bad one.
        """
        found = self.known_machine()
        if found is None:
            raise PlanError(
                f"the method {self.chosen_method().name!r} simulates iterations on a machine; give a "
                "preset's name, a file or a Machine (--machine)"
            )
        found.check_workers(workers)
        return found

    def made_objective(self, graph: Graph, workers: int) -> Objective:
        """Return the objective. Raises PlanError if a time has no machine, MachineError for a bad one."""
        if self.objective == "bytes":
            return MovedBytes()
        found = self.known_machine()
        if found is None:
            raise PlanError(
                f"the objective {self.objective!r} needs a machine; give a preset's name, a file or a Machine"
            )
        found.check_workers(workers)
        if self.objective == "time":
            return TransferTime(found, workers)
        return StepTime(found, workers, task_times(graph, found, workers))
