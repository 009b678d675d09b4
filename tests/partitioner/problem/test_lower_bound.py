"""The certain count of the first step never exceeds the bytes that any refinement fetches."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tofu.partitioner.costs.box_counts import communication
from tofu.partitioner.problem.candidates import Tables, every_dimension, every_dimension_or_whole
from tofu.partitioner.problem.lower_bound import Refinable, certain_reads

READS = {
    "plain": ("lambda i, j: a[i, j]", [(6, 4)], True),
    "broadcast": ("lambda i, j, k: a[j, k]", [(6, 4)], True),
    "window": ("lambda i, j: Sum(lambda di=3: a[i + di, j])", [(8, 4)], True),
    "overlapping windows": ("lambda i=4, j=4: Sum(lambda di=3: a[2 * i + di, j])", [(9, 4)], False),
    "stride": ("lambda i=4, j=4: a[2 * i, j]", [(8, 4)], False),
    "diagonal": ("lambda i=4, j=4: a[i, i]", [(4, 4)], False),
    "two places": ("lambda i=6, j=4: a[i, j] + a[i + 1, j]", [(8, 4)], True),
    "far places": ("lambda i=2, j=4: a[i, j] + a[i + 6, j]", [(8, 4)], True),
    "reversed": ("lambda i=8, j=4: a[7 - i, j]", [(8, 4)], True),
    "padded": ("lambda i=8, j=4: a[i, j] + pad(a[i - 1, j], 0)", [(8, 4)], True),
}
FREE = {"broadcast": 5}


def bound_of(toy, name):
    body, (shape,), refinable = READS[name]
    if name in FREE:
        body = body.replace("lambda i,", f"lambda i={FREE[name]},")
    builder = toy()
    builder.apply(f"def f(a):\n    return {body}", builder.tensor(*shape))
    return builder.operations[0].bound, shape, refinable


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("factors", [(2, 2), (3, 2), (2, 2, 2)])
@pytest.mark.parametrize("keep", [every_dimension, every_dimension_or_whole])
def test_no_refinement_fetches_less_than_is_certain(toy, name, factors, keep):
    bound, shape, _ = bound_of(toy, name)
    tables = Tables(factors)
    operators, tensors = tables.operator(bound, ()), tables.tensor(shape, (), keep)
    certain = certain_reads(operators, tensors, ("a",), Refinable())
    assert (certain <= communication(operators, tensors, ("a",))).all()
    for s, t in np.ndindex(certain.shape):
        refined_operators, refined_tensors = [operators.sequences[s]], [tensors.sequences[t]]
        for _ in factors[1:]:
            refined_operators = [
                q for earlier in refined_operators for q in tables.operator(bound, earlier).sequences
            ]
            refined_tensors = [
                q for earlier in refined_tensors for q in tables.tensor(shape, earlier, keep).sequences
            ]
        fetched = [
            communication(tables.operator(bound, o[:-1]), tables.tensor(shape, d[:-1], keep), ("a",))[
                tables.operator(bound, o[:-1]).sequences.index(o),
                tables.tensor(shape, d[:-1], keep).sequences.index(d),
            ]
            for o, d in itertools.product(refined_operators, refined_tensors)
        ]
        assert certain[s, t] <= min(fetched)


@pytest.mark.parametrize("name", READS)
def test_reads_without_holes_count_in_full(toy, name):
    bound, shape, refinable = bound_of(toy, name)
    tables = Tables((2,))
    operators, tensors = tables.operator(bound, ()), tables.tensor(shape, ())
    refinables = Refinable()
    assert refinables.all(operators, ("a",)) == refinable
    if refinable:
        certain = certain_reads(operators, tensors, ("a",), refinables)
        np.testing.assert_array_equal(certain, communication(operators, tensors, ("a",)))


def test_a_tensor_read_twice_counts_once(toy, texts):
    builder = toy()
    square = builder.tensor(4, 4)
    builder.apply(texts["MATMUL"], square, square)
    bound = builder.operations[0].bound
    tables = Tables((2,))
    operators, tensors = tables.operator(bound, ()), tables.tensor((4, 4), ())
    refinable = Refinable()
    both = certain_reads(operators, tensors, ("a", "b"), refinable)
    each = [certain_reads(operators, tensors, (name,), refinable) for name in ("a", "b")]
    assert not refinable.all(operators, ("a", "b"))
    assert (both >= np.maximum(*each)).all()
    assert (both <= each[0] + each[1]).all()
