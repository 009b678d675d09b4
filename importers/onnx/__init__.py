"""ONNX's nodes in terms of the library's operators.

So far single nodes on arrays; reading whole models into symbols builds on these adapters.
"""

from collections.abc import Mapping

from . import elementwise, layers, moves, recurrent, reductions
from .node import Adapter

ADAPTERS: Mapping[str, Adapter] = {
    **elementwise.ADAPTERS,
    **reductions.ADAPTERS,
    **moves.ADAPTERS,
    **layers.ADAPTERS,
    **recurrent.ADAPTERS,
}
"""By a node's kind the function that computes its outputs."""
