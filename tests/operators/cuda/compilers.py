"""Compilers of kernel sources without a card: nvcc, and NVRTC, which CuPy compiles them with."""

from __future__ import annotations

import ctypes
import importlib.util
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tofu.operators.emit.kernel import OPTIONS

NVCC = shutil.which("nvcc")
DEPRECATED = re.compile(r"nvrtc: warning: Architectures prior to .* are deprecated .*\n")
"""Said of sm_70 by the last NVRTC that compiles for it; of the architecture, not of the source."""


@dataclass(frozen=True)
class Compiled:
    """`messages` are errors and warnings; `binary` is the cubin, empty if there are errors."""

    messages: str
    binary: bytes

    def entries(self, names: Iterable[str]) -> set[str]:
        """Those of the names that the cubin has code for."""
        return {name for name in names if f".text.{name}\0".encode() in self.binary}


@dataclass(frozen=True)
class Compiler:
    """`compile(source, architecture, folder)`, for the architectures that it knows, such as `90`."""

    name: str
    architectures: frozenset[str]
    compile: Callable[[str, str, Path], Compiled]


def nvcc() -> Compiler | None:
    """The nvcc of the path, with warnings as errors."""
    if NVCC is None:
        return None
    listed = subprocess.run([NVCC, "--list-gpu-arch"], capture_output=True, text=True, check=True)
    return Compiler("nvcc", frozenset(re.findall(r"compute_(\w+)", listed.stdout)), _by_nvcc)


def _by_nvcc(source: str, architecture: str, folder: Path) -> Compiled:
    file, cubin = folder / "kernels.cu", folder / "kernels.cubin"
    file.write_text(source, encoding="utf-8")
    options = [*OPTIONS, f"-arch=sm_{architecture}", "-cubin", "-Werror", "all-warnings"]
    command = [str(NVCC), *options, str(file), "-o", str(cubin)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return Compiled(result.stderr, b"" if result.returncode else cubin.read_bytes())


def nvrtc() -> Iterator[Compiler]:
    """Every NVRTC that pip has installed next to the headers of the same CUDA."""
    spec = importlib.util.find_spec("nvidia")
    for root in map(Path, spec.submodule_search_locations or () if spec else ()):
        for library in sorted(root.glob("*/lib/libnvrtc.so.*")):
            folders = (library.parents[1] / "include", root / "cuda_runtime" / "include")
            headers = [folder for folder in folders if (folder / "cuda_fp16.h").is_file()]
            if headers:
                yield _nvrtc(ctypes.CDLL(str(library)), headers[0])


def _nvrtc(library: ctypes.CDLL, headers: Path) -> Compiler:
    count, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    listed = (ctypes.c_int * count.value)()
    library.nvrtcGetSupportedArchs(listed)

    def compiled(source: str, architecture: str, _folder: Path) -> Compiled:
        program = ctypes.c_void_p()
        library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None)
        options = [name.encode() for name in (*OPTIONS, f"-arch=sm_{architecture}", f"-I{headers}")]
        failed = library.nvrtcCompileProgram(
            program, len(options), (ctypes.c_char_p * len(options))(*options)
        )
        log = _text(library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog, program).rstrip(b"\0")
        cubin = b"" if failed else _text(library.nvrtcGetCUBINSize, library.nvrtcGetCUBIN, program)
        library.nvrtcDestroyProgram(ctypes.byref(program))
        return Compiled(DEPRECATED.sub("", log.decode()), cubin)

    return Compiler(f"nvrtc {major.value}.{minor.value}", frozenset(map(str, listed)), compiled)


def _text(size_of: Callable[..., int], fill: Callable[..., int], program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    size_of(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    fill(program, text)
    return text.raw


NO_COMPILER = (
    "no nvcc, and no NVRTC with CUDA's headers: pip install nvidia-cuda-nvrtc-cu12 nvidia-cuda-runtime-cu12"
)

COMPILERS = tuple(one for one in (nvcc(), *nvrtc()) if one is not None)


def compilers_for(architecture: str) -> list[Compiler]:
    """Return the compilers; skip the test if there are none."""
    if not COMPILERS:
        pytest.skip(NO_COMPILER)
    found = [compiler for compiler in COMPILERS if architecture in compiler.architectures]
    if not found:
        pytest.skip(f"{', '.join(one.name for one in COMPILERS)} cannot compile for sm_{architecture}")
    return found
