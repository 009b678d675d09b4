"""Processes that are compared get nothing from the environment that says how libraries compute."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from benchmarks.environment import ONE_THREAD, compared, limited_compiler

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


def test_a_level_of_instructions_binds_the_compiler(tmp_path: Path) -> None:
    path = os.environ["PATH"]
    if shutil.which("cc") is None or platform.machine() != "x86_64":
        pytest.skip("no C compiler for x86-64")
    assert limited_compiler("all", tmp_path, path) == path
    searched = limited_compiler("avx2", tmp_path, path)
    command = shutil.which("cc", path=searched)
    assert command == str(tmp_path / "cc")
    asked = [command, "-march=native", "-dM", "-E", "-x", "c", "/dev/null"]
    macros = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert "__AVX2__" in macros
    assert "__AVX512F__" not in macros
