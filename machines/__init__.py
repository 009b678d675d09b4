"""Devices, their memory, the links between them, and measured times."""

from __future__ import annotations

import importlib
from typing import Any

from .machine import Machine
from .machine_file import load_machine as load

__all__ = ["Machine", "load", "measure"]


def __getattr__(name: str) -> Any:
    """Return `measure`, which runs programs: it is in a room after this one, and imported when it is used."""
    if name == "measure":
        return importlib.import_module("..runtime.profiling", __package__).measure
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
