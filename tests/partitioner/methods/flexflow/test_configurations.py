"""The finite set from which configurations are drawn."""

from __future__ import annotations

from collections import Counter
from math import prod
from random import Random

import pytest

from tofu.partitioner.methods.flexflow.configurations import Drawable, divisors, drawables
from tofu.partitioner.methods.flexflow.soap import Decision, Dimension, Kind, find_soap

from .small_graphs import graph_of


def test_divisors_are_those_of_trial_division() -> None:
    for number in range(1, 200):
        assert list(divisors(number)) == [d for d in range(1, number + 1) if number % d == 0]


@pytest.mark.parametrize("workers", [1, 4, 6, 7])
def test_every_configuration_fits_and_none_is_listed_twice(workers: int) -> None:
    soap = find_soap(graph_of("lenet"), workers)
    for decision, drawable in zip(soap.decisions, drawables(soap.decisions, workers), strict=True):
        every = [drawable[number] for number in range(len(drawable))]
        assert len(set(every)) == len(every)
        for found in every:
            assert workers % prod(found.degrees) == 0
            assert len(found.workers) == prod(found.degrees)
            assert set(found.workers) <= set(range(workers))
            for dimension, degree in zip(decision.dimensions, found.degrees, strict=True):
                assert degree <= dimension.extent
                if dimension.kind is Kind.REPLICA and degree > 1:
                    assert len(set(found.workers)) == len(found.workers)


def test_several_tasks_may_share_a_worker_and_all_may_be_apart() -> None:
    drawable = Drawable(Decision((0,), (Dimension(("n",), Kind.SAMPLE, 64, False),), frozenset()), 4)
    workers = {drawable[number].workers for number in range(len(drawable))}
    assert {(0, 1, 2, 3), (2, 2, 3, 3), (2, 3, 2, 3), (1, 1, 1, 1), (3,)} <= workers


def test_all_are_drawn_equally_often() -> None:
    drawable = Drawable(Decision((0,), (Dimension(("n",), Kind.SAMPLE, 64, True),), frozenset()), 4)
    draw, draws = Random(1), 500
    counts = Counter(drawable.draw(draw) for _ in range(draws * len(drawable)))
    chi_square = sum((counts[drawable[n]] - draws) ** 2 / draws for n in range(len(drawable)))
    freedom = len(drawable) - 1
    assert chi_square < freedom + 4 * (2 * freedom) ** 0.5
