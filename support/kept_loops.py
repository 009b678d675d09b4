"""Where the machine code of loops is kept on disk: in a folder that all it was made from decides.

Numba takes a loop from the disk if the file of the loop is as it was. Its machine code also has the loops
that it calls and the constants that it reads, and these may be in other files. If they change, numba would
run what they were before, or end in an error. So each loop has a folder, whose name is a digest of the loop,
of all that it calls and of all constants.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ..errors import ExecutionError
from .cache_folder import cache_folder, own_folder

_one_at_a_time = RLock()
"""Held while numba's folder is another one."""


@contextmanager
def kept(loop: Callable[..., Any]) -> Iterator[bool]:
    """Let numba keep a loop that is declared meanwhile in the loop's folder.

    Yield whether there is such a folder, to which only this user can write.
    """
    import numba

    config: Any = numba.config
    name = digest(loop)
    try:
        folder = own_folder(cache_folder("loops") / name)
    except (ExecutionError, RuntimeError):  # without a home, or others could change the code
        yield False
        return
    with _one_at_a_time:
        given, config.CACHE_DIR = config.CACHE_DIR, str(folder)
        try:
            yield True
        finally:
            config.CACHE_DIR = given


def digest(loop: Callable[..., Any]) -> str:
    """Return a digest of a loop, of the functions of its package that it calls, and of their constants."""
    found = hashlib.sha256()
    package = _package(loop.__module__)
    waiting: list[Any] = [loop]
    seen = set(waiting)
    while waiting:
        for word, used in _words(waiting.pop()):
            part = _part(used, package)
            found.update(f"{word} {_constant(used) if part is None else ''}\n".encode())
            if part is not None and part not in seen:
                seen.add(part)
                waiting.append(part)
    return found.hexdigest()


def _package(module: str) -> str:
    """Return the package of a module."""
    return module.partition(".")[0]


def _part(value: Any, package: str) -> Any:
    """Return a function or a tuple with names of the package; None if a value is neither."""
    for name in ("source", "py_func"):  # of a `Loop`, and of what numba makes of a function
        value = getattr(value, name, value)
    is_part = isinstance(value, FunctionType) or (isinstance(value, type) and hasattr(value, "_fields"))
    return value if is_part and _package(value.__module__) == package else None


def _words(part: Any) -> Iterator[tuple[str, Any]]:
    """Yield the words that a part consists of, each with what it stands for, if anything."""
    names = vars(sys.modules[part.__module__])
    yield part.__qualname__, None
    for name, hint in part.__annotations__.items():
        yield f"{name}: {hint}", None
        yield from ((word, names[word]) for word in re.findall(r"\w+", str(hint)) if word in names)
    if isinstance(part, FunctionType):
        modules = [vars(each) for each in names.values() if isinstance(each, ModuleType)]
        for code in _codes(part.__code__):
            constants = [each for each in code.co_consts if not isinstance(each, CodeType)]
            yield repr((code.co_code, code.co_varnames, code.co_names, constants)), None
            yield from ((word, names[word]) for word in code.co_names if word in names)
            for module in modules:
                yield from ((word, module[word]) for word in code.co_names if word in module)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a function and of what is defined in it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _constant(value: Any) -> str:
    """Return what a loop sees of a value: the name of what is made elsewhere."""
    is_elsewhere = callable(value) or isinstance(value, ModuleType)
    return str(getattr(value, "__name__", type(value))) if is_elsewhere else repr(value)
