"""Generated kernels on the CPU: compiled with the host's compiler behind `shim.h`, called by ctypes."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest

from tofu.operators.cuda import CudaKernel, Launch, pack, translation_unit
from tofu.operators.cuda.launch.commands import Struct
from tofu.operators.kernels.kernel import KernelCall

HERE = Path(__file__).parent
FLAGS = "TOFU_SHIM_FLAGS"
"""The environment variable with further options of the compiler, such as a sanitizer's."""


class Machine:
    """Compiled kernels. `source` is that of the kernels, or one that defines the same functions."""

    def __init__(
        self, kernels: Sequence[CudaKernel], folder: Path, source: str | None = None, *options: str
    ) -> None:
        text = translation_unit(kernels) if source is None else source
        callers = (caller(kernel.name, name) for kernel in kernels for name in kernel.functions)
        self.library = load("\n".join([text, *callers]), folder, *options)

    def run(self, kernel: CudaKernel, launch: Launch, call: KernelCall) -> list[int]:
        """One launch as a card would make it. Returns the flags of bad indices."""
        faults = np.zeros(max(len(kernel.parameters.gathers), 1), np.int32)
        struct = pack(kernel, call, faults.ctypes.data)
        entry = next(
            entry
            for group in kernel.groups
            for entry in group
            if launch.function in (entry.function(True), entry.function(False))
        )
        start(self.library, launch.function, struct, launch.blocks, launch.threads, bool(entry.cooperative))
        flags: list[int] = faults.tolist()
        return flags


def load(text: str, folder: Path, *options: str) -> ctypes.CDLL:
    """The source, with its `caller`s, compiled for the CPU."""
    file, binary = folder / "kernels.cpp", folder / "kernels.so"
    file.write_text(text, encoding="utf-8")
    flags = ["-std=c++17", "-O1", "-shared", "-fPIC", "-pthread", "-ffp-contract=off"]
    flags += [*options, *os.environ.get(FLAGS, "").split()]
    headers = ["-include", str(HERE / "shim.h"), "-I", str(HERE / "shim_headers")]
    bare = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    command = [host_compiler(), *flags, *headers, str(file), "-o", str(binary)]
    result = subprocess.run(command, env=bare, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[:4000]
    return ctypes.CDLL(str(binary))


def start(library: ctypes.CDLL, name: str, struct: Struct, blocks: int, threads: int, together: bool) -> None:
    """One launch as a card would make it."""
    function = library[f"run_{name}"]
    function.restype = ctypes.c_bool
    whole = function(
        ctypes.c_void_p(struct.ctypes.data),
        ctypes.c_uint(blocks),
        ctypes.c_uint(threads),
        ctypes.c_bool(together),
    )
    assert whole, f"{name}: a barrier was reached by a part of the threads only"


def host_compiler() -> str:
    """Return the path of g++; skip the test if there is none."""
    found = shutil.which("g++")
    if found is None:
        pytest.skip("g++ is not installed: kernel bodies cannot run on the CPU")
    return found


def caller(namespace: str, function: str) -> str:
    """A function for ctypes that runs one of the kernel's."""
    return (
        f'extern "C" bool run_{function}(const tofu::{namespace}::Parameters* p, unsigned blocks, '
        f"unsigned threads, bool together) {{\n    return shim_launch(blocks, threads, together, "
        f"[=] {{ tofu::{namespace}::{function}(*p); }});\n}}"
    )


def unique(kernels: Iterable[CudaKernel]) -> list[CudaKernel]:
    """Each kernel once."""
    return list({kernel.name: kernel for kernel in kernels}.values())
