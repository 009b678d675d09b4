"""The environment of processes that are compared: it says nothing of how a library computes."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

PREFIXES = (
    "ATEN_",
    "BLIS_",
    "DNNL_",
    "GOMP_",
    "GOTO_",
    "KMP_",
    "MKL_",
    "NPY_",
    "NVPL_",
    "OMP_",
    "ONEDNN_",
    "OPENBLAS_",
)
"""Beginnings of the variables that libraries of array operations read."""

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "MXNET_CPU_WORKER_NTHREADS": "1",
}

INSTRUCTIONS: dict[str, dict[str, str]] = {
    "all": {},
    "avx2": {
        "OPENBLAS_CORETYPE": "Haswell",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKLDNN_MAX_CPU_ISA": "AVX2",
        "DNNL_MAX_CPU_ISA": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",
        "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512_SKX",
    },
}
"""Variables that keep all libraries to a level of vector instructions; `all` is what the processor has."""


COMPILED_FOR = {"avx2": "-march=x86-64-v3"}
"""The option of a C compiler that keeps it to a level of vector instructions."""


def limited_compiler(instructions: str, folder: Path, path: str) -> str:
    """Return a search path on which the command `cc` keeps to a level of vector instructions.

    The command is written to the folder.
    """
    option, compiler = COMPILED_FOR.get(instructions), shutil.which("cc", path=path)
    if option is None or compiler is None:
        return path
    command = folder / "cc"
    command.write_text(f'#!/bin/sh\nexec {compiler} "$@" {option}\n', encoding="utf-8")
    command.chmod(0o755)
    return f"{folder}:{path}"


def compared(environment: Mapping[str, str], instructions: str) -> dict[str, str]:
    """Return the environment of a process with one thread, without what `environment` tells libraries."""
    kept = {name: value for name, value in environment.items() if not name.startswith(PREFIXES)}
    return {**kept, **ONE_THREAD, **INSTRUCTIONS[instructions]}
