"""PyTorch, imported when it is first used: descriptions can be read and checked without it."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any


class _Module:
    """A module that is imported when something of it is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


torch = _Module("torch")
F = _Module("torch.nn.functional")


def missing() -> bool:
    """Return whether PyTorch is not installed."""
    return find_spec("torch") is None
