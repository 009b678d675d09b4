"""Boxes and terms of candidate splits, against one split at a time."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tofu.analyzer.indices.region import split, whole
from tofu.partitioner.layouts.choices import operator_choices, split_further, splittable, tensor_choices

from ..methods.elements import terms_of_workers

SHAPES = st.lists(st.integers(1, 7), min_size=1, max_size=3).map(tuple)


@given(SHAPES, st.integers(1, 3), st.integers(1, 4), st.data())
def test_splitting_further_continues_a_split(shape, first, factor, data):
    axis = data.draw(st.none() | st.integers(0, len(shape) - 1))
    axes = [None, *range(len(shape))]
    found = split_further(split(whole(shape), (axis,), (first,)), axes, factor)
    for choice, later in enumerate(axes):
        np.testing.assert_array_equal(found[choice], split(whole(shape), (axis, later), (first, factor)))


@given(SHAPES)
def test_layouts_are_those_of_every_sequence(shape):
    factors = (2, 3)
    sequences = list(itertools.product([None, *range(len(shape))], repeat=2))
    choices = tensor_choices(shape, sequences, factors)
    assert choices.sequences == tuple(sequences)
    for regions, sequence in zip(choices.regions, sequences, strict=True):
        np.testing.assert_array_equal(regions, split(whole(shape), sequence, factors))


def test_terms_are_the_digits_of_reducing_steps(graph):
    factors = (3, 2)
    for bound in dict.fromkeys(operation.bound for operation in graph.operations):
        sequences = list(itertools.product([None, *splittable(bound)], repeat=2))
        choices = operator_choices(bound, sequences, factors)
        for number, sequence in enumerate(sequences):
            digits = terms_of_workers(bound, sequence, factors)
            assert choices.terms[number] == len(set(digits))
            order = sorted(set(digits))
            assert choices.term[number].tolist() == [order.index(digit) for digit in digits]


def test_what_has_a_strategy_can_be_split(toy, texts):
    builder = toy()
    builder.apply(texts["MATMUL"], builder.tensor(2, 3), builder.tensor(3, 4))
    builder.apply(texts["ROW_MAX"], builder.tensor(5, 6))
    product, largest = builder.graph().operations
    assert splittable(product.bound) == {"i": 2, "j": 4, "k": 3}
    assert splittable(largest.bound) == {"i": 5, "j": 6}
