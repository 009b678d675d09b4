"""Processes that are compared get nothing from the environment that says how libraries compute."""

from __future__ import annotations

from benchmarks.environment import ONE_THREAD, compared

TOLD = {
    "OPENBLAS_CORETYPE": "Haswell",
    "OPENBLAS_L2_SIZE": "512",
    "ONEDNN_DEFAULT_FPMATH_MODE": "BF16",
    "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
    "OMP_NUM_THREADS": "7",
}


def test_what_libraries_are_told_is_removed() -> None:
    found = compared({"PATH": "/bin", "PYTHONPATH": "here", **TOLD}, "all")
    assert found == {"PATH": "/bin", "PYTHONPATH": "here", **ONE_THREAD}


def test_a_level_of_instructions_binds_every_library() -> None:
    found = compared(TOLD, "avx2")
    assert found["OPENBLAS_CORETYPE"] == "Haswell"
    assert found["ONEDNN_MAX_CPU_ISA"] == found["MKL_ENABLE_INSTRUCTIONS"] == "AVX2"
    assert "OPENBLAS_L2_SIZE" not in found
