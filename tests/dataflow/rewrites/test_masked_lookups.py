"""Masked lookups: the values of lookups, for one index or several, and an error without one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tofu import tdl
from tofu.analyzer.bind.staged_bound import bind
from tofu.analyzer.specialize.specialize import specialize
from tofu.dataflow.rewrites.edit import GraphEdit
from tofu.dataflow.rewrites.encoders import Cast, Rewrite
from tofu.dataflow.rewrites.masked_lookups import mask_lookups, masked
from tofu.errors import GraphError
from tofu.tdl import format as format_description

from ...partitioner.methods.autodist.embedded import embedded

PICK = "def pick(table, row):\n    return lambda n, j: table[row[n], j]\n"
PICK_BOTH = """
def pick_both(table, row, column):
    return lambda n: table[row[n], column[n]] + table[0, column[n]]
"""
WEIGHTED = "def weighted(table, row):\n    return lambda j: Max(lambda n: table[row[n], j] * 2)\n"


@pytest.mark.parametrize("text", [PICK, PICK_BOTH, WEIGHTED])
def test_sums_of_masked_rows_are_lookups(text: str) -> None:
    rng = np.random.default_rng(5)
    named = {
        "table": rng.standard_normal((6, 4)),
        "row": np.array([5.0, 0, 3, 3, 1]),
        "column": np.array([0.0, 3, 2, 1, 1]),
    }
    description = tdl.parse(text)
    tensors = {name: named[name] for name in description.tensor_names}
    shapes = {name: value.shape for name, value in tensors.items()}
    plain, summed = (
        bind(specialize(each, {}, {name: len(shape) for name, shape in shapes.items()}), shapes)
        for each in (description, masked(description, {"table"}))
    )
    np.testing.assert_array_equal(summed.interpret(tensors)[0], plain.interpret(tensors)[0])


def test_the_description_sums_over_the_rows() -> None:
    assert "Sum(lambda at=table.shape[0]: where(row[n] == at, table[at, j], 0))" in format_description(
        masked(tdl.parse(PICK), {"table"})
    )


def test_names_of_the_description_are_not_taken() -> None:
    text = PICK.replace("n,", "at,").replace("[n]", "[at]")
    assert "Sum(lambda at_=" in format_description(masked(tdl.parse(text), {"table"}))


def test_other_tensors_are_left_alone() -> None:
    description = tdl.parse(PICK)
    assert masked(description, {"row"}) == description


def test_elements_beyond_borders_are_refused() -> None:
    text = "def near(table, row):\n    return lambda n, j: pad(table[row[n] + 1, j], 0)\n"
    with pytest.raises(GraphError, match="'near' reads 'table' beyond its borders"):
        masked(tdl.parse(text), {"table"})


def test_a_parameter_without_lookups_is_refused() -> None:
    edit = GraphEdit(embedded())
    number = {tensor.name: tensor.index for tensor in edit.tensors}
    with pytest.raises(GraphError, match="'fc_weight' is not read at rows that data choose"):
        mask_lookups(edit, number["fc_weight"])


@pytest.mark.parametrize("other", [Rewrite(delay=1), Rewrite(Cast("float16"))])
def test_gradients_are_not_rewritten_as_well(other: Rewrite) -> None:
    with pytest.raises(GraphError, match="lookups are masked, or a gradient is rewritten, but not both"):
        replace(other, masked=True)
