"""Every library operator is split along every variable, or says why not and what to do."""

from __future__ import annotations

import pytest

from tofu.operators.audit.subjects import complete_shapes
from tofu.operators.library import registry


@pytest.mark.parametrize("name", registry.names())
def test_no_strategy_is_lost_without_a_reason_and_a_remedy(name: str) -> None:
    operator = registry.get(name)
    assert operator.example is not None
    attributes = dict(operator.example.attributes)
    shapes = complete_shapes(operator, dict(operator.example.shapes), attributes)
    for stage in operator.bind(shapes, **attributes).stage_bounds:
        for refusal in stage.refusals:
            assert refusal.reason
            assert refusal.remedy or stage.extents[refusal.variable] == 1
