"""Random descriptions of the whole language: no strategy is refuted."""

from __future__ import annotations

from random import Random

import pytest

import tofu
from tests.operators.random_descriptions import random_description

SEEDS = (*range(200, 216), *range(217, 225))
LONG = 216
"""The seed of a description whose audit takes as long as ten others."""


@pytest.mark.parametrize("seed", [*SEEDS, pytest.param(LONG, marks=pytest.mark.slow)])
def test_no_claim_about_a_random_expression_is_refuted(seed: int) -> None:
    drawn = random_description(Random(seed))
    audit = tofu.audit(drawn.operator, shapes=drawn.shapes, attributes=drawn.attributes, workers=(2,))
    assert not audit.refuted


def test_every_kind_is_drawn() -> None:
    features = [random_description(Random(seed)).features for seed in SEEDS]
    assert frozenset[str]().union(*features) == {"scan", "product", "library", "clamp", "choice", "stage"}
