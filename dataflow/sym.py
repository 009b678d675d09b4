"""The namespace `tofu.sym`: every operator of the library as a function on symbols, by its MXNet name.

data = sym.Variable("data")
fc1 = sym.FullyConnected(data, num_hidden=10, name="fc1")      # makes fc1_weight and fc1_bias
net = sym.SoftmaxOutput(fc1, name="softmax")                    # makes softmax_label
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from ..errors import OperatorError
from ..operators.library import registry
from .naming import NameScope
from .symbol import Symbol
from .symbol.compose import apply
from .symbol.compose import group as Group
from .symbol.compose import variable as Variable
from .symbol.load import load, load_json

var = Variable

__all__ = ["Group", "NameScope", "Symbol", "Variable", "apply", "load", "load_json", "ones", "var", "zeros"]


def zeros(shape: Sequence[int], *, name: str | None = None) -> Symbol:
    """Return a tensor of zeros; an extent of 0 is inferred."""
    return apply("_zeros", shape=tuple(shape), name=name)


def ones(shape: Sequence[int], *, name: str | None = None) -> Symbol:
    """Return a tensor of ones; an extent of 0 is inferred."""
    return apply("_ones", shape=tuple(shape), name=name)


def __getattr__(name: str) -> Callable[..., Symbol]:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return function(name)
    except OperatorError as error:
        raise AttributeError(f"tofu.sym: {error}") from error


def __dir__() -> list[str]:
    return sorted({*__all__, *registry.aliases()})


@cache
def function(called: str) -> Callable[..., Symbol]:
    """Return the operator of this name as a function on symbols. Raises OperatorError for an unknown one."""
    operator = registry.get(called)

    def composed(
        *inputs: Symbol, name: str | None = None, attr: Mapping[str, str] | None = None, **arguments: Any
    ) -> Symbol:
        return apply(called, *inputs, name=name, attr=attr, **arguments)

    composed.__name__ = composed.__qualname__ = called
    composed.__doc__ = operator.documentation or operator.name
    return composed
