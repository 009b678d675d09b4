"""Names of MXNet that Tofu has not: test files may import them, and a test that uses one says which."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any

import tofu.mx


class AbsentName(Exception):
    """A test used a name of MXNet that Tofu has not. The message is that name."""


class _Absent(type):
    """A class for each missing name, so that `isinstance` and `except` accept it."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if not _Loading.active:
            raise AbsentName(cls.__name__)
        if any(isinstance(argument, FunctionType) for argument in args):
            return _decorated(cls.__name__)
        return absent(f"{cls.__name__}()")

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if _Loading.active:
            return absent(f"{cls.__name__}.{name}")
        raise AbsentName(f"{cls.__name__}.{name}")


class _Loading(MetaPathFinder, Loader):
    """Finds modules of `mxnet` that `tofu.mx` has not, while test files are loaded."""

    active = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        parent, _, rest = fullname.partition(".")
        if parent != "mxnet" or not rest or _exists(rest):
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return ModuleType(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        allow_any_name(module, module.__name__)


def _exists(path: str) -> bool:
    first, *deeper = path.split(".")
    if first not in tofu.mx._MODULES:
        return False
    name = ".".join((tofu.mx.__name__, tofu.mx._MODULES[first], *deeper))
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def absent(name: str) -> Any:
    """Return a class that raises AbsentName when a test calls it or looks for something in it."""
    return _Absent(name, (Exception,), {})


def _decorated(name: str) -> Callable[..., None]:
    """Return the test that a missing decorator would have made."""

    def test(*args: Any, **kwargs: Any) -> None:
        raise AbsentName(name)

    return test


def allow_any_name(module: ModuleType, name: str) -> None:
    """Let test files import every name from `module`, as long as they are loaded."""
    present = module.__dict__.get("__getattr__")

    def found(attribute: str) -> Any:
        try:
            if present is not None:
                return present(attribute)
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        except AttributeError:
            if not _Loading.active or attribute.startswith("__"):
                raise
            return absent(f"{name}.{attribute}")

    module.__dict__["__getattr__"] = found


@contextmanager
def absent_names() -> Iterator[None]:
    """Let test files be loaded although they import names that Tofu has not."""
    for name in ("", *sorted(set(tofu.mx._MODULES.values()))):
        module = importlib.import_module(f"{tofu.mx.__name__}.{name}".rstrip("."))
        allow_any_name(module, f"mxnet.{name}".rstrip("."))
    finder = _Loading()
    sys.meta_path.insert(0, finder)
    _Loading.active = True
    try:
        yield
    finally:
        _Loading.active = False
        sys.meta_path.remove(finder)
