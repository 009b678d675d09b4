"""The language model that reads letters, against NumPy and numeric differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tofu import models


def test_gradients(assert_gradients_are_numeric: Callable[..., None]) -> None:
    model = models.get(
        "char-crn", batch=2, layers=2, hidden=3, steps=2, letters=4, alphabet=5, filters=(2, 3), vocabulary=6
    )
    generator = np.random.default_rng(2)
    data = generator.integers(0, 5, model.shapes["data"]).astype(float)
    label = generator.integers(0, 6, model.shapes["softmax_label"]).astype(float)
    rows = label.reshape(-1).astype(int)
    assert_gradients_are_numeric(
        model,
        {"data": data, "softmax_label": label},
        lambda scores: -np.log(scores[np.arange(len(rows)), rows]).sum(),
    )
