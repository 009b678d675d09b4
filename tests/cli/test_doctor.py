"""`tofu doctor` on machines without and with cards."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

from tofu.runtime import processor_libraries
from tofu.runtime.cuda import inspection
from tofu.runtime.cuda.inspection import Card, Component, Inspection
from tofu.runtime.processor_libraries import ProcessorLibrary

Tofu = Callable[..., Result]
BARE = Inspection(
    2, (Component("CuPy", None, "is not installed", "pip install '.[gpu-cuda13]'"),), (), (), ()
)
CARDS = Inspection(
    16,
    (Component("CuPy", "14.2.0"),),
    (Card(0, "H200", "9.0", 10**9, 2 * 10**9), Card(1, "H200", "9.0", 10**9, 2 * 10**9)),
    ((True, False), (True, True)),
    ((4e12, 1e10), (3.8e11, 4e12)),
)


SLOW = ProcessorLibrary("openblas", "0.3.31", "Haswell", "the processor has AVX-512", "unset CORETYPE")


def seen(monkeypatch: pytest.MonkeyPatch, found: Inspection) -> list[bool]:
    asked: list[bool] = []
    monkeypatch.setattr(inspection, "inspect", lambda measure: asked.append(measure) or found)
    monkeypatch.setattr(processor_libraries, "processor_libraries", lambda: (SLOW,))
    return asked


def test_without_cards_it_says_how_to_install(tofu: Tofu, monkeypatch: pytest.MonkeyPatch) -> None:
    seen(monkeypatch, BARE)
    result = tofu("doctor")
    assert result.exit_code == 0
    assert "pip install '.[gpu-cuda13]'" in result.output
    assert "2 processors and needs none of these; the CUDA engine cannot run here yet" in result.output


def test_with_cards_it_shows_who_reads_whom(tofu: Tofu, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = seen(monkeypatch, CARDS)
    result = tofu("doctor", "--no-copies")
    assert asked == [False]
    assert "10.0 *" in result.output
    assert "380.0" in result.output
    assert "can run: tofu train wresnet --device gpu" in result.output


def test_as_data(tofu: Tofu, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = seen(monkeypatch, CARDS)
    found: dict[str, Any] = json.loads(tofu("doctor", "--json").output)
    assert asked == [True]
    assert found["ready"] is True
    assert found["cards"][1]["name"] == "H200"
    assert found["bandwidth"] == [[4e12, 1e10], [3.8e11, 4e12]]
    assert found["libraries"][0]["problem"] == "the processor has AVX-512"


def test_a_library_with_slow_code_is_named(tofu: Tofu, monkeypatch: pytest.MonkeyPatch) -> None:
    seen(monkeypatch, BARE)
    output = tofu("doctor").output
    assert "openblas" in output
    assert "openblas: the processor has AVX-512; unset CORETYPE" in output
