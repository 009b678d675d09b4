"""Kernel bodies under sanitizers: no access outside of a tensor, no undefined arithmetic, no data race."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RUNS = {
    "address,undefined": (("asan", "ubsan"), {"ASAN_OPTIONS": "detect_leaks=0"}),
    "thread": (("tsan",), {"TSAN_OPTIONS": "exitcode=66"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", RUNS)
def test_constructs(sanitizer: str) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not installed: kernel bodies cannot run on the CPU")
    names, options = RUNS[sanitizer]
    found = [
        subprocess.run(
            [compiler, f"-print-file-name=lib{name}.so"], capture_output=True, text=True, check=True
        )
        for name in names
    ]
    libraries = [result.stdout.strip() for result in found]
    missing = [library for library in libraries if not Path(library).is_absolute()]
    if missing:
        pytest.skip(f"g++ has no {missing[0]}")
    flags = f"-g -fsanitize={sanitizer} -fno-sanitize-recover=undefined"
    environment = os.environ | options | {"LD_PRELOAD": " ".join(libraries), "TOFU_SHIM_FLAGS": flags}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(HERE / "test_semantics.py")]
    root = HERE.parents[2]
    result = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-4000:]
