"""Segments that are short enough for small problems."""

from __future__ import annotations

import pytest

from tofu.partitioner.solvers import segments


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(segments, "SHORTEST", 4)
