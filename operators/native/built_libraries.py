"""Libraries of kernels on disk, each under a name that its source, its compiler and the processor decide.

A file is a shared library and, after its end, a digest of its name and its bytes. A file with another digest
is damaged, or was made for another name. Then it is built again. A new file gets its name only when it is
whole, so processes may build the same one at once. Code is only loaded from a folder to which nobody else can
write.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import stat
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from ...errors import ExecutionError
from ...support.atomic_files import Files
from ...support.cache_folder import FOLDER_VARIABLE, cache_folder, own_folder
from .compiler import Compiler

DIGEST_BYTES = 32
LIBRARY_BYTES = 1 << 26
"""The most bytes that a file is read of."""


def kernels_folder() -> Path:
    """Return the folder of the libraries, which may not exist yet."""
    return cache_folder("kernels")


def loaded(source: str, compiler: Compiler) -> Any:
    """Return the library of a source, built if it is not on the disk.

    Raises ExecutionError if it cannot be built, or if another user could change it.
    """
    return _loaded(source, compiler, kernels_folder())


@cache
def _loaded(source: str, compiler: Compiler, folder: Path) -> Any:
    key = hashlib.sha256(f"{compiler.target}\0{source}".encode()).hexdigest()
    path = own_folder(folder) / f"{key}.so"
    if not is_whole(path, key):
        _build(source, compiler, path, key)
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise ExecutionError(f"the kernel {path} cannot be loaded: {error}; remove the file") from error


def function_in(library: Any, name: str) -> Any:
    """Return a function of a library. Raises ExecutionError if it has none of this name."""
    try:
        return library[name]
    except AttributeError as error:
        raise ExecutionError(
            f"the kernel {library._name} has no function {name}; remove the file and correct the compiler"
        ) from error


def is_whole(path: Path, key: str) -> bool:
    """Tell whether a file is the library of this name, as it was built, and nobody else can change it."""
    try:
        with open(path, "rb", opener=_open) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
                return False
            if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or found.st_size > LIBRARY_BYTES:
                return False
            data = file.read()
    except OSError:
        return False
    return data[-DIGEST_BYTES:] == _digest(key, data[:-DIGEST_BYTES])


def _open(path: str, flags: int) -> int:
    """Open a file, not a link, and without waiting for another process if it is a pipe."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _digest(key: str, library: bytes) -> bytes:
    return hashlib.sha256(key.encode() + library).digest()


def _build(source: str, compiler: Compiler, path: Path, key: str) -> None:
    """Build a library under another name, then rename it."""
    files = Files()
    try:
        with tempfile.TemporaryDirectory(prefix=".building-", dir=path.parent) as folder:
            built, temporary = Path(folder) / "kernel.so", Path(folder) / "whole.so"
            compiler.build(source, built)
            library = built.read_bytes()
            files.write(temporary, library + _digest(key, library))
            temporary.chmod(stat.S_IRUSR | stat.S_IWUSR)
            files.publish(path, temporary)
    except OSError as error:
        raise ExecutionError(
            f"the kernel {path} cannot be written: {error}; name a folder with room in {FOLDER_VARIABLE}"
        ) from error
