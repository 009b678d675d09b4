"""Operators: descriptions, attributes, kernels, and the library under MXNet's names."""

from .library.registry import aliases, get, names

__all__ = ["aliases", "get", "names"]
