"""FlexFlow's search as a method."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from random import Random

import pytest

import tofu
from tofu.errors import PlanError
from tofu.partitioner.methods.flexflow.configurations import drawables
from tofu.partitioner.methods.flexflow.experts import candidates
from tofu.partitioner.methods.flexflow.metropolis import metropolis
from tofu.partitioner.methods.flexflow.soap import find_soap
from tofu.partitioner.methods.flexflow.strategy import Strategies
from tofu.partitioner.methods.flexflow.walk import StrategyWalk, redraw, simulated
from tofu.partitioner.methods.simulated import SearchProgress
from tofu.partitioner.plans.sampling import Sampling
from tofu.partitioner.plans.space import Space

from ....compiled_loops import same_in_plain_python
from .small_graphs import graph_of

MACHINE = "p100-node"


def test_the_same_seed_gives_the_same_plan_and_another_one_another(tmp_path: Path) -> None:
    graph = graph_of("mlp")
    plans = [
        tofu.partition(graph, 4, method="flexflow", machine=MACHINE, proposals=60, seed=seed)
        for seed in (0, 0, 1)
    ]
    assert plans[0] == plans[1]
    assert plans[0].layouts != plans[2].layouts or plans[0].strategies != plans[2].strategies
    plans[2].save(tmp_path / "plan.json")
    read = tofu.Plan.load(tmp_path / "plan.json")
    assert read == plans[2]
    assert read.sampling == Sampling(seed=1, proposals=60)


@pytest.mark.parametrize("model", ["mlp", "lenet", "lstm"])
def test_the_plan_is_verified_timed_and_not_slower_than_its_starts(model: str) -> None:
    graph = graph_of(model)
    plan = tofu.partition(graph, 4, method="flexflow", machine=MACHINE, proposals=100)
    tofu.verify(graph, plan)
    timeline = tofu.simulate(tofu.lower(graph, plan), MACHINE)
    assert plan.step_seconds == timeline.seconds
    assert plan.step_bound_seconds == timeline.bound_seconds <= timeline.seconds
    strategies = Strategies(find_soap(graph, 4), plan.space)
    machine = tofu.machines.load(MACHINE)
    for _, strategy in candidates(strategies):
        assert plan.step_seconds <= simulated(strategies, strategy, machine).seconds


def test_more_proposals_find_no_slower_plans() -> None:
    graph = graph_of("lenet")
    found = [
        tofu.partition(graph, 4, method="flexflow", machine=MACHINE, proposals=count).step_seconds
        for count in (10, 100, 400)
    ]
    assert found == sorted(found, key=lambda each: -(each or 0.0))
    assert found[0] != found[-1]


def test_seconds_end_the_search_and_are_recorded() -> None:
    seen: list[SearchProgress] = []
    plan = tofu.partition(
        graph_of("mlp"), 4, method="flexflow", machine=MACHINE, seconds=0.6, watch=seen.append
    )
    assert plan.sampling is not None
    assert plan.sampling.seconds == 0.6
    assert plan.search_seconds is not None
    assert plan.search_seconds < 10
    assert seen[0].chain == 0, "candidates come before all chains"
    first = [each for each in seen if each.chain == 0]
    assert all(each.chains == each.proposals == 0 for each in first)
    assert seen[: len(first)] == first != seen
    assert all(1 <= each.chain <= each.chains for each in seen[len(first) :])
    assert all(each.per_second > 1 for each in seen if each.proposals)
    assert [each.seconds for each in seen] == sorted((each.seconds for each in seen), reverse=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "the method 'flexflow' simulates iterations on a machine; give a preset's name"),
        ({"machine": MACHINE, "proposals": 0}, "the number of proposals is 0; give a whole number"),
        ({"machine": MACHINE, "seed": -1}, "the seed is -1; give a whole number"),
        ({"machine": MACHINE, "beta": 0.0}, "beta is 0.0; give a finite number larger than 0"),
        ({"machine": MACHINE, "seconds": float("nan")}, "seconds is nan; give a finite number larger than 0"),
        ({"machine": MACHINE, "beta": 10**400}, "beta is 1000*; give a finite number larger than 0"),
        ({"machine": MACHINE, "slower": 10**400}, "slower is 1000*; give a finite number, 0 or larger"),
        ({"machine": MACHINE, "objective": "step-time"}, "so nothing else is searched; leave out"),
        ({"method": "refine", "proposals": 5}, "the method 'refine' draws nothing, so it takes no seed"),
        ({"method": "autodist", "seconds": 5.0}, "'autodist' makes a number of trials .* no seconds"),
        ({"method": "autodist", "beta": 5.0}, "leave them out, or choose one of flexflow, anneal"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        tofu.partition(graph_of("mlp"), 4, **{"method": "flexflow", **options})


def test_one_worker_has_nothing_to_choose() -> None:
    plan = tofu.partition(graph_of("mlp"), 1, method="flexflow", machine=MACHINE, proposals=5)
    assert plan.cost_bytes == 0


def accepted(proposals: int) -> str:
    """Which proposals a chain from data parallelism accepts, and the times that it ends with."""
    strategies = Strategies(find_soap(graph_of("mlp"), 4), Space(feed="batch"))
    drawn = drawables(strategies.soap.decisions, 4)
    start = dict(candidates(strategies))["data-parallel"]
    machine = tofu.machines.load(MACHINE)
    walk = StrategyWalk(simulated(strategies, start, machine), strategies, start, redraw(drawn))
    beta = 100 / walk.cost
    found = [f"{int(each)}" for each in islice(metropolis(walk, Random(4), lambda _: beta), proposals)]
    return f"{''.join(found)}-{walk.cost}"


@pytest.mark.parametrize("proposals", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_plain_python_accepts_what_compiled_loops_accept(proposals: int) -> None:
    sequence = same_in_plain_python(accepted, proposals)
    assert "0" in sequence
    assert "1" in sequence.partition("-")[0]
