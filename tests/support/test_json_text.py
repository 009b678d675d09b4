"""Settings are written as JSON, or refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tofu.errors import DataError
from tofu.support.json_text import json_text


def test_numpy_numbers_are_those_of_python() -> None:
    value = {
        "size": np.int64(16),
        "shuffle": np.bool_(True),
        "shape": (np.int32(2), 3),
        "part": np.float32(0.5),
    }
    assert json.loads(json_text(value, "data")) == {"size": 16, "shuffle": True, "shape": [2, 3], "part": 0.5}


@pytest.mark.parametrize(
    "value",
    [np.arange(3), Path("x"), np.longdouble(1), {1j: 0}, [{np.int64(3): 1}]],
    ids=lambda v: type(v).__name__,
)
def test_other_values_are_refused_by_name(value: object) -> None:
    with pytest.raises(DataError, match=r"setting data\.own is .*, which JSON cannot hold \(.*\); give text"):
        json_text(value, "data.own")
