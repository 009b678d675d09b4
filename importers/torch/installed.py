"""PyTorch, imported when a module is read and not before."""

from __future__ import annotations

import importlib
from typing import Any

from ...errors import TofuError

VERSION = "2.13"
"""The version that the table of operators is tested with."""


def installed() -> Any:
    """Return the module `torch`. Raises TofuError with the command that installs it."""
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise TofuError(
            f"modules of PyTorch are read with PyTorch {VERSION}, which is not installed here ({error}); "
            "run pip install 'tofu[torch]'"
        ) from error
