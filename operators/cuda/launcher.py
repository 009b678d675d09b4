"""From a generated kernel to launches with CuPy, which compiles it with NVRTC at the first one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from ...errors import DataError, ExecutionError
from ..kernel import KernelCall
from .kernel import CudaKernel
from .launch import Launch, launches
from .packing import Struct, pack

OPTIONS = ("-std=c++17",)
"""What the source asks of NVRTC; CuPy adds the architecture and the folder of CUDA's headers."""


@dataclass(frozen=True, eq=False, slots=True)
class Prepared:
    """The launches of one call: calling it enqueues them on the stream that is current, or on `stream`.

    `functions` are CuPy's, each with its geometry; all take `struct` as their one argument, by value.
    `faults` are the flags of bad indices on the device, None where there are none.
    """

    kernel: CudaKernel
    functions: tuple[tuple[Callable[..., None], Launch], ...]
    struct: Struct
    faults: Any

    def __call__(self, stream: Any = None) -> None:
        for function, launch in self.functions:
            function((launch.blocks,), (launch.threads,), (self.struct,), stream=stream)

    def check(self) -> None:
        """Wait for the device. Raises DataError if any index that was computed from data was bad."""
        if self.faults is None:
            return
        parameters = self.kernel.parameters
        for gather, flag in zip(parameters.gathers, self.faults.tolist(), strict=True):
            if flag:
                raise DataError(
                    f"{parameters.operator}: an index into dimension {gather.axis} of {gather.tensor}, "
                    "computed from data, is no whole number or lies outside of the tensor; it read as nan"
                )


def prepare(kernel: CudaKernel, call: KernelCall) -> Prepared:
    """The call's launches on the current device; its arrays are CuPy's, those of bfloat16 hold uint16.

    The kernel is compiled once for each device. Arrays and the result have to be kept as long as it is
    called. Raises ExecutionError without CuPy, DataError and OperatorError as `pack` does.
    """
    cupy = _cupy()
    gathers = len(kernel.parameters.gathers)
    faults: Any = cupy.zeros(gathers, "int32") if gathers else None
    address = faults.__cuda_array_interface__["data"][0] if gathers else 0
    module = _module(kernel.source)
    functions = tuple((module.get_function(launch.function), launch) for launch in launches(kernel, call))
    return Prepared(kernel, functions, pack(kernel, call, address), faults)


def _cupy() -> Any:
    try:
        return import_module("cupy")
    except ImportError as error:
        raise ExecutionError(
            "kernels run on a GPU with CuPy, which is not installed: pip install 'cupy-cuda12x[ctk]' or "
            "'cupy-cuda13x[ctk]', whichever CUDA the driver supports"
        ) from error


@cache
def _module(source: str) -> Any:
    return _cupy().RawModule(code=source, options=OPTIONS)
