"""Kernel sources compile with nvcc for every architecture it supports, without a warning."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tofu import tdl
from tofu.operators import names
from tofu.operators.cuda import generate, translation_unit

NVCC = shutil.which("nvcc")
ARCHITECTURES = ("70", "80", "90")
SAMPLE = ("BatchNorm", "Convolution", "Embedding", "Pooling", "SoftmaxOutput", "gamma", "sgd_mom_update")

pytestmark = pytest.mark.skipif(NVCC is None, reason="nvcc is not installed: sources cannot be compiled")


def supported(architecture: str) -> bool:
    listed = subprocess.run([str(NVCC), "--list-gpu-arch"], capture_output=True, text=True, check=True)
    return f"compute_{architecture}" in listed.stdout.split()


def compiles(source: str, architecture: str, folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / "kernels.cu"
    file.write_text(source, encoding="utf-8")
    options = ["-std=c++17", f"-arch=sm_{architecture}", "-cubin", "-Werror", "all-warnings", "-Xptxas", "-v"]
    command = [str(NVCC), *options, str(file), "-o", str(folder / "kernels.cubin")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def check(cases: Any, chosen: list[str], dtype: str, architecture: str, folder: Path) -> None:
    if not supported(architecture):
        pytest.skip(f"this nvcc does not know sm_{architecture}")
    kernels = {kernel.name: kernel for case in cases(chosen) for kernel in (case.kernel(dtype),)}
    result = compiles(translation_unit(kernels.values()), architecture, folder)
    assert result.returncode == 0, result.stderr[-4000:]
    assert "warning" not in result.stderr
    compiled = set(re.findall(r"Compiling entry function '(\w+)'", result.stderr))
    assert compiled == {function for kernel in kernels.values() for function in kernel.functions}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_sample(cases: Any, tmp_path: Path, architecture: str) -> None:
    check(cases, [name for name in names() if name in SAMPLE], "float32", architecture, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_every_operator(cases: Any, tmp_path: Path, dtype: str, architecture: str) -> None:
    check(cases, list(names()), dtype, architecture, tmp_path)


def test_mixed_storage_and_custom_reducers(tmp_path: Path) -> None:
    text = (
        "def f(d, h, b):\n    most = Reducer(lambda l, r: maximum(l, r), -inf)\n"
        "    return (lambda i: most(lambda j: h[d[i], j] * b[j]), lambda: Sum(lambda i: d[i]))"
    )
    kernel = generate(tdl.parse(text), {"d": "int64", "h": "float16", "b": "bfloat16"}, ["bfloat16", "int32"])
    result = compiles(kernel.source, "90", tmp_path)
    assert result.returncode == 0, result.stderr


def test_a_wrong_layout_does_not_compile(tmp_path: Path) -> None:
    kernel = generate(tdl.parse("def f(a):\n    return lambda i: a[i]"), {"a": "float32"}, ["float32"])
    wrong = kernel.source.replace("    Interval box_i;", "    int box_i[2];")
    assert wrong != kernel.source
    result = compiles(wrong, "90", tmp_path)
    assert result.returncode != 0
    assert "static assertion failed" in result.stderr
