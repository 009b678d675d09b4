"""No order of the later steps moves less than the least counts."""

from __future__ import annotations

import numpy as np
import pytest

from tofu.partitioner.costs.box_counts import communication
from tofu.partitioner.costs.least_counts import least_communication
from tofu.partitioner.layouts.choices import operator_choices, splittable, tensor_choices
from tofu.partitioner.problem.any_order import ascending, orders

TEXTS = {
    "product": ("lambda i=6, j=5: Sum(lambda k: a[i, k] * a[k, j])", (6, 6)),
    "window": ("lambda i=6, j: Sum(lambda di=3: a[i + di, j])", (8, 5)),
    "stride": ("lambda i=4, j=4: a[2 * i, j]", (8, 4)),
    "reversed": ("lambda i=8, j=4: a[7 - i, j]", (8, 4)),
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("factors", [(2, 2), (3, 2), (2, 2, 2), (3, 2, 2)])
@pytest.mark.parametrize("ordered", [0, 1, 2])
def test_no_order_moves_less(toy, name, factors, ordered):
    body, shape = TEXTS[name]
    builder = toy()
    builder.apply(f"def f(a):\n    return {body}", builder.tensor(*shape))
    bound = builder.operations[0].bound
    groups = int(np.prod(factors[:ordered]))
    split = ascending(splittable(bound), factors, ordered)
    out = builder.tensors[builder.operations[0].outputs[0]].shape
    for use, held in ((("a",), shape), (0, out)):
        laid = ascending(dict(enumerate(held)), factors, ordered, True)
        least = least_communication(
            operator_choices(bound, split, factors), tensor_choices(held, laid, factors), use, groups
        )
        assert least.dtype == np.int64
        assert (least >= 0).all()
        for (s, t), count in np.ndenumerate(least):
            every = communication(
                operator_choices(bound, list(orders(split[s], factors, ordered)), factors),
                tensor_choices(held, list(orders(laid[t], factors, ordered)), factors),
                use,
            )
            assert count <= every.min()


def test_parts_that_can_be_nested_count_exactly(toy, texts):
    builder = toy()
    a, b = builder.tensor(8, 8), builder.tensor(8, 8)
    builder.apply(texts["MATMUL"], a, b)
    bound = builder.operations[0].bound
    factors = (2, 2, 2)
    split = ascending(splittable(bound), factors, 0)
    laid = ascending({0: 8, 1: 8}, factors, 0, True)
    for use in (("a",), ("b",), 0):
        least = least_communication(
            operator_choices(bound, split, factors), tensor_choices((8, 8), laid, factors), use, 1
        )
        for (s, t), count in np.ndenumerate(least):
            every = communication(
                operator_choices(bound, list(orders(split[s], factors, 0)), factors),
                tensor_choices((8, 8), list(orders(laid[t], factors, 0)), factors),
                use,
            )
            assert count == every.min()
