"""Step by step, the candidates are all possible sequences, with the regions of whole sequences."""

from __future__ import annotations

import numpy as np
import pytest

from tofu.partitioner.layouts.choices import operator_choices, splittable, tensor_choices
from tofu.partitioner.layouts.step_split import prime_factors
from tofu.partitioner.problem.candidates import Tables
from tofu.partitioner.problem.sequences import all_sequences


def reached(further, steps):
    """All sequences that steps lead to from the empty one; `further(earlier)` makes one step's choices."""
    found = [()]
    for _ in range(steps):
        found = [sequence for earlier in found for sequence in further(earlier).sequences]
    return found


@pytest.mark.parametrize("workers", [4, 6])
def test_steps_lead_to_all_sequences(graph, workers):
    factors = prime_factors(workers)
    tables = Tables(factors)
    for bound in dict.fromkeys(operation.bound for operation in graph.operations):
        found = reached(lambda earlier, bound=bound: tables.operator(bound, earlier), len(factors))
        assert sorted(found, key=str) == sorted(all_sequences(splittable(bound), factors), key=str)
    for shape in dict.fromkeys(tensor.shape for tensor in graph.tensors):
        found = reached(lambda earlier, shape=shape: tables.tensor(shape, earlier), len(factors))
        assert sorted(found, key=str) == sorted(all_sequences(dict(enumerate(shape)), factors), key=str)


def test_regions_are_those_of_the_sequences(graph):
    factors = (3, 2)
    tables = Tables(factors)
    for operation in graph.operations:
        first = tables.operator(operation.bound, ())
        found = tables.operator(operation.bound, first.sequences[0])
        expected = operator_choices(operation.bound, found.sequences, factors)
        np.testing.assert_array_equal(found.boxes, expected.boxes)
        np.testing.assert_array_equal(found.term, expected.term)
        assert found.inputs.keys() == expected.inputs.keys()
    for tensor in graph.tensors:
        first = tables.tensor(tensor.shape, ())
        found = tables.tensor(tensor.shape, first.sequences[-1])
        expected = tensor_choices(tensor.shape, found.sequences, factors)
        np.testing.assert_array_equal(found.regions, expected.regions)


def test_repeated_questions_have_one_answer(graph):
    tables = Tables((2,))
    bound = graph.operations[0].bound
    assert tables.operator(bound, ()) is tables.operator(bound, ())
    assert tables.tensor((4, 4), ()) is tables.tensor((4, 4), ())


def test_nothing_kept_stays_whole(graph):
    tables = Tables((2,))
    assert tables.operator(graph.operations[0].bound, (), lambda bound, fitting: ()).sequences == ((None,),)
    assert tables.tensor((4, 4), (), lambda fitting: ()).sequences == ((None,),)
    assert tables.tensor((1, 1), ()).sequences == ((None,),)
