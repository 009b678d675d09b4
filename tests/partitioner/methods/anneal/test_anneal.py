"""Annealing from the plans of other methods."""

from __future__ import annotations

from functools import cache
from random import Random
from unittest.mock import patch

import pytest

import tofu
from tofu.errors import MachineError, PlanError
from tofu.partitioner.methods.anneal import windows
from tofu.partitioner.methods.anneal.moves import Moves
from tofu.partitioner.methods.anneal.neighbours import Neighbours
from tofu.partitioner.methods.anneal.open_decisions import OpenDecisions
from tofu.partitioner.methods.anneal.reading import state_of
from tofu.partitioner.methods.anneal.rewrites import Rewrites, Timed
from tofu.partitioner.methods.anneal.windows import DecisionWindows
from tofu.partitioner.methods.flexflow import strategy
from tofu.partitioner.methods.flexflow.configurations import drawables
from tofu.partitioner.methods.flexflow.soap import find_soap
from tofu.partitioner.methods.flexflow.strategy import Strategies
from tofu.partitioner.methods.flexflow.walk import StrategyWalk, simulated
from tofu.partitioner.methods.search import FIRST
from tofu.partitioner.methods.simulated import SearchProgress
from tofu.partitioner.plans.plan import Plan
from tofu.partitioner.plans.simulation import simulation
from tofu.partitioner.plans.space import Space
from tofu.simulator.times import NANOSECONDS

from ..flexflow.small_graphs import OPTIONS, graph_of

MACHINE = "p100-node"


@cache
def annealed(model: str, proposals: int) -> Plan:
    return tofu.partition(graph_of(model), 4, method="anneal", machine=MACHINE, proposals=proposals)


@pytest.mark.parametrize("proposals", [20, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("model", OPTIONS)
def test_the_plan_is_not_slower_than_any_start(model: str, proposals: int) -> None:
    graph = graph_of(model)
    plan = annealed(model, proposals)
    tofu.verify(graph, plan)
    assert plan.method == "anneal"
    assert plan.sampling is not None
    assert plan.step_seconds == tofu.simulate(tofu.lower(graph, plan), MACHINE).seconds
    for method in (
        "recursive",
        "refine",
        "data-parallel",
        "megatron",
        "zero-3",
        "one-weird-trick",
        "wu-2016",
    ):
        try:
            other = tofu.partition(graph, 4, method=method)
        except PlanError:
            continue
        assert plan.step_seconds <= tofu.simulate(tofu.lower(graph, other), MACHINE).seconds


@pytest.mark.parametrize("keep", [True, False])
def test_copies_and_hops_are_searched_unless_nothing_may_be_kept(keep: bool) -> None:
    plan = tofu.partition(graph_of("mlp"), 2, "anneal", machine=MACHINE, proposals=1, keep=keep)
    assert plan.space is not None
    assert plan.space.keep == keep


@pytest.mark.parametrize(
    ("model", "proposals"), [("mlp", 30), pytest.param("lstm", 30, marks=pytest.mark.slow)]
)
def test_the_same_seed_gives_the_same_plan(model: str, proposals: int) -> None:
    first, second = (
        tofu.partition(graph_of(model), 2, method="anneal", machine=MACHINE, proposals=proposals, seed=3)
        for _ in range(2)
    )
    assert first == second


def test_what_is_forgotten_is_found_again() -> None:
    found = annealed("mlp", 20)
    with (
        patch.object(windows, "LIMIT", 8),
        patch.object(strategy, "LIMIT", 8),
        patch.object(
            DecisionWindows, "_forget", autospec=True, side_effect=DecisionWindows._forget
        ) as of_windows,
        patch.object(Strategies, "_forget", autospec=True, side_effect=Strategies._forget) as of_strategies,
    ):
        assert annealed.__wrapped__("mlp", 20) == found
    assert of_windows.call_count > 1
    assert of_strategies.call_count > 1


def test_the_plan_keeps_within_the_memory() -> None:
    graph = graph_of("mlp")
    free = tofu.partition(graph, 2, method="anneal", machine=MACHINE, proposals=60)
    peak = tofu.partitioner.peak_bytes(graph, free)
    least = min(
        tofu.partitioner.peak_bytes(graph, tofu.partition(graph, 2, method=method))
        for method in ("recursive", "zero-3", "megatron")
    )
    assert least < peak, "else the limit limits nothing"
    limit = (least + peak) // 2
    kept = tofu.partition(graph, 2, method="anneal", machine=MACHINE, proposals=60, memory=limit)
    assert tofu.partitioner.peak_bytes(graph, kept) <= limit
    with pytest.raises(
        PlanError, match=r"the memory of each worker: the lightest start of 'anneal' needs [\d,]+ bytes more"
    ):
        tofu.partition(graph, 2, method="anneal", machine=MACHINE, proposals=5, memory=1000)


@pytest.mark.parametrize("model", OPTIONS)
def test_moves_make_plans_that_verify_and_take_the_simulated_time(model: str) -> None:
    graph, workers = graph_of(model), 4
    soap = find_soap(graph, workers, sums=True)
    strategies, drawn, draw = (
        Strategies(soap, Space(feed="batch")),
        drawables(soap.decisions, workers),
        Random(1),
    )
    strategy = tuple(each.draw(draw) for each in drawn)
    machine, neighbours = tofu.machines.load(MACHINE), Neighbours(soap)
    windows = DecisionWindows(strategies, drawn, neighbours, machine)
    simulation = simulated(strategies, strategy, machine)
    moves = Moves(soap, drawn, neighbours, windows, OpenDecisions(soap, drawn, ()), simulation.deciding)
    walk = StrategyWalk(simulation, strategies, strategy, moves)
    for _ in range(120):
        walk.propose(draw)
        walk.accept()
    known = tuple(each for each in walk.strategy if each is not None)
    plan = strategies.plan(known)
    tofu.verify(graph, plan)
    assert tofu.simulate(tofu.lower(graph, plan), MACHINE).seconds * 1e9 == pytest.approx(walk.cost)


@pytest.mark.parametrize("model", OPTIONS)
def test_states_are_read_from_plans(model: str) -> None:
    """A strategy's plan is read as the strategy, but for the holders of partial results."""
    graph = graph_of(model)
    soap = find_soap(graph, 4, sums=True)
    strategies, draw = Strategies(soap, Space(feed="batch")), Random(2)
    strategy = [each.draw(draw) for each in drawables(soap.decisions, 4)]
    read = state_of(strategies, strategies.plan(tuple(strategy)))
    for mine, its in zip(strategy, read, strict=True):
        assert its is not None
        assert (mine.degrees, mine.workers) == (its.degrees, its.workers)


def test_plans_in_steps_are_read() -> None:
    graph = graph_of("mlp")
    soap = find_soap(graph, 4, sums=True)
    strategies = Strategies(soap, Space(feed="batch"))
    plan = tofu.partition(graph, 4, method="recursive", keep=False)
    found = [each is not None for each in state_of(strategies, plan)]
    assert sum(found) > 0.9 * len(found)


def test_configurations_are_carried_to_neighbours_without_moving_a_byte() -> None:
    """From a product to the activation that reads it, and back."""
    graph = graph_of("mlp")
    soap = find_soap(graph, 4)
    neighbours, draw = Neighbours(soap), Random(0)
    number = {graph.operations[each.operations[0]].name: n for n, each in enumerate(soap.decisions)}
    first, then = number["fc1"], number["relu1"]
    for _ in range(50):
        configuration = drawables(soap.decisions, 4)[first].draw(draw)
        carried = neighbours.carried(first, configuration, then)
        assert carried is not None
        assert (carried.degrees, carried.workers) == (configuration.degrees, configuration.workers)
        assert neighbours.carried(then, carried, first) == configuration


@pytest.mark.parametrize(
    ("model", "seed", "proposals"),
    [("mlp", 0, 30), ("lenet", 2, 10)],  # in the second, the last chain is faster
)
def test_the_watch_is_told_of_starts_and_of_the_plan_that_is_returned(
    model: str, seed: int, proposals: int
) -> None:
    graph, seen = graph_of(model), list[SearchProgress]()
    plan = tofu.partition(
        graph, 4, method="anneal", machine=MACHINE, proposals=proposals, seed=seed, watch=seen.append
    )
    assert [each.seconds for each in seen] == sorted((each.seconds for each in seen), reverse=True)
    assert seen[-1].seconds == plan.step_seconds
    starts = [each for each in seen if not each.chain]
    assert starts
    assert not any(each.chains or each.proposals for each in starts)
    assert any(each.chain and each.proposals for each in seen)
    assert [each.chain for each in seen] == sorted(each.chain for each in seen)
    assert "wu-2016" in FIRST  # a start that cannot be made is passed over
    with pytest.raises(PlanError):
        tofu.partition(graph, 4, "wu-2016")


def test_seconds_limit_the_starts_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search without time has one start, the first that there is, made faster by moves of whole plans."""
    graph, seen, starts = graph_of("lenet"), list[SearchProgress](), list[Timed]()
    best = Rewrites.best

    def counted(self: Rewrites, found: Timed) -> Timed:
        starts.append(found)
        return best(self, found)

    monkeypatch.setattr(Rewrites, "best", counted)
    plan = tofu.partition(graph, 4, method="anneal", machine=MACHINE, seconds=1e-6, watch=seen.append)
    assert [round(each.seconds * NANOSECONDS) for each in seen[:1]] == [each.nanoseconds for each in starts]
    assert not any(each.chain for each in seen)
    assert seen[-1].seconds == plan.step_seconds
    assert plan.sampling is not None
    assert plan.sampling.seconds == 1e-6
    assert seen[0].seconds == simulation(graph, tofu.partition(graph, 4, FIRST[0]), MACHINE).seconds


def test_a_start_that_fits_is_looked_for_after_the_seconds() -> None:
    """The first start does not fit 460,000 bytes, the workspace of kernels included."""
    graph, seen = graph_of("mlp"), list[SearchProgress]()
    free, kept = (
        tofu.partition(
            graph, 4, method="anneal", machine=MACHINE, seconds=1e-6, memory=memory, watch=seen.append
        )
        for memory in ("unlimited", 460_000)
    )
    assert tofu.partitioner.peak_bytes(graph, kept) < tofu.partitioner.peak_bytes(graph, free)
    assert not any(each.chain for each in seen)


def test_machines_that_count_nothing_by_level_have_plans() -> None:
    """Six workers are four of one node and two of the other, so there are no prices for the time of steps."""
    graph, uneven = graph_of("mlp"), tofu.machines.load("2x-p100-node")
    with pytest.raises(MachineError, match="not divided evenly"):
        tofu.partition(graph, 6, machine=uneven, objective="step-time")
    plan = tofu.partition(graph, 6, method="anneal", machine=uneven, proposals=5)
    tofu.verify(graph, plan)
    parallel = tofu.partition(graph, 6, "data-parallel")
    assert plan.step_seconds < simulation(graph, parallel, uneven).seconds
