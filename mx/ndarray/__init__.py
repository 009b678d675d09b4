"""`mx.nd`: arrays in the manner of MXNet, on NumPy; every operator of the library as a function on them."""

from __future__ import annotations

import importlib
from typing import Any

from ...operators.library import registry
from ...support.wording import alternatives
from .array import NDArray, as_array, function, waitall
from .creation import arange, array, concatenate, empty, full, ones, ones_like, zeros, zeros_like
from .files import load, save

__all__ = [
    "NDArray",
    "arange",
    "array",
    "as_array",
    "concatenate",
    "empty",
    "full",
    "load",
    "ones",
    "ones_like",
    "random",
    "save",
    "waitall",
    "zeros",
    "zeros_like",
]


def __getattr__(name: str) -> Any:
    if name == "random":
        return importlib.import_module("..random", __package__)
    if name.startswith("__") or name not in (known := registry.aliases()):
        near = "" if name.startswith("__") else alternatives(name, [*__all__, *known])
        raise AttributeError(f"mx.nd has no {name!r}{near}")
    return function(name)


def __dir__() -> list[str]:
    return sorted({*__all__, *registry.aliases()})
