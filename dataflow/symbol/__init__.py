"""Symbols: networks as users compose them.

A symbol is a set of outputs (`outputs.py`), and users call everything on it. The code behind its methods
takes outputs and returns outputs, so that no file here imports the class and is imported by it:

    outputs <- shapes, types, substitute, serialize, apply_operator <- arithmetic <- symbol <- compose, load

The class makes symbols of its own kind, `type(self)`. So a subclass, such as MXNet's, stays itself.
"""

from .symbol import Symbol

__all__ = ["Symbol"]
