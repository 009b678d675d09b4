"""The search `auto` with lowering: as a function for `tofu.sync`, and as a method.

The search is imported when it runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..dataflow.graph import Graph
from ..dataflow.validate import validate
from ..errors import PlanError
from ..machines.machine import Machine
from ..machines.machine_file import machine_of
from .lowering.lowering import lower
from .methods.method import Method, register
from .methods.simulated import SimulatedSearch
from .plans.plan import Plan, require_graph, require_workers

if TYPE_CHECKING:
    from .methods.autodist.auto.candidates import SyncCandidate
    from .methods.autodist.auto.reasons import Reason
    from .methods.autodist.auto.search import SyncSearch
    from .methods.autodist.strategy import SyncStrategy

NAME = "auto"

TRIALS = 40
"""The trials of AutoDist's loop if no proposals are given."""


@dataclass(frozen=True, slots=True)
class AutoSync:
    """The strategy that a search has found, and why it is faster."""

    strategy: SyncStrategy
    """The strategy."""

    plan: Plan
    """Its plan."""

    seconds: float
    """The simulated time of an iteration."""

    plain_seconds: float
    """That of all-reduces, each variable's by itself."""

    reasons: tuple[Reason, ...]
    """The features on which the gain depends, the most important first; empty if there is none."""

    search: SyncSearch
    """All candidates."""


def auto(graph: Graph, workers: int, machine: Machine | str) -> AutoSync:
    """Search how each variable is synchronised, so that an iteration takes the least simulated time.

    The pieces of a group travel together, unless the machine has a profile, whose transfers were measured one
    by one. Raises PlanError if data parallelism has no plan, and MachineError as `tofu.simulate`.
    """
    from .methods.autodist.auto.candidates import Candidates
    from .methods.autodist.auto.reasons import reasons
    from .methods.autodist.auto.search import search_strategies

    require_graph(graph)
    require_workers(workers)
    validate(graph)
    found = machine_of(machine)
    merged = found.profile is None
    searched = search_strategies(graph, workers, found, lower, merged=merged)
    best = searched.best
    return AutoSync(
        best.strategy,
        replace(best.plan, method=NAME),
        best.seconds,
        searched.plain.seconds,
        reasons(searched, Candidates(graph, workers, found, lower, merged)),
        searched,
    )


def auto_plan(asked: SimulatedSearch) -> Plan:
    """Return the plan of the fastest strategy, every transfer with messages of its own, as engines have them.

    Raises PlanError if no candidate fits the memory.
    """
    from .methods.autodist.auto.search import search_strategies

    searched = search_strategies(
        asked.graph, asked.workers, asked.machine, lower, merged=False, rewrites=False
    )
    for each in searched.candidates:
        if not asked.excess(each.plan):
            return replace(each.plan, method=NAME, step_seconds=each.seconds)
    least = min(asked.excess(each.plan) for each in searched.candidates)
    raise PlanError(
        f"the method 'auto' finds no strategy that fits the memory: the least one takes {least:,} bytes "
        "more; use more workers, or a method that splits variables, such as 'refine'"
    )


def autodist_plan(asked: SimulatedSearch) -> Plan:
    """Return the plan of the fastest strategy that AutoDist's own loop has tried on the simulator.

    Its trials are the proposals of the search. Raises PlanError if that plan does not fit the memory.
    """
    from .methods.autodist.auto.candidates import Candidates
    from .methods.autodist.auto.loop import run_loop
    from .methods.autodist.auto.model import SyncModel
    from .methods.autodist.auto.search import PLAIN
    from .methods.autodist.builders import all_reduce

    trying = Candidates(asked.graph, asked.workers, asked.machine, lower, merged=False)
    reduced = all_reduce(asked.graph, asked.workers, chunk_size=1)
    model = SyncModel(asked.graph, asked.machine, trying.simulated(PLAIN, reduced)[1], merged=False)
    best: SyncCandidate | None = None

    def trial(strategy: SyncStrategy) -> float:
        nonlocal best
        found = trying.simulated("trial", strategy)[0]
        if best is None or found.seconds < best.seconds:
            best = found
        return found.seconds

    trials = asked.sampling.proposals or TRIALS
    run_loop(model, trial, trials, asked.sampling.seed)
    assert best is not None, "there is at least one trial"
    excess = asked.excess(best.plan)
    if excess:
        raise PlanError(
            f"the fastest of the strategies that 'autodist' has tried takes {excess:,} bytes too many; use "
            "'auto', which takes the fastest one that fits"
        )
    return replace(
        best.plan,
        method="autodist",
        step_seconds=best.seconds,
        sampling=replace(asked.sampling, proposals=trials),
    )


register(Method(NAME, auto_plan, simulates=True, slow=True, page="methods/autodist.md"))
register(
    Method(
        "autodist",
        autodist_plan,
        simulates=True,
        draws=True,
        only_trials=True,
        slow=True,
        page="methods/autodist.md",
    )
)
