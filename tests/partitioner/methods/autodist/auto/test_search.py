"""The search: never behind a builder, ahead of all of them where links differ, and it says why."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest

import tofu
from tofu.machines import load
from tofu.partitioner import AutoSync
from tofu.partitioner.methods.autodist.auto.candidates import Candidates
from tofu.partitioner.methods.autodist.auto.model import SyncModel
from tofu.partitioner.methods.autodist.auto.sampler import sample
from tofu.partitioner.methods.autodist.auto.search import PLAIN, groups_of
from tofu.partitioner.methods.autodist.builders import BUILDERS, all_reduce
from tofu.partitioner.methods.autodist.merging import merge
from tofu.sync import auto, compile

from .stacked import stacked, star

WORKERS = 4


@cache
def searched(slow: str | None, rails: int, latency: str | int) -> AutoSync:
    return auto(stacked(), WORKERS, star(WORKERS, slow, rails, latency))


def test_one_slow_link_and_flow_limits_beat_every_builder() -> None:
    found = searched("1.25 GB/s", 4, "7 us")
    builders = {each.name: each.seconds for each in found.search.candidates if each.name in BUILDERS}
    assert set(builders) == set(BUILDERS)
    assert found.seconds < 0.9 * min(builders.values())
    assert {"heterogeneity", "flow limits"} <= {each.feature for each in found.reasons}
    assert found.strategy.shares is not None
    assert found.strategy.shares[-1] < 0.25 * min(found.strategy.shares[:-1])


def test_found_times_are_those_of_the_simulator() -> None:
    found = searched("1.25 GB/s", 4, "7 us")
    graph, machine = stacked(), star(WORKERS)
    plan = compile(graph, WORKERS, found.strategy)
    tofu.verify(graph, plan)
    assert plan.layouts == found.plan.layouts
    merged = merge(graph, tofu.lower(graph, plan), found.strategy)
    assert merged.simulate(machine).seconds == found.seconds
    assert found.seconds == min(each.seconds for each in found.search.candidates)


def test_factors_are_tried_where_samples_are_few() -> None:
    graph = stacked(batch=16)
    found = auto(graph, WORKERS, star(WORKERS))
    assert any(how.factors for how in found.strategy.variables.values())
    assert found.reasons[0].feature == "factors"
    poseidon = next(each for each in found.search.candidates if each.name == "poseidon")
    assert found.seconds <= poseidon.seconds


def test_sums_in_two_levels_are_tried_where_groups_are_far_apart() -> None:
    graph, pair = stacked(), load("2x-p100-node")
    found = auto(graph, 8, pair)
    assert found.strategy.replicas == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert {"hierarchy", "levels"} <= {each.feature for each in found.reasons}
    assert found.seconds < 0.6 * found.plain_seconds
    tofu.verify(graph, found.plan)


def test_groups_are_those_of_the_outermost_level() -> None:
    pair = load("2x-p100-node")
    assert groups_of(pair, 8) == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert groups_of(pair, 4) == groups_of(star(WORKERS), WORKERS) == ()


def test_equal_links_leave_nothing_but_the_order_of_updates() -> None:
    found = searched(None, 1, 0)
    assert found.strategy.shares is None
    assert {each.feature for each in found.reasons} <= {"overlap", "shared updates"}


def test_latency_is_the_reason_where_messages_are_dear() -> None:
    found = searched(None, 1, "2 ms")
    assert found.seconds < 0.5 * found.plain_seconds
    assert found.reasons[0].feature == "latency"
    assert found.reasons[0].seconds > 0.9 * (found.plain_seconds - found.seconds)


@pytest.mark.parametrize(("model", "optimizer"), [("mlp", "sgd"), ("lenet", "sgd"), ("lenet", "adamw")])
def test_the_plan_of_the_method_is_not_behind_those_of_builders(model: str, optimizer: str) -> None:
    graph = tofu.models.get(model, batch=64).training_graph(optimizer)
    plan = tofu.partition(graph, WORKERS, "auto", machine="pcie-8")
    tofu.verify(graph, plan)
    assert plan.method == "auto"
    assert plan.step_seconds == tofu.simulate(tofu.lower(graph, plan), "pcie-8").seconds
    for builder in BUILDERS:
        other = tofu.lower(graph, tofu.partition(graph, WORKERS, builder))
        assert plan.step_seconds <= tofu.simulate(other, "pcie-8").seconds


def test_the_fast_model_ranks_most_pairs_as_the_simulator_does() -> None:
    graph, machine = stacked(4, 256), load("pcie-8")
    trying = Candidates(graph, WORKERS, machine, tofu.lower, True)
    plain, timeline = trying.simulated(PLAIN, all_reduce(graph, WORKERS, chunk_size=1))
    model = SyncModel(graph, machine, timeline)
    assert model.seconds(plain.strategy) == pytest.approx(plain.seconds, rel=0.05)
    draw = Random(0)
    times = []
    for _ in range(30):
        strategy = sample(graph, WORKERS, draw)
        times.append((model.seconds(strategy), trying.simulated("drawn", strategy)[0].seconds))
    pairs = [(a, b) for n, a in enumerate(times) for b in times[:n] if abs(a[1] - b[1]) > 1e-9]
    right = sum((a[0] - b[0]) * (a[1] - b[1]) > 0 for a, b in pairs)
    assert right >= 0.8 * len(pairs)
