"""The chains that the benchmark measures, shorter: no pass recurses over a graph."""

from __future__ import annotations

import sys

import pytest

from benchmarks.long_chains import CASES, measured


@pytest.mark.parametrize(("name", "length", "operations"), [("network", 150, 1353), ("chain", 3000, 3000)])
def test_chains_longer_than_the_stack(name: str, length: int, operations: int) -> None:
    make, _ = next(case for title, case in CASES.items() if title.startswith(name))
    measured(make, 3)  # modules are imported, and the language is read, on a stack of the usual depth
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before // 2)
    try:
        found = measured(make, length)
    finally:
        sys.setrecursionlimit(before)
    assert found["operations"] == operations
    assert found["seconds"].keys() == {"build", "search", "lower", "prepare", "run"}
