"""Operators of outside users: each is described, and kernels compute what texts say."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.outside.catalogue import OUTSIDERS
from benchmarks.outside.distance import FINE, distance


@pytest.mark.parametrize("name", OUTSIDERS)
def test_is_described(name: str) -> None:
    outsider = OUTSIDERS[name]
    for sizes in (outsider.small, outsider.large):
        shapes, attributes = outsider.shapes(sizes), outsider.attributes(sizes)
        assert sizes.keys() == shapes.keys() | attributes.keys()
        outsider.operator.bind(shapes, **attributes)
    assert outsider.kinds.keys() <= shapes.keys()


@pytest.mark.parametrize("name", OUTSIDERS)
def test_no_strategy_is_lost_without_a_reason_and_a_remedy(name: str) -> None:
    outsider = OUTSIDERS[name]
    bound = outsider.operator.bind(outsider.shapes(outsider.small), **outsider.attributes(outsider.small))
    for stage in bound.stage_bounds:
        for refusal in stage.refusals:
            assert refusal.reason
            assert refusal.remedy or stage.extents[refusal.variable] == 1


@pytest.mark.parametrize("name", OUTSIDERS)
def test_kernel_computes_what_the_description_says(name: str) -> None:
    outsider = OUTSIDERS[name]
    tensors = outsider.tensors(outsider.small, 3, "float64")
    bound = outsider.operator.bind(outsider.shapes(outsider.small), **outsider.attributes(outsider.small))
    assert distance(bound.compute(tensors), bound.interpret(tensors)) <= FINE


def test_distance_sees_what_differs() -> None:
    one = np.array([1.0, 2.0])
    assert distance([one], [one]) == 0
    assert distance([one], [one + np.array([0, 0.2])]) == pytest.approx(0.2 / 2.2)
    assert distance([one], [one[:1]]) == float("inf")
    assert distance([one], [[1.0, np.nan]]) == float("inf")
