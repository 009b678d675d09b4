"""Equal rows have one number."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tofu.support.distinct_rows import distinct_rows


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=12), st.booleans())
def test_rows_are_numbered_in_order(rows, apart):
    table = np.array(rows, np.int64).reshape(-1, 2)
    first, number = distinct_rows(table[:, 0], table[:, 1]) if apart else distinct_rows(table)
    different = list(dict.fromkeys(rows))
    assert [rows[place] for place in first] == different
    assert first.tolist() == [rows.index(row) for row in different]
    assert [different[each] for each in number] == rows


def test_rows_without_entries_are_equal():
    first, number = distinct_rows(np.zeros((3, 0)))
    assert first.tolist() == [0]
    assert number.tolist() == [0, 0, 0]
