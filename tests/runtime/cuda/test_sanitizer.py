"""Own kernels on a card under NVIDIA's sanitizer: no access outside of memory, no race in shared memory."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

OPERATORS = Path(__file__).parent / "test_operators.py"
ROOT = Path(__file__).parents[3]
WATCHED = (
    f"{OPERATORS}::test_operators_of_own_kernels",
    f"{OPERATORS}::test_boxes_are_assembled[cards]",
    f"{OPERATORS}::test_terms_are_summed[cards]",
)
FOUND = 86
"""The exit status that says that the sanitizer found something."""

MOST_SECONDS = 200
BEHIND = """
import cupy
values = cupy.zeros(4, cupy.float32)
write = cupy.RawKernel('extern "C" __global__ void write(float* p) { p[1 << 28] = 1; }', 'write')
write((1,), (1,), (values,))
cupy.cuda.runtime.deviceSynchronize()
"""


def under(tool: str, *command: str) -> subprocess.CompletedProcess[str]:
    """A program under one of the sanitizer's tools; the status of a call of CUDA is not a finding."""
    program = shutil.which("compute-sanitizer")
    if program is None:
        pytest.skip("compute-sanitizer is not on the path; it comes with the CUDA toolkit")
    options = ["--tool", tool, "--error-exitcode", str(FOUND), "--report-api-errors", "no"]
    return subprocess.run(
        [program, *options, *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=MOST_SECONDS,
    )


@pytest.mark.gpu
@pytest.mark.parametrize("tool", ["memcheck", "racecheck"])
def test_own_kernels_are_clean(tool: str) -> None:
    result = under(tool, sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", "gpu", *WATCHED)
    assert result.returncode == 0, result.stdout[-6000:] + result.stderr[-2000:]
    assert "." * len(WATCHED) in result.stdout, "not one of them was skipped"


@pytest.mark.gpu
def test_a_write_behind_memory_is_found() -> None:
    assert under("memcheck", sys.executable, "-c", BEHIND).returncode == FOUND
