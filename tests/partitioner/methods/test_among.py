"""Combined choices: the best combination is found, and single classes change as prices rise."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

from tofu.dataflow import sym
from tofu.dataflow.naming import NameScope
from tofu.dataflow.training import gradient_graph
from tofu.partitioner import partition
from tofu.partitioner.methods.among import Among
from tofu.partitioner.plans.space import Space
from tofu.partitioner.problem.classes import build_problem
from tofu.partitioner.problem.live_bytes import LiveBytes
from tofu.partitioner.problem.plan_choices import choices_of
from tofu.partitioner.problem.problem import Chosen

WORKERS = 4


def combined(layers):
    """Return what a plan that replicates and one that does not choose for some layers, and their problem."""
    with NameScope():
        net = sym.Variable("data")
        for number in range(layers):
            net = sym.FullyConnected(net, num_hidden=24, no_bias=True, name=f"fc{number}")
        graph = gradient_graph(net, {"data": (64, 24)}, [f"fc{number}_weight" for number in range(layers)])
    live = LiveBytes.of(build_problem(graph, space=Space(replicate=True)))
    plans = [partition(graph, WORKERS, keep=False, replicate=replicate) for replicate in (True, False)]
    assert plans[0].factors == plans[1].factors
    return live, plans


def measured(live, strategies, dimensions, factors):
    """Return the bytes that choices move, and the most that is live."""
    moved = Chosen(live.problem, factors, strategies, dimensions).moved_bytes[-1]
    return moved, live.totals(strategies, dimensions, factors)


def test_the_best_combination_is_found():
    live, plans = combined(layers=3)
    own = [choices_of(live.problem, plan) for plan in plans]
    classes = [dict.fromkeys(each) for part in (0, 1) for each in zip(*[c[part] for c in own], strict=True)]
    count = len(live.problem.operators)
    price = {count - 1: Fraction(1)}
    priced = replace(
        live.problem, prices=live.prices(Fraction(1)), buffer_prices=live.buffer_prices(price, WORKERS)
    )
    costs = []
    for chosen in product(*classes):
        moved, totals = measured(live, chosen[:count], chosen[count:], plans[0].factors)
        costs.append(moved + totals[count - 1] - live.unpriced(price))
    found = Among(live, WORKERS, plans).solved(priced)
    assert len(costs) > len(plans)
    assert len(set(costs)) > 2
    assert found.cost.value == min(costs)


def test_classes_change_one_after_the_other():
    live, plans = combined(layers=4)
    moved, peaks = [], []
    for plan in plans:
        own, totals = measured(live, *map(tuple, choices_of(live.problem, plan)), plan.factors)
        moved.append(own)
        peaks.append(max(totals))
    assert moved[0] < moved[1]
    assert peaks[0] > peaks[1]
    room = (peaks[0] + peaks[1]) // 2
    tried = {}

    def fits(solution):
        own, totals = measured(live, solution.strategies, solution.dimensions, solution.factors)
        assert max(totals) <= room
        tried[own] = max(totals)
        return True

    Among(live, WORKERS, plans).within(Fraction(1, 64), room, fits)
    assert min(tried) < moved[1]
    assert max(tried.values()) > peaks[1]


def test_the_plan_at_the_lowest_price_within_a_limit_is_found():
    """Arenas that turn out larger or smaller than they were taken to be correct those of later plans."""
    live, plans = combined(layers=4)
    known = [measured(live, *map(tuple, choices_of(live.problem, plan)), plan.factors) for plan in plans]
    (least_moved, free), (_, split) = known
    prices = [Fraction(price, 64) for price in range(1, 400)]
    asked = []

    def arenas(solution, excess):
        moved, totals = measured(live, solution.strategies, solution.dimensions, solution.factors)
        asked.append((moved, int(max(totals) * excess)))
        return asked[-1][1]

    def found(room, excess=Fraction(1), really=Fraction(1)):
        asked.clear()
        among = Among(live, WORKERS, plans)
        among.at_lowest_price(prices, room, excess, lambda solution: arenas(solution, really))
        return list(asked)

    room = (max(free) + max(split)) // 2
    ((moved, taken),) = found(room)
    assert taken <= room
    assert least_moved < moved
    assert found(max(free)) == [(least_moved, max(free))]
    assert found(max(split) - 1) == []
    too_large, *_, last = found(room, really=Fraction(room, taken) * Fraction(101, 100))
    assert too_large[1] > room >= last[1]
    assert last[0] > too_large[0] == moved
    too_small, *_, last = found(room, excess=Fraction(11, 10))
    assert last == (moved, taken)
    assert too_small[0] > moved
    assert found(room, excess=Fraction(2)) == []
