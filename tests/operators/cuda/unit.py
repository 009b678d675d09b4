"""Many translation units of kernels compiled for the processor as one, behind the shim."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import subprocess
import threading
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from tofu.operators.cuda.launch.commands import KernelLaunch

from .machine import HERE, host_compiler

FUNCTION = re.compile(r'^extern "C" __global__ void[^\n]*\n(?:\s*)?(\w+)\(', re.MULTILINE)
SPACE = re.compile(r"^namespace tofu \{ namespace (\w+) \{", re.MULTILINE)
CALL = """
template <typename P> bool shim_call(void (*function)(P), const void* p, unsigned blocks, unsigned threads,
                                     bool together) {
    return shim_launch(blocks, threads, together, [=] { function(*static_cast<const P*>(p)); });
}
"""


class Unit:
    """The functions of several sources, which have the prelude in common."""

    def __init__(self, sources: Sequence[str], folder: Path) -> None:
        prelude = (files("tofu.operators.emit") / "prelude.h").read_text(encoding="utf-8")
        macros: dict[str, None] = {}
        shared: dict[str, None] = {}
        bodies: dict[str, None] = {}
        for source in sources:
            head, found, body = source.partition(prelude)
            assert found, "a source starts with macros and the prelude"
            macros.update(dict.fromkeys(head.splitlines()))
            space = SPACE.search(body)
            assert space, "a source has a separate namespace"
            shared[body[: space.start()]] = None
            bodies[body[space.start() :]] = None
        callers = [caller for body in bodies for caller in _callers(body)]
        text = "\n".join([*macros, prelude, *shared, CALL, *bodies, *callers])
        name = hashlib.sha256(text.encode()).hexdigest()[:16]
        binary = folder / f"{name}.so"
        if not binary.exists():
            own = f"{name}.{os.getpid()}.{threading.get_ident()}"
            file, made = (folder / f"{own}.{kind}" for kind in ("cpp", "so"))
            file.write_text(text, encoding="utf-8")
            flags = ["-std=c++17", "-O1", "-shared", "-fPIC", "-pthread", "-ffp-contract=off"]
            headers = ["-include", str(HERE / "shim.h"), "-I", str(HERE / "shim_headers")]
            command = [host_compiler(), *flags, *headers, str(file), "-o", str(made)]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            assert result.returncode == 0, result.stderr[:4000]
            made.replace(binary)  # whole at once, since other processes and threads may need it too
        self._library = ctypes.CDLL(str(binary))

    def run(self, launch: KernelLaunch) -> None:
        """One launch as a card would make it."""
        function = self._library[f"run_{launch.function}"]
        function.restype = ctypes.c_bool
        whole = function(
            ctypes.c_void_p(launch.struct.ctypes.data),
            ctypes.c_uint(launch.blocks),
            ctypes.c_uint(launch.threads),
            ctypes.c_bool(launch.together),
        )
        assert whole, f"{launch.function}: a barrier was reached by a part of the threads only"


def _callers(body: str) -> list[str]:
    """A function for ctypes for every kernel of a source."""
    (space,) = SPACE.findall(body)
    return [
        f'extern "C" bool run_{name}(const void* p, unsigned blocks, unsigned threads, bool together) {{\n'
        f"    return shim_call(tofu::{space}::{name}, p, blocks, threads, together);\n}}"
        for name in FUNCTION.findall(body)
    ]
