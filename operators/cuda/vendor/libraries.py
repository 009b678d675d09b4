"""Packages that only a machine with cards needs, imported when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ....errors import ExecutionError

EXTRAS = (
    "pip install '.[gpu-cuda13]' in Tofu's folder, or '.[gpu-cuda12]' if the driver is too old for CUDA 13"
)
"""The command that installs all of them. By its name alone pip could take another project for Tofu."""


def library(name: str, purpose: str) -> Any:
    """Return the imported package. Raises ExecutionError if it is missing or cannot be loaded."""
    try:
        return import_module(name)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError):
            reason = "is not installed"
        else:
            reason = f"cannot be loaded ({error})"
        raise ExecutionError(f"{purpose} needs {name}, which {reason}: {EXTRAS}") from error
