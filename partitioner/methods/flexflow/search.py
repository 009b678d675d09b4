"""FlexFlow's search (FlexFlow, section 6.2).

    states         a configuration for every decision of the SOAP space, from the set of `configurations`
    cost           the simulated time of an iteration
    proposals      a decision and a configuration of its set, both drawn with equal probabilities
    candidates     data parallelism, experts' strategies, a random strategy; all are simulated first
    chains         one from each initial candidate
    acceptance     Metropolis, with beta relative to the time of the initial candidate
    stop           a chain ends when its budget is spent, or its best has not improved for half of it

Memory is not considered, as in the paper. Guarantees: the plan is not slower than the initial candidates, and
the same seed and number of proposals give the same plan. Implemented in: `flexflow`.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from ....simulator.block_cache import BlockCache
from ....simulator.simulation import Simulation
from ...plans.plan import Plan
from ..budget import Budget
from ..simulated import SimulatedSearch
from .chains import Chains, Visited
from .configurations import drawables
from .experts import candidates
from .soap import find_soap
from .strategy import Strategies, Strategy
from .walk import StrategyWalk, redraw, simulated


def flexflow(asked: SimulatedSearch) -> Plan:
    """Return the fastest plan that a chain from each initial candidate visits."""
    budget = Budget(asked.sampling, asked.watch)
    soap = find_soap(asked.graph, asked.workers)
    strategies = Strategies(soap, asked.space)
    cache = BlockCache(asked.graph, asked.machine, asked.workers)
    seed = asked.sampling.seed
    starts: list[tuple[Strategy, Simulation]] = []

    def begin(strategy: Strategy) -> None:
        starts.append((strategy, simulated(strategies, strategy, asked.machine, cache)))
        budget.show(starts[-1][1].nanoseconds)

    for _, strategy in candidates(strategies):
        begin(strategy)
    drawn, first = drawables(soap.decisions, asked.workers), Random(f"{seed} first")
    begin(tuple(each.draw(first) for each in drawn))
    chains = Chains(len(starts), budget)
    found: list[Visited] = []
    for number, (start, simulation) in enumerate(starts):
        walk = StrategyWalk(simulation, strategies, start, redraw(drawn))
        found.append(chains.run(walk, Random(f"{seed} {number}"))[-1])
    best = min(found, key=lambda each: each.cost)
    strategy = tuple(each for each in best.state if each is not None)
    final = simulated(strategies, strategy, asked.machine, cache)
    return replace(
        strategies.plan(strategy),
        method="flexflow",
        sampling=asked.sampling,
        step_seconds=final.seconds,
        step_bound_seconds=final.bound_seconds,
    )
