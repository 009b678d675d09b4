"""The effort of an audit of larger operators, counted in elements that the interpreter reads one by one."""

from __future__ import annotations

from typing import Any

import pytest

import tofu
from tofu.tdl import interpreter

MOST_READS = 60_000
"""A second or so; whole tensors were read some million times."""

GROUP_NORM = """
def group_norm(x, gamma, beta, *, groups):
    mean = lambda b, g=groups: Sum(lambda c=x.shape[1] // groups, y, z:
        x[b, g * (x.shape[1] // groups) + c, y, z]) / (x.shape[1] // groups * x.shape[2] * x.shape[3])
    return lambda b, c, y, z: gamma[c] * (x[b, c, y, z] - mean[b, c // (x.shape[1] // groups)]) + beta[c]
"""
GROUPED_CONVOLUTION = """
def convolve(data, weight, *, filters, channels):
    return lambda n, f, z, y, x: Sum(lambda c, dz, dy, dx:
        data[n, (f // filters) * channels + c, z + dz, y + dy, x + dx] * weight[f, c, dz, dy, dx])
"""
CASES: dict[str, tuple[str, dict[str, tuple[int, ...]], dict[str, int]]] = {
    "group norm": (
        GROUP_NORM,
        {"x": (2, 8, 6, 6), "gamma": (8,), "beta": (8,)},
        {"groups": 2},
    ),
    "grouped convolution": (
        GROUPED_CONVOLUTION,
        {"data": (2, 8, 6, 6, 6), "weight": (16, 2, 3, 3, 3)},
        {"filters": 4, "channels": 2},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_interpreter_reads_few_elements(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = 0
    element = interpreter._Run.element

    def counted(self: Any, *arguments: Any) -> Any:
        nonlocal reads
        reads += 1
        return element(self, *arguments)

    monkeypatch.setattr(interpreter._Run, "element", counted)
    text, shapes, attributes = CASES[name]
    report = tofu.audit(tofu.parse(text), shapes=shapes, attributes=attributes)
    assert not report.refuted
    assert reads < MOST_READS
