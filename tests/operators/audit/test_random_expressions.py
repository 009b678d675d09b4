"""Random descriptions with automatic stages, scans and calls: no strategy is refuted."""

from __future__ import annotations

import re
from contextlib import suppress
from random import Random

import pytest

import tofu
from tests.analyzer.random_expressions import random_expression
from tofu.errors import ShapeError
from tofu.operators.operator import Operator

SCAN = "def scan(x):\n    return lambda t=x.shape[0], *j: Sum(lambda s: where(s <= t, x[s, *j], 0))\n"


@pytest.mark.parametrize("seed", range(200, 224))
def test_no_claim_about_a_random_expression_is_refuted(seed: int) -> None:
    operator, shapes = _agreeing(Random(seed))
    assert not tofu.audit(operator, shapes=shapes, workers=(2,)).refuted


def _agreeing(random: Random) -> tuple[Operator, dict[str, tuple[int, ...]]]:
    """Draw an operator until its tensors agree, which some are drawn not to do."""
    while True:
        operator, shapes = _drawn(random)
        with suppress(ShapeError):
            operator.bind(shapes)
            return operator, shapes


def _drawn(random: Random) -> tuple[Operator, dict[str, tuple[int, ...]]]:
    """Return an operator some of whose elements are those of scans, and shapes of its tensors."""
    text, shapes = random_expression(random)

    def call(match: re.Match[str]) -> str:
        scanned = match[1] in shapes and random.random() < 0.4
        return f"scan({match[1]})[{match[2]}]" if scanned else match[0]

    return tofu.parse(SCAN + re.sub(r"\b(\w)\[([^\[\]]*)\]", call, text)), shapes
