"""The machine's C compiler, and what decides the code that it makes.

The flags keep the meaning of every operation: sums have the order of the source, no products are fused with
sums, and infinities and NaN are what they are. They only say that nobody reads `errno` or floating-point
exceptions.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
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
SECONDS = 60
"""The time after which a compiler is ended, with all that it started. A kernel takes less than a second."""

ANSWER_SECONDS = 10
"""The same for a compiler that is asked about itself."""

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
        done = _run(self.command, command, source, SECONDS)
        if done.returncode or not path.is_file():
            said = done.stderr.strip()[:SHOWN_CHARACTERS] or "it says nothing, and wrote no library"
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
        said = _run(path, ("--version",), "", ANSWER_SECONDS)
        macros = _run(path, (*LANGUAGE, *FLAGS, "-dM", "-E", "-"), "", ANSWER_SECONDS)
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


def _run(
    command: str, arguments: Sequence[str], given: str, seconds: float
) -> subprocess.CompletedProcess[str]:
    """Run a command; end it with all that it started if it takes too long, or if this process is stopped."""
    try:
        with subprocess.Popen(
            [command, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        ) as process:
            try:
                output, complaints = process.communicate(given, seconds)
            except BaseException:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                raise
    except OSError as error:
        raise ExecutionError(f"{command} cannot be run: {error}; correct the compiler") from error
    except subprocess.TimeoutExpired as error:
        raise ExecutionError(
            f"{command} did not end within {seconds:g} s and was stopped; correct the compiler"
        ) from error
    return subprocess.CompletedProcess(process.args, process.returncode, output, complaints)
