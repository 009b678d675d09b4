"""The tests in the files of a checkout of MXNet."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import tofu.mx

from . import test_utils
from .absent import absent_names, allow_any_name
from .tolerances import NEW, OLD

FILES = ("symbol", "module", "executor", "operator", "rnn", "metric", "init", "random")
"""The test files that are run, without `test_` in front."""

REMOVED_FROM_NUMPY = {
    "bool": bool,
    "float": float,
    "int": int,
    "object": object,
    "product": np.prod,
    "cumproduct": np.cumprod,
    "asscalar": lambda array: array.item(),
    "Inf": np.inf,
    "NaN": np.nan,
    "Infinity": np.inf,
}
"""Names of NumPy that MXNet's tests use and that NumPy has removed."""


@dataclass(frozen=True, slots=True)
class Test:
    """A test of MXNet."""

    file: str
    """The file without `test_` and ending."""
    name: str
    run: Callable[[], object]


def version(checkout: Path) -> str:
    """Return the version of MXNet that the checkout holds."""
    text = (checkout / "python" / "mxnet" / "libinfo.py").read_text(encoding="utf-8")
    found = re.search(r"^__version__ = ['\"]([^'\"]+)", text, re.M)
    if found is None:
        raise ValueError(f"{checkout} does not say which version of MXNet it is")
    return found[1]


def collected(checkout: Path) -> Iterator[Test]:
    """Yield the tests of `FILES` on top of `tofu.mx`, in the order of the files."""
    folder = checkout / "tests" / "python" / "unittest"
    tofu.mx.install()
    helpers = test_utils.as_module(OLD if version(checkout).startswith("0.") else NEW)
    allow_any_name(helpers, helpers.__name__)
    sys.modules[helpers.__name__] = helpers
    tofu.mx.__dict__["test_utils"] = helpers
    for name, value in REMOVED_FROM_NUMPY.items():
        np.__dict__.setdefault(name, value)
    sys.path[:0] = [str(folder), str(checkout / "tests" / "python" / "common")]
    with absent_names():
        modules = [importlib.import_module(f"test_{file}") for file in FILES]
    for file, module in zip(FILES, modules, strict=True):
        tree = ast.parse((folder / f"test_{file}.py").read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                yield Test(file, node.name, getattr(module, node.name))
