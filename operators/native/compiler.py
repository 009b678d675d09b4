"""The machine's C compiler, and what decides the code that it makes.

The flags keep the meaning of every operation: sums have the order of the source, no products are fused with
sums, and infinities and NaN are what they are. They only say that nobody reads `errno` or floating-point
exceptions.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ...errors import ExecutionError

COMMAND = "cc"
REMEDY = "install a C++ compiler that the command cc starts: apt-get install g++ on Debian"

LANGUAGE = ("-x", "c++", "-std=c++17")
FLAGS = (
    "-O3",
    "-march=native",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-exceptions",
    "-fno-rtti",
    "-fvisibility=hidden",
)
LIBRARY = ("-shared", "-fPIC")
SECONDS = 300
"""The time after which a compiler is ended."""

SHOWN_CHARACTERS = 1000


@dataclass(frozen=True, slots=True)
class NoCompiler:
    """The reason why there is no compiler, and the remedy."""

    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Compiler:
    """A compiler for this machine's processor."""

    command: str
    """Its path."""

    version: str
    """The first line that it says of its version."""

    target: str
    """A digest of its version and of all macros that it defines with these flags. The macros name the
    processor's instructions."""

    def build(self, source: str, path: Path) -> None:
        """Compile a source to a shared library. Raises ExecutionError with what the compiler says."""
        command = (*LANGUAGE, *FLAGS, *LIBRARY, "-", "-o", str(path), "-lm")
        done = _run(self.command, command, source)
        if done.returncode:
            said = done.stderr.strip()[:SHOWN_CHARACTERS]
            raise ExecutionError(
                f"{self.command} cannot compile a kernel (exit status {done.returncode}): {said}; "
                "correct the compiler, or leave out --native"
            )


@lru_cache(maxsize=1)
def find() -> Compiler | NoCompiler:
    """Return the machine's compiler, or the reason why there is none."""
    path = shutil.which(COMMAND)
    return NoCompiler(f"there is no command {COMMAND}", REMEDY) if path is None else examined(path)


def examined(path: str) -> Compiler | NoCompiler:
    """Return the compiler at a path, or the reason why it cannot be used."""
    try:
        said = _run(path, ("--version",), "")
        macros = _run(path, (*LANGUAGE, *FLAGS, "-dM", "-E", "-"), "")
    except ExecutionError as error:
        return NoCompiler(str(error), REMEDY)
    for done in (said, macros):
        if done.returncode:
            return NoCompiler(
                f"{path} ended with {done.returncode}: {done.stderr.strip()[:SHOWN_CHARACTERS]}", REMEDY
            )
    version = said.stdout.splitlines()[0] if said.stdout else path
    target = hashlib.sha256(f"{said.stdout}\0{macros.stdout}\0{FLAGS}".encode()).hexdigest()
    return Compiler(path, version, target)


def required() -> Compiler:
    """Return the machine's compiler. Raises ExecutionError if there is none."""
    match find():
        case Compiler() as compiler:
            return compiler
        case NoCompiler(reason=reason, remedy=remedy):
            raise ExecutionError(f"kernels in C cannot be built: {reason}; {remedy}, or leave out --native")


def _run(command: str, arguments: Sequence[str], given: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [command, *arguments], input=given, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ExecutionError(f"{command} cannot be run: {error}; correct the compiler") from error
