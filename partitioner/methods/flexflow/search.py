"""FlexFlow's search (FlexFlow, section 6.2).

    states         a configuration for every decision of the SOAP space, from the set of `configurations`
    cost           the simulated time of an iteration
    proposals      a decision and a configuration of its set, both drawn with equal probabilities
    chains         one from each initial candidate: data parallelism, experts' strategies, a random strategy
    acceptance     Metropolis, with beta relative to the time of the initial candidate
    stop           a chain ends when its budget is spent, or its best has not improved for half of it

Memory is not considered, as in the paper. Guarantees: the plan is not slower than the initial candidates, and
the same seed and number of proposals give the same plan. Implemented in: `flexflow`.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from ....dataflow.graph import Graph
from ....machines.machine import Machine
from ....simulator.times import task_times
from ...plans.plan import Plan
from ...plans.sampling import Sampling
from ...plans.space import Space
from .chains import Chains, Watch, least
from .configurations import drawables
from .experts import candidates
from .soap import find_soap
from .strategy import Strategies
from .walk import StrategyWalk


def flexflow(
    graph: Graph,
    workers: int,
    space: Space,
    machine: Machine,
    sampling: Sampling,
    watch: Watch | None = None,
) -> Plan:
    """Return the fastest plan that a chain from each initial candidate visits."""
    soap = find_soap(graph, workers)
    drawn = drawables(soap.decisions, workers)
    strategies, times = Strategies(soap, space), task_times(graph, machine, workers)
    draw = Random(f"{sampling.seed} first")
    starts = [*candidates(strategies).values(), tuple(each.draw(draw) for each in drawn)]
    chains = Chains(len(starts), sampling, watch)
    found = least(
        chains.run(
            StrategyWalk(strategies, drawn, start, machine, times), Random(f"{sampling.seed} {number}")
        )
        for number, start in enumerate(starts)
    )
    timeline = StrategyWalk(strategies, drawn, found.strategy, machine, times).timeline
    return replace(
        strategies.plan(found.strategy),
        method="flexflow",
        sampling=sampling,
        step_seconds=timeline.seconds,
        step_bound_seconds=timeline.bound_seconds,
    )
