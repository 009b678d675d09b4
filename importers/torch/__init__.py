"""PyTorch's modules as symbols, and trained values back into modules.

`torch.export` gives a module as a graph of ATen operators. The table says for each of them which
description it is: a text in TDL, or an operator of the library. No entry says anything about partitioning.
"""

from .reading import from_torch
from .weights import to_torch

__all__ = ["from_torch", "to_torch"]
