"""Matrix products by cuBLAS, called through ctypes: CuPy's own calls cannot be captured into a graph."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_double, c_float, c_int, c_int64, c_longlong, c_size_t, c_void_p
from functools import cache
from typing import Any

from ....errors import ExecutionError
from ..launch.commands import MatrixProduct
from .gemm import Gemm, Operand, gemm_arguments
from .libraries import EXTRAS, library

WORKSPACE_BYTES = 32 << 20
"""Scratch of a handle, as the library wants on its largest cards; on others less does no harm."""

PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "cublasGetProperty": (c_int, POINTER(c_int)),
    "cublasCreate_v2": (POINTER(c_void_p),),
    "cublasDestroy_v2": (c_void_p,),
    "cublasSetStream_v2": (c_void_p, c_void_p),
    "cublasSetWorkspace_v2": (c_void_p, c_void_p, c_size_t),
    "cublasSetMathMode": (c_void_p, c_int),
    "cublasGemmStridedBatchedEx_64": (
        *(c_void_p, c_int, c_int, c_int64, c_int64, c_int64, c_void_p),
        *(c_void_p, c_int, c_int64, c_longlong),
        *(c_void_p, c_int, c_int64, c_longlong),
        c_void_p,
        *(c_void_p, c_int, c_int64, c_longlong),
        *(c_int64, c_int, c_int),
    ),
}
"""Types of the arguments of the functions that are called; all return a status."""

STATUSES = {
    0: "CUBLAS_STATUS_SUCCESS",
    1: "CUBLAS_STATUS_NOT_INITIALIZED",
    3: "CUBLAS_STATUS_ALLOC_FAILED",
    7: "CUBLAS_STATUS_INVALID_VALUE",
    8: "CUBLAS_STATUS_ARCH_MISMATCH",
    11: "CUBLAS_STATUS_MAPPING_ERROR",
    13: "CUBLAS_STATUS_EXECUTION_FAILED",
    14: "CUBLAS_STATUS_INTERNAL_ERROR",
    15: "CUBLAS_STATUS_NOT_SUPPORTED",
    16: "CUBLAS_STATUS_LICENSE_ERROR",
}

CONSTANTS = {
    "CUBLAS_OP_N": 0,
    "CUBLAS_OP_T": 1,
    "CUBLAS_DEFAULT_MATH": 0,
    "CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION": 16,
    "CUBLAS_COMPUTE_32F": 68,
    "CUBLAS_COMPUTE_32F_FAST_TF32": 77,
    "CUBLAS_COMPUTE_64F": 70,
    "CUBLAS_GEMM_DEFAULT": -1,
}
"""By their names in the library's header."""

TYPES = {"float16": 2, "bfloat16": 14, "float32": 0, "float64": 1}
"""CUDA's numbers of element types."""


class Cublas:
    """A handle for the products of one stream on the current device.

    Sums are float32, those of float64 float64, also within tensor cores; with `tf32` factors of float32 are
    rounded to TF32. `workspace` is memory of the device that nothing else uses while products run: with it
    the library allocates nothing, so products can be captured into a graph. Raises ExecutionError.
    """

    def __init__(
        self, stream: int, workspace: int, workspace_bytes: int = WORKSPACE_BYTES, tf32: bool = False
    ) -> None:
        self._tf32 = tf32
        self._handle = c_void_p()
        self._call("cublasCreate_v2", byref(self._handle))
        # in this order: setting the stream takes the workspace away
        self._call("cublasSetStream_v2", self._handle, stream)
        self._call("cublasSetWorkspace_v2", self._handle, workspace, workspace_bytes)
        exact = CONSTANTS["CUBLAS_DEFAULT_MATH"]
        exact |= CONSTANTS["CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION"]
        self._call("cublasSetMathMode", self._handle, exact)

    def multiply(self, product: MatrixProduct) -> None:
        """Enqueue a product; sums of nothing are zero. Raises ExecutionError."""
        gemm = gemm_arguments(product)
        if gemm.m and gemm.n and gemm.batch:
            self._call("cublasGemmStridedBatchedEx_64", self._handle, *arguments(gemm, self._tf32))

    def close(self) -> None:
        """Give the handle back; it must not be used afterwards."""
        self._call("cublasDestroy_v2", self._handle)

    def _call(self, function: str, *values: Any) -> None:
        status = getattr(_loaded(), function)(*values)
        if status:
            name = STATUSES.get(status, "an unknown status")
            raise ExecutionError(
                f"cuBLAS: {function} failed with {name} ({status}); `tofu doctor` shows what works on this "
                "machine"
            )


def version() -> str:
    """Return the library's version. Raises ExecutionError if there is none."""
    number = c_int()
    parts = []
    for part in range(3):  # major, minor, patch
        status = _loaded().cublasGetProperty(part, byref(number))
        if status:
            raise ExecutionError(f"cuBLAS: cublasGetProperty failed with status {status}")
        parts.append(str(number.value))
    return ".".join(parts)


def arguments(gemm: Gemm, tf32: bool = False) -> tuple[Any, ...]:
    """Return those of `cublasGemmStridedBatchedEx_64` behind the handle."""
    scalar = c_double if gemm.type == "float64" else c_float
    match gemm.type:
        case "float64":
            compute = CONSTANTS["CUBLAS_COMPUTE_64F"]
        case "float32" if tf32:
            compute = CONSTANTS["CUBLAS_COMPUTE_32F_FAST_TF32"]
        case _:
            compute = CONSTANTS["CUBLAS_COMPUTE_32F"]
    type = TYPES[gemm.type]

    def operation(operand: Operand) -> int:
        return CONSTANTS["CUBLAS_OP_T" if operand.transposed else "CUBLAS_OP_N"]

    def stored(operand: Operand) -> tuple[int, int, int, int]:
        return operand.address, type, operand.leading, operand.stride

    return (
        *(operation(gemm.a), operation(gemm.b), gemm.m, gemm.n, gemm.k),
        *(byref(scalar(gemm.alpha)), *stored(gemm.a), *stored(gemm.b)),
        *(byref(scalar(0)), *stored(gemm.c)),
        *(gemm.batch, compute, CONSTANTS["CUBLAS_GEMM_DEFAULT"]),
    )


@cache
def _loaded() -> ctypes.CDLL:
    """Return the library that CuPy would load, with its prototypes.

    Raises ExecutionError if there is none.
    """
    finder = library("cuda.pathfinder", "a matrix product on a GPU")
    try:
        found = ctypes.CDLL(finder.load_nvidia_dynamic_lib("cublas").abs_path)
    except (OSError, RuntimeError) as error:
        raise ExecutionError(f"cuBLAS is not found or cannot be loaded: {EXTRAS}") from error
    for name, types in PROTOTYPES.items():
        function = getattr(found, name)
        function.argtypes, function.restype = types, c_int
    return found
