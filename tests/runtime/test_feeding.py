"""The rows of outputs and labels that belong to a batch of fewer samples than its size."""

from __future__ import annotations

import numpy as np
import pytest

from tofu.errors import DataError
from tofu.runtime.feeding import valid_rows


@pytest.mark.parametrize("rows_of_a_sample", [1, 3])
@pytest.mark.parametrize("valid", [0, 1, 4])
def test_only_rows_of_valid_samples_count(rows_of_a_sample: int, valid: int) -> None:
    sample = np.repeat(np.arange(4), rows_of_a_sample)
    assert valid_rows(sample, 4, valid).tolist() == sample[sample < valid].tolist()


@pytest.mark.parametrize("array", [np.zeros(6), np.zeros(())])
def test_rows_that_samples_do_not_divide_are_refused(array: np.ndarray) -> None:
    with pytest.raises(DataError, match="does not divide into equal numbers of rows for 4 samples"):
        valid_rows(array, 4, 2)
