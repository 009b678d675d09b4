"""Kernel sources compile for every architecture, without a warning, by nvcc and by NVRTC."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tofu import tdl
from tofu.operators import names
from tofu.operators.cuda import CudaKernel, generate, translation_unit

from .compilers import COMPILERS, Compiler, compilers_for
from .machine import unique

ARCHITECTURES = ("70", "80", "90")
SAMPLE = ("BatchNorm", "Convolution", "Embedding", "Pooling", "SoftmaxOutput", "gamma", "sgd_mom_update")


def check(kernels: list[CudaKernel], compilers: list[Compiler], architecture: str, folder: Path) -> None:
    functions = {function for kernel in kernels for function in kernel.functions}
    for compiler in compilers:
        compiled = compiler.compile(translation_unit(kernels), architecture, folder)
        assert not compiled.messages, f"{compiler.name}: {compiled.messages[:4000]}"
        assert compiled.entries(functions) == functions, compiler.name


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_sample(cases: Any, tmp_path: Path, architecture: str) -> None:
    """By one compiler for each architecture, and by each compiler for one."""
    compilers = compilers_for(architecture)
    chosen = [compilers[ARCHITECTURES.index(architecture) % len(compilers)]]
    check(unique(case.kernel("float32") for case in cases(SAMPLE)), chosen, architecture, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_every_operator(cases: Any, tmp_path: Path, dtype: str, architecture: str) -> None:
    kernels = unique(case.kernel(dtype) for case in cases(names()))
    check(kernels, compilers_for(architecture), architecture, tmp_path)


@pytest.mark.parametrize("compiler", COMPILERS, ids=lambda compiler: str(compiler.name))
def test_mixed_storage_and_custom_reducers(compiler: Compiler, tmp_path: Path) -> None:
    text = (
        "def f(d, h, b):\n    most = Reducer(lambda l, r: maximum(l, r), -inf)\n"
        "    return (lambda i: most(lambda j: h[d[i], j] * b[j]), lambda: Sum(lambda i: d[i]))"
    )
    types = {"d": "int64", "h": "float16", "b": "bfloat16"}
    kernels = [generate(tdl.parse(text), types, ["bfloat16", "int32"], finite=each) for each in (False, True)]
    check(kernels, [compiler], "90", tmp_path)


@pytest.mark.parametrize("compiler", COMPILERS, ids=lambda compiler: str(compiler.name))
def test_a_wrong_layout_does_not_compile(compiler: Compiler, tmp_path: Path) -> None:
    kernel = generate(tdl.parse("def f(a):\n    return lambda i: a[i]"), {"a": "float32"}, ["float32"])
    swapped = kernel.source.replace(
        "    Input<float, 1> in_a;\n    Output<float, 1> out_0;",
        "    Output<float, 1> out_0;\n    Input<float, 1> in_a;",
    )
    for wrong in (kernel.source.replace("    Interval box_i;", "    int box_i[2];"), swapped):
        assert wrong != kernel.source
        assert "static assertion failed" in compiler.compile(wrong, "90", tmp_path).messages


@pytest.mark.parametrize("compiler", COMPILERS, ids=lambda compiler: str(compiler.name))
def test_a_warning_is_seen(compiler: Compiler, tmp_path: Path) -> None:
    kernel = generate(tdl.parse("def f(a):\n    return lambda i: a[i]"), {"a": "float32"}, ["float32"])
    wrong = kernel.source.replace("const float e", "const int unused = 3; const float e").replace(
        "const real e", "const int unused = 3; const real e"
    )
    assert wrong != kernel.source
    assert "unused" in compiler.compile(wrong, "90", tmp_path).messages
