"""Kernel bodies under sanitizers: no access outside of a tensor, no undefined arithmetic, no data race."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .machine import FLAGS, host_compiler

HERE = Path(__file__).parent
SEMANTICS = HERE / "test_semantics.py"
TRANSFERS, BOUNDS = HERE / "transfers" / "test_transfers.py", HERE / "transfers" / "test_transfer_bounds.py"
RUNS = {
    "address,undefined": (("asan", "ubsan"), {"ASAN_OPTIONS": "detect_leaks=0"}),
    "thread": (("tsan",), {"TSAN_OPTIONS": "exitcode=66"}),
}


def run_under(sanitizer: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Other tests again, with kernels that a sanitizer watches; its libraries have to be loaded first."""
    names, options = RUNS[sanitizer]
    compiler, libraries = host_compiler(), []
    for name in names:
        command = [compiler, f"-print-file-name=lib{name}.so"]
        found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        if not Path(found).is_absolute():
            pytest.skip(f"g++ has no {found}")
        libraries.append(found)
    flags = f"-g -fsanitize={sanitizer} -fno-sanitize-recover=undefined"
    environment = os.environ | options | {"LD_PRELOAD": " ".join(libraries), FLAGS: flags}
    command = [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(
        command, env=environment, cwd=HERE.parents[2], capture_output=True, text=True, check=False
    )


def check(result: subprocess.CompletedProcess[str]) -> None:
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-4000:]


def test_address_and_undefined_behaviour() -> None:
    moved = f"{BOUNDS}::test_copies_and_fills[False-float32]"
    check(run_under("address,undefined", "-m", "", f"{SEMANTICS}::test_constructs[float32]", moved))


@pytest.mark.slow
def test_transfers() -> None:
    check(run_under("address,undefined", "-m", "", "-k", "not every", str(TRANSFERS), str(BOUNDS)))


@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", RUNS)
def test_constructs(sanitizer: str) -> None:
    check(run_under(sanitizer, str(SEMANTICS)))


@pytest.mark.slow
def test_a_missing_guard_is_seen() -> None:
    node = f"{HERE / 'test_planted.py'}::test_a_corrupted_source_is_refused[read guard dropped]"
    result = run_under("address,undefined", node)
    check(result)
    assert "AddressSanitizer: heap-buffer-overflow" in result.stdout + result.stderr


@pytest.mark.slow
def test_operators() -> None:
    check(run_under("address,undefined", f"{HERE / 'test_library.py'}::test_sample"))
