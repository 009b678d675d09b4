"""The library oneDNN, or the reason why tests that need it are skipped."""

from __future__ import annotations

import pytest

from tofu.operators.kernels.onednn.library import Absent, Library, find


@pytest.fixture
def onednn() -> Library:
    """Return the library; skip the test if it cannot be used here."""
    found = find()
    if isinstance(found, Absent):
        pytest.skip(f"oneDNN: {found.reason}")
    return found
