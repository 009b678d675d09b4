"""The calls of cuBLAS, which must be those of its header."""

from __future__ import annotations

import ctypes
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tofu.errors import ExecutionError
from tofu.operators.cuda.launch.commands import Matrix, MatrixProduct
from tofu.operators.cuda.vendor import cublas
from tofu.operators.cuda.vendor.cublas import CONSTANTS, PROTOTYPES, STATUSES, TYPES, Cublas

GEMM = "cublasGemmStridedBatchedEx_64"
PRODUCT = MatrixProduct(
    Matrix(1000, 2, 3, 3, 1, 4, 6, "float32"),
    Matrix(2000, 3, 5, 1, 3, 4, 15, "float32"),
    Matrix(3000, 2, 5, 5, 1, 4, 10, "float32"),
    0.5,
)


class Recorder:
    """A library that notes calls whose arguments its prototypes can convert. `failing` gives statuses."""

    def __init__(self, failing: dict[str, int]) -> None:
        self.failing = failing
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        def call(*values: Any) -> int:
            types = PROTOTYPES[name]
            assert len(values) == len(types)
            for value, type in zip(values, types, strict=True):
                type.from_param(value)
            self.calls.append((name, values))
            return self.failing.get(name, 0)

        return call


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder({})
    monkeypatch.setattr(cublas, "_loaded", lambda: recorder)
    return recorder


def test_the_stream_is_set_before_the_workspace(recorded: Recorder) -> None:
    handle = Cublas(stream=7, workspace=4096, workspace_bytes=100)
    handle.close()
    create, stream, workspace, mode, destroy = recorded.calls
    assert (create[0], destroy[0]) == ("cublasCreate_v2", "cublasDestroy_v2")
    assert (stream[0], stream[1][1]) == ("cublasSetStream_v2", 7)
    assert (workspace[0], workspace[1][1:]) == ("cublasSetWorkspace_v2", (4096, 100))
    assert (mode[0], mode[1][1]) == ("cublasSetMathMode", 16)


def pointed(argument: Any, type: type[Any]) -> float:
    return float(ctypes.cast(argument, ctypes.POINTER(type)).contents.value)


def test_a_product(recorded: Recorder) -> None:
    """All three lie row by row but the right one, so `result^T = right^T @ left^T` transposes that."""
    Cublas(0, 0).multiply(PRODUCT)
    name, (_, *values) = recorded.calls[-1]
    assert name == GEMM
    assert values[:5] == [1, 0, 5, 2, 3]
    assert pointed(values[5], ctypes.c_float) == 0.5
    assert values[6:14] == [2000, 0, 3, 15, 1000, 0, 3, 6]
    assert pointed(values[14], ctypes.c_float) == 0
    assert values[15:] == [3000, 0, 5, 10, 4, CONSTANTS["CUBLAS_COMPUTE_32F"], -1]


@pytest.mark.parametrize(
    ("type", "tf32", "compute"),
    [
        ("float16", True, "CUBLAS_COMPUTE_32F"),
        ("bfloat16", False, "CUBLAS_COMPUTE_32F"),
        ("float32", False, "CUBLAS_COMPUTE_32F"),
        ("float32", True, "CUBLAS_COMPUTE_32F_FAST_TF32"),
        ("float64", True, "CUBLAS_COMPUTE_64F"),
    ],
)
def test_what_is_computed_in(recorded: Recorder, type: str, tf32: bool, compute: str) -> None:
    matrix = Matrix(0, 2, 2, 2, 1, 1, 4, type)
    Cublas(0, 0, tf32=tf32).multiply(MatrixProduct(matrix, matrix, matrix, 0.5))
    values = recorded.calls[-1][1]
    assert values[-2] == CONSTANTS[compute]
    assert {values[8], values[12], values[17]} == {TYPES[type]}
    assert pointed(values[6], ctypes.c_double if type == "float64" else ctypes.c_float) == 0.5


def test_an_empty_result_needs_no_call(recorded: Recorder) -> None:
    empty = Matrix(0, 0, 2, 2, 1, 1, 0, "float32")
    Cublas(0, 0).multiply(MatrixProduct(empty, Matrix(0, 2, 2, 2, 1, 1, 4, "float32"), empty))
    assert GEMM not in [name for name, _ in recorded.calls]


@pytest.mark.parametrize(("status", "name"), [(13, "CUBLAS_STATUS_EXECUTION_FAILED"), (99, "unknown status")])
def test_a_failure_has_a_name(recorded: Recorder, status: int, name: str) -> None:
    recorded.failing[GEMM] = status
    handle = Cublas(0, 0)
    with pytest.raises(ExecutionError, match=rf"{GEMM} failed with .*{name} \({status}\)"):
        handle.multiply(PRODUCT)


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)
    cublas._loaded.cache_clear()
    with pytest.raises(ExecutionError, match=r"pip install '\.\[gpu-cuda13\]'"):
        Cublas(0, 0)


def header() -> str:
    """The header of the library, with the types of its arguments, where pip has installed it."""
    spec = importlib.util.find_spec("nvidia")
    for root in map(Path, spec.submodule_search_locations or () if spec else ()):
        for file in root.glob("*/include/cublas_api.h"):
            types = root.glob("*/include/library_types.h")
            return "\n".join(each.read_text(encoding="utf-8") for each in (file, *types))
    pytest.skip("nvidia-cublas is not installed")


C_TYPES = {
    "int": ctypes.c_int,
    "int*": ctypes.POINTER(ctypes.c_int),
    "int64_t": ctypes.c_int64,
    "long long int": ctypes.c_longlong,
    "size_t": ctypes.c_size_t,
    "cublasHandle_t": ctypes.c_void_p,
    "cudaStream_t": ctypes.c_void_p,
    "cublasHandle_t*": ctypes.POINTER(ctypes.c_void_p),
}


def test_prototypes_are_those_of_the_header() -> None:
    text = header()
    for name, types in PROTOTYPES.items():
        match = re.search(rf"cublasStatus_t CUBLASWINAPI {name}\(([^)]*)\)", text)
        assert match is not None, name
        assert tuple(c_type(each) for each in match[1].split(",")) == types, name


def c_type(argument: str) -> Any:
    """The type of an argument `type name`; enumerations are ints, pointers are addresses."""
    type = argument.strip().rpartition(" ")[0].removeprefix("const ").strip()
    if type in C_TYPES:
        return C_TYPES[type]
    return ctypes.c_void_p if type == "void*" else ctypes.c_int


def test_numbers_are_those_of_the_header() -> None:
    text = header()
    for number, name in STATUSES.items():
        assert re.search(rf"\b{name} = {number}\b", text), name
    for name, number in CONSTANTS.items():
        assert re.search(rf"\b{name} = {number}\b", text), name


def test_a_machine_without_a_card() -> None:
    """The library itself says so, in a separate process, so that other tests do not load it."""
    pytest.importorskip("cuda.pathfinder", reason="cuda-pathfinder is not installed")
    script = (
        "from tofu.errors import ExecutionError\n"
        "from tofu.operators.cuda.vendor.cublas import Cublas\n"
        "try:\n    Cublas(0, 0).close()\n"
        "except ExecutionError as error:\n    print(error)\n"
        "else:\n    print('a card')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    if "CUBLAS_STATUS" not in done.stdout:
        pytest.skip(f"nothing to see here: {done.stdout.strip()}")
    assert "cublasCreate_v2 failed with CUBLAS_STATUS_NOT_INITIALIZED (1)" in done.stdout
