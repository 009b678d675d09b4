"""BLAS libraries that choose code for an older processor than this one are found, and so is numba."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tofu.runtime import processor_libraries
from tofu.runtime.processor_libraries import (
    ProcessorLibrary,
    blas_libraries,
    core_level,
    loop_library,
    numpy_blas,
    processor_level,
)

AVX2 = "fpu sse avx avx2 fma"
AVX512 = f"{AVX2} avx512f avx512bw avx512dq avx512vl"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Return a function that pretends a core and the flags of the processor."""

    def pretend(core: str, flags: str) -> None:
        path = tmp_path / "cpuinfo"
        path.write_text(f"processor\t: 0\nflags\t\t: {flags}\nbugs\t\t: none\n", encoding="utf-8")
        level = processor_level(path)
        loaded = {"internal_api": "openblas", "version": "0.3.31", "architecture": core, "filepath": "x"}
        monkeypatch.setattr(processor_libraries, "numpy_blas", lambda: [loaded])
        monkeypatch.setattr(processor_libraries, "processor_level", lambda: level)

    return pretend


@pytest.mark.parametrize(
    ("core", "flags", "uses"),
    [("Haswell", AVX512, "AVX2"), ("Zen", AVX512, "AVX2"), ("Nehalem", AVX2, "SSE"), ("Core2", "avx", "SSE")],
)
def test_a_slow_core_is_a_problem(machine: Any, core: str, flags: str, uses: str) -> None:
    machine(core, flags)
    (found,) = blas_libraries({})
    assert f"OpenBLAS chose the core {core}, whose code uses {uses}" in found.problem
    assert "set the environment variable OPENBLAS_CORETYPE=" in found.remedy


@pytest.mark.parametrize(("core", "flags"), [("SkylakeX", AVX512), ("Haswell", AVX2), ("Sandybridge", "avx")])
def test_a_fast_core_is_not(machine: Any, core: str, flags: str) -> None:
    machine(core, flags)
    (found,) = blas_libraries({})
    assert (found.instructions, found.problem, found.remedy) == (core, "", "")


def test_the_variable_that_says_so_is_named(machine: Any) -> None:
    machine("Haswell", AVX512)
    (found,) = blas_libraries({"OPENBLAS_CORETYPE": "Haswell"})
    assert found.remedy.startswith("unset the environment variable OPENBLAS_CORETYPE, which is 'Haswell'")


def test_a_processor_that_says_nothing_is_not_judged(tmp_path: Path) -> None:
    assert processor_level(tmp_path / "missing") is None
    (tmp_path / "arm").write_text("Features\t: fp asimd\n", encoding="utf-8")
    assert processor_level(tmp_path / "arm") is None


def test_numpy_has_a_library_here() -> None:
    assert numpy_blas()


def test_names_of_cores_are_compared_without_case() -> None:
    assert core_level("Sapphirerapids") == core_level("SapphireRapids") == "AVX-512"


def test_numba_is_found_or_its_absence_has_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor_libraries, "loop_compiler", lambda: None)
    found = loop_library()
    assert found.version is None
    assert found.remedy == "pip install '.[search]' in Tofu's folder"
    monkeypatch.setattr(processor_libraries, "loop_compiler", object)
    monkeypatch.setattr(processor_libraries.metadata, "version", lambda name: f"{name} 1")
    assert loop_library() == ProcessorLibrary("numba", "numba 1", "loops of searches and of the simulator")
