"""Choose cuDNN's plans for an H100 on a machine that has none, in a separate process.

Standard input brings pickled requests, commands with options of `Plans`; standard output takes an answer for
each, the list of name and workspace of every plan, or of why there is none.

cuDNN does not load without a driver. Where there is none, a library takes its place all of whose functions
report that there is no card; choosing plans calls none of them for a result.
"""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tofu.errors import ExecutionError
from tofu.operators.cuda.vendor.cudnn import Plans

H100: dict[str, Any] = {
    "version": 1,
    "deviceName": "NVIDIA H100 80GB HBM3",
    "cudaDeviceId": 0,
    "pciDeviceId": 0,
    "deviceVer": 900,
    "driverVer": 13000,
    "isTccDriver": 0,
    "supportCoopLaunch": 1,
    "multiProcessorCount": 132,
    "smClockRateKHz": 1980000,
    "memClockRateKHz": 2619000,
    "memoryBusWidth": 5120,
    "totalGlobalMem": 85 << 30,
    "l2CacheSize": 50 << 20,
    "warpSize": 32,
    "regsPerBlock": 65536,
    "maxRegistersPerSM": 65536,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerSM": 2048,
    "maxCtasPerSM": 32,
    "maxSharedMemoryPerBlock": 49152,
    "maxSharedMemoryPerBlockOptin": 232448,
    "reservedSharedMemoryPerBlock": 1024,
    "oversizedSharedMemoryPerBlock": 0,
    "maxGridSize": [2147483647, 65535, 65535],
    "maxBlockSize": [1024, 1024, 64],
}

NO_CARD = 100
DRIVER_FUNCTIONS = (
    *("cuCtxGetCurrent", "cuCtxGetLimit", "cuCtxPopCurrent", "cuCtxPushCurrent", "cuDeviceGet"),
    *("cuDeviceGetCount", "cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString"),
    *("cuKernelGetAttribute", "cuKernelGetFunction", "cuKernelSetAttribute", "cuLaunchCooperativeKernel"),
    *("cuLaunchKernel", "cuLaunchKernelEx", "cuLibraryGetKernel", "cuLibraryLoadData"),
    *("cuLibraryLoadFromFile", "cuLibraryUnload", "cuLinkAddData", "cuLinkComplete", "cuLinkCreate"),
    *("cuLinkDestroy", "cuModuleGetFunction", "cuModuleLoadData", "cuModuleUnload"),
    *("cuOccupancyMaxPotentialClusterSize", "cuStreamGetCtx", "cuTensorMapEncodeIm2col"),
    "cuTensorMapEncodeTiled",
)


def main() -> None:
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    load_driver()
    while True:
        try:
            commands, options = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(answered(commands, options), answers)
        answers.flush()


def answered(commands: list[Any], options: dict[str, Any]) -> list[tuple[str, int] | str]:
    plans = Plans(described=json.dumps(H100), **options)
    found: list[tuple[str, int] | str] = []
    for command in commands:
        try:
            plan = plans.plan(command)
        except ExecutionError as error:
            found.append(str(error))
        else:
            found.append((plan.name, plan.workspace_bytes))
    return found


def load_driver() -> None:
    """The machine's driver, or what takes its place."""
    try:
        ctypes.CDLL("libcuda.so.1", ctypes.RTLD_GLOBAL)
    except OSError:
        with tempfile.TemporaryDirectory() as folder:
            source, library = Path(folder, "driver.c"), Path(folder, "libcuda.so.1")
            source.write_text(
                "\n".join(f"int {name}(void) {{ return {NO_CARD}; }}" for name in DRIVER_FUNCTIONS),
                encoding="utf-8",
            )
            compiler = shutil.which("cc") or "gcc"
            options = ["-shared", "-fPIC", f"-Wl,-soname,{library.name}", "-o", str(library)]
            subprocess.run([compiler, str(source), *options], check=True)
            ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)


if __name__ == "__main__":
    main()
