"""ONNX's node tests, for all tests that read them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest


@pytest.fixture(scope="package")
def node_cases() -> list[Any]:
    """Return all cases. Making them takes seconds."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return list(collect_testcases(None))
