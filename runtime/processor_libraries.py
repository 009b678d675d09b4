"""Find the libraries of a processor, and whether they use what it can do.

Kernels call BLAS libraries and oneDNN, or are built by a C compiler. Numba compiles loops of searches.

A BLAS library chooses its code for a *core*, a generation of processors. If an environment names an older
core, or the library does not know the processor, products of matrices take up to twice as long.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from ..operators.kernels.onednn.library import Absent, Library, find
from ..operators.native import compiler
from ..operators.native.asked import is_asked
from ..support.compiled import COMPILED, REMEDY
from ..support.compiled import compiler as loop_compiler

LEVELS = ("SSE", "AVX", "AVX2", "AVX-512")
"""Vector instructions of x86-64, each wider or richer than those before it."""

FLAGS = {
    "AVX": frozenset({"avx"}),
    "AVX2": frozenset({"avx2", "fma"}),
    "AVX-512": frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl"}),
}
"""The flags in Linux's list of processors that all have to be there for a level."""

CORES = {
    "AVX": ("Sandybridge", "Bulldozer", "Piledriver", "Steamroller"),
    "AVX2": ("Haswell", "Zen", "Excavator"),
    "AVX-512": ("SkylakeX", "Cooperlake", "SapphireRapids"),
}
"""OpenBLAS's cores of x86-64 by the level of their code. All others have SSE."""

COMPILER = "C compiler"
"""The name of what builds kernels in C."""

LOOPS = "numba"
"""The name of what compiles the loops of searches and of the simulator."""

CORE_VARIABLE = "OPENBLAS_CORETYPE"
"""The environment variable that names OpenBLAS's core."""


@dataclass(frozen=True, slots=True)
class ProcessorLibrary:
    """A library that computes products of matrices or convolutions, or a compiler of kernels or loops."""

    name: str
    """Its name."""

    version: str | None
    """Its version; None if it cannot be used."""

    instructions: str = ""
    """The core or the vector instructions that it chose its code for, or what it compiles; empty if it does
    not say."""

    problem: str = ""
    """Why it is slow here or cannot be used; empty if nothing is wrong."""

    remedy: str = ""
    """The remedy; empty if nothing is wrong."""


def blas_libraries(environment: Mapping[str, str] = os.environ) -> tuple[ProcessorLibrary, ...]:
    """Return the BLAS libraries that NumPy loaded, with a warning for each that chose slow code.

    `environment` is the one in which Python started.
    """
    level = processor_level()
    found = (_library(each, level, environment) for each in numpy_blas())
    return tuple(sorted(set(found), key=lambda library: library.name))


def processor_libraries() -> tuple[ProcessorLibrary, ...]:
    """Return all libraries that computations on the processor use, those that are missing included."""
    return *blas_libraries(), onednn_library(), native_compiler(), loop_library()


def library_names() -> str:
    """Return the names, versions and instructions of the libraries that kernels can use, on which results
    and times depend."""
    libraries = (*blas_libraries(), onednn_library(), *([native_compiler()] if is_asked() else []))
    usable = [each for each in libraries if each.version is not None]
    return ", ".join(f"{each.name} {each.version} {each.instructions}".strip() for each in usable)


def onednn_library() -> ProcessorLibrary:
    """Return oneDNN, which computes convolutions and products of matrices if it is installed."""
    match find():
        case Absent(reason=reason, remedy=remedy):
            return ProcessorLibrary("oneDNN", None, "", reason, remedy)
        case Library() as library:
            level, uses = processor_level(), library.instructions
            problem = remedy = ""
            if level == "AVX-512" and not uses.startswith(level):
                problem = f"the processor has {level}, but oneDNN uses {uses}"
                remedy = "unset ONEDNN_MAX_CPU_ISA and DNNL_MAX_CPU_ISA, and start again"
            return ProcessorLibrary("oneDNN", library.version, uses, problem, remedy)


def native_compiler() -> ProcessorLibrary:
    """Return the compiler that builds kernels in C if they are asked for."""
    match compiler.find():
        case compiler.NoCompiler(reason=reason, remedy=remedy):
            return ProcessorLibrary(COMPILER, None, "", reason, remedy)
        case compiler.Compiler() as found:
            uses = f"this processor ({found.target[:12]})"
            return ProcessorLibrary(COMPILER, found.version, uses if is_asked() else f"{uses}, with --native")


def loop_library() -> ProcessorLibrary:
    """Return numba, which compiles the loops of searches and of the simulator if it is installed."""
    if loop_compiler() is not None:
        return ProcessorLibrary(LOOPS, metadata.version(LOOPS), "loops of searches and of the simulator")
    reason = "refuses this version of Python or NumPy" if COMPILED else "is not installed"
    problem = f"it {reason}, so long searches take several times as long"
    return ProcessorLibrary(LOOPS, None, "", problem, REMEDY)


def numpy_blas() -> list[dict[str, object]]:
    """Return what threadpoolctl says of NumPy's BLAS libraries; of all loaded ones if NumPy has none."""
    loaded: list[dict[str, object]] = ThreadpoolController().select(user_api="blas").info()
    return [each for each in loaded if "numpy" in Path(str(each["filepath"])).parent.name] or loaded


def processor_level(path: Path = Path("/proc/cpuinfo")) -> str | None:
    """Return the highest level of vector instructions that the processor has; None if nothing says so."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    if found is None:
        return None
    flags = set(found[1].split())
    return max((level for level in FLAGS if flags >= FLAGS[level]), key=LEVELS.index, default="SSE")


def _library(
    loaded: Mapping[str, object], level: str | None, environment: Mapping[str, str]
) -> ProcessorLibrary:
    name, core = str(loaded["internal_api"]), str(loaded.get("architecture") or "")
    version = str(loaded.get("version") or "of an unknown version")
    if name != "openblas" or not core or level is None:
        return ProcessorLibrary(name, version, core)
    chosen = core_level(core)
    if LEVELS.index(chosen) >= LEVELS.index(level):
        return ProcessorLibrary(name, version, core)
    problem = f"the processor has {level}, but OpenBLAS chose the core {core}, whose code uses {chosen}"
    return ProcessorLibrary(name, version, core, problem, _remedy(level, environment))


def core_level(core: str) -> str:
    """Return the vector instructions that OpenBLAS uses for a core."""
    known = {each.casefold(): level for level, cores in CORES.items() for each in cores}
    return known.get(core.casefold(), "SSE")


def _remedy(level: str, environment: Mapping[str, str]) -> str:
    named = environment.get(CORE_VARIABLE)
    if named is not None:
        return f"unset the environment variable {CORE_VARIABLE}, which is '{named}', and start again"
    return f"set the environment variable {CORE_VARIABLE}={CORES[level][0]} before Python starts"
