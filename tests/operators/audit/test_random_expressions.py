"""Random descriptions with automatic stages, scans and calls: no strategy is refuted."""

from __future__ import annotations

import re
from random import Random

import pytest

import tofu
from tests.analyzer.random_expressions import random_expression
from tofu.errors import ShapeError

SCAN = "def scan(x):\n    return lambda t=x.shape[0], *j: Sum(lambda s: where(s <= t, x[s, *j], 0))\n"


@pytest.mark.parametrize("seed", range(200, 224))
def test_no_claim_about_a_random_expression_is_refuted(seed: int) -> None:
    random = Random(seed)
    text, shapes = random_expression(random)

    def call(match: re.Match[str]) -> str:
        scanned = match[1] in shapes and random.random() < 0.4
        return f"scan({match[1]})[{match[2]}]" if scanned else match[0]

    operator = tofu.parse(SCAN + re.sub(r"\b(\w)\[([^\[\]]*)\]", call, text))
    try:
        operator.bind(shapes)
    except ShapeError:
        pytest.skip("the tensors disagree on purpose")
    assert not tofu.audit(operator, shapes=shapes, workers=(2,)).refuted
