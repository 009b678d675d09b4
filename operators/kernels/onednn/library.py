"""Find and open the library, and declare the functions that are called.

Assumes: numbers of the C interface are those of version 3.2. So another version is refused.
Guarantees: the library computes in single precision whatever an environment says, and with one thread.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_int64, c_size_t, c_uint, c_void_p
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from ....errors import ExecutionError
from .handle import Handle

PACKAGE = "onednn-cpu-gomp"
FILE = "libdnnl.so.3"
VERSION = (3, 2)
"""The only version whose numbers these declarations have."""

REMEDY = "pip install '.[cpu]' in Tofu's folder"

CPU, IN_ORDER, USER_SCRATCHPAD, STRICT = 1, 1, 1, 0
UNIMPLEMENTED = 3

ISA = {
    0x1: "SSE4.1",
    0x3: "AVX",
    0x7: "AVX2",
    0xF: "AVX2-VNNI",
    0x1F: "AVX2-VNNI-2",
    0x27: "AVX-512",
    0x67: "AVX-512-VNNI",
    0xE7: "AVX-512-BF16",
    0x1EF: "AVX-512-FP16",
    0xFEF: "AVX-512-AMX",
    0x1FEF: "AVX-512-AMX-FP16",
}
"""The library's numbers for vector instructions."""


class Argument(Structure):
    """A memory object, and its role in a primitive."""

    _fields_ = (("role", c_int), ("memory", c_void_p))


class _Version(Structure):
    _fields_ = (
        ("major", c_int),
        ("minor", c_int),
        ("patch", c_int),
        ("hash", c_char_p),
        ("cpu_runtime", c_uint),
        ("gpu_runtime", c_uint),
    )


@dataclass(frozen=True, slots=True)
class Absent:
    """The reason why the library cannot be used, and the remedy."""

    reason: str
    remedy: str


@dataclass(frozen=True, slots=True, eq=False)
class Library:
    """The open library."""

    functions: Any
    """Its functions; calls let other threads of the interpreter run."""

    short: Any
    """The same functions, for calls that take less time than letting others run."""

    version: str
    """Its version."""

    instructions: str
    """The vector instructions that it uses."""

    engine: Handle
    """The processor."""

    stream: Handle
    """The order of execution. Streams of processors have no state, so all threads share it."""

    attributes: Handle
    """Attributes of all primitives: scratch is passed in, and arithmetic is single precision."""

    @property
    def has_wide_vectors(self) -> bool:
        """Tell whether it uses AVX-512."""
        return self.instructions.startswith("AVX-512")

    def make(self, create: str, destroy: str, *arguments: Any) -> Handle:
        """Return what `create` makes, to be destroyed by `destroy` when nobody refers to it.

        Raises Unimplemented if the library has no implementation, ExecutionError for any other status.
        """
        made = c_void_p()
        check(create, getattr(self.functions, create)(byref(made), *arguments))
        return Handle(made.value, getattr(self.functions, destroy))

    @contextmanager
    def one_thread(self) -> Iterator[None]:
        """Keep the calling thread to one thread of OpenMP.

        Primitives divide work and scratch among the threads that there are when they are made.
        """
        before = self.short.omp_get_max_threads()
        self.short.omp_set_num_threads(1)
        try:
            yield
        finally:
            self.short.omp_set_num_threads(before)


class Unimplemented(Exception):
    """The library does not compute something, or only by its slow reference implementation."""


def check(function: str, status: int) -> None:
    """Raise an exception unless the status of a call says that it succeeded."""
    if status == UNIMPLEMENTED:
        raise Unimplemented(function)
    if status:
        raise ExecutionError(f"oneDNN's function {function} failed with status {status}")


def loaded() -> Library | None:
    """Return the library, or None if it cannot be used here."""
    library = find()
    return library if isinstance(library, Library) else None


@lru_cache(maxsize=1)
def find() -> Library | Absent:
    """Open the library of the installed package, or say why it cannot be used."""
    path = library_path()
    if path is None:
        return Absent(f"the package {PACKAGE} is not installed", REMEDY)
    return opened(path)


def library_path() -> Path | None:
    """Return where the installed package has its library; None if it is not installed."""
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return None
    return next((Path(str(file.locate())) for file in files if file.name == FILE), None)


def opened(path: Path) -> Library | Absent:
    """Open a library, or say why it cannot be used."""
    try:
        functions, short = ctypes.CDLL(str(path)), ctypes.PyDLL(str(path))
        _declare(functions, short)
    except (OSError, AttributeError) as error:
        return Absent(f"{path.name} cannot be loaded: {error}", "install GNU's libgomp (libgomp1 on Debian)")
    version = functions.dnnl_version().contents
    text = f"{version.major}.{version.minor}.{version.patch}"
    if (version.major, version.minor) != VERSION:
        wanted = ".".join(map(str, VERSION))
        return Absent(f"{path.name} is version {text}, and Tofu calls version {wanted}", REMEDY)
    try:
        return _initialised(functions, short, text)
    except (Unimplemented, ExecutionError) as error:
        return Absent(f"{path.name} cannot start: {error}", REMEDY)


def _initialised(functions: Any, short: Any, version: str) -> Library:
    def make(create: str, destroy: str, *arguments: Any) -> Handle:
        made = c_void_p()
        check(create, getattr(functions, create)(byref(made), *arguments))
        return Handle(made.value, getattr(functions, destroy))

    engine = make("dnnl_engine_create", "dnnl_engine_destroy", CPU, c_size_t(0))
    stream = make("dnnl_stream_create", "dnnl_stream_destroy", engine, IN_ORDER)
    attributes = make("dnnl_primitive_attr_create", "dnnl_primitive_attr_destroy")
    for setter, value in (
        ("dnnl_primitive_attr_set_scratchpad_mode", USER_SCRATCHPAD),
        ("dnnl_primitive_attr_set_fpmath_mode", STRICT),
    ):
        check(setter, getattr(functions, setter)(attributes, value))
    number = functions.dnnl_get_effective_cpu_isa()
    instructions = ISA.get(number, f"instructions {number:#x}")
    return Library(functions, short, version, instructions, engine, stream, attributes)


def _declare(functions: Any, short: Any) -> None:
    """Declare arguments and results. Raises AttributeError if a function is missing."""
    functions.dnnl_version.restype = POINTER(_Version)
    functions.dnnl_primitive_desc_query_md.restype = c_void_p
    functions.dnnl_memory_desc_get_size.restype = c_size_t
    functions.dnnl_primitive_execute.argtypes = (c_void_p, c_void_p, c_int, POINTER(Argument))
    for name in ("engine", "stream", "primitive", "primitive_desc", "primitive_attr", "memory"):
        getattr(functions, f"dnnl_{name}_destroy").argtypes = (c_void_p,)
    functions.dnnl_memory_desc_destroy.argtypes = (c_void_p,)
    short.omp_get_max_threads.restype = c_int
    short.omp_set_num_threads.argtypes = (c_int,)
    short.omp_set_num_threads.restype = None


def numbers(values: tuple[int, ...]) -> Any:
    """Return integers as the library reads shapes, strides and geometry."""
    return (c_int64 * len(values))(*values)
