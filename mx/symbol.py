"""`mx.sym`: symbols with MXNet's methods; every operator of the library as a function on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..dataflow import sym
from ..dataflow import symbol as dataflow
from ..dataflow.settings import UNMARKED, marked
from ..dataflow.symbol.compose import group, variable
from ..errors import GraphError, OperatorError
from ..operators.library import registry
from ..runtime.context import Context
from ..support.wording import alternatives

if TYPE_CHECKING:
    from .executor import Executor
    from .ndarray.array import NDArray

__all__ = [
    "Group",
    "Symbol",
    "Variable",
    "arange",
    "fromjson",
    "full",
    "hypot",
    "linalg",
    "load",
    "load_json",
    "maximum",
    "minimum",
    "ones",
    "pow",
    "power",
    "random",
    "var",
    "zeros",
]

Extents = int | Sequence[int]


class Symbol(dataflow.Symbol):
    """A symbol whose executors hold MXNet's arrays, and whose comparisons are operators, as in MXNet.

    Operators are methods, too: `symbol.reshape(shape=(0, -1))` is `mx.sym.reshape(symbol, shape=(0, -1))`.
    """

    __slots__ = ()
    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> Callable[..., Symbol]:
        if name.startswith("_") or name not in registry.aliases():
            near = "" if name.startswith("_") else alternatives(name, [*dir(type(self)), *registry.aliases()])
            raise AttributeError(f"a symbol has no {name!r}{near}")
        called = _function(name)
        return lambda *arguments, **attributes: called(self, *arguments, **attributes)

    def __eq__(self, other: object) -> Any:
        return NotImplemented if other is None else self._compare(other, "_equal")

    def __ne__(self, other: object) -> Any:
        return NotImplemented if other is None else self._compare(other, "_not_equal")

    def __bool__(self) -> bool:
        raise GraphError("a symbol has no truth value before it is computed; compare it with `is None`")

    def list_attr(self, recursive: bool = False) -> dict[str, str]:
        """Return the node's attributes as text, settings also without underscores.

        `recursive` is `attr_dict`.
        """
        if recursive:
            raise GraphError("list_attr(recursive=True) is attr_dict() since MXNet 0.9; use that")
        return _with_bare(super().list_attr())

    def attr_dict(self) -> dict[str, dict[str, str]]:
        """Return, for every node with attributes, these as text, settings also without underscores."""
        return {name: _with_bare(text) for name, text in super().attr_dict().items()}

    def _set_attr(self, **settings: str) -> None:
        """Give the node settings, as text; they change no result."""
        text = self._only_node().text
        assert isinstance(text, dict)
        text.update(marked(settings))

    def debug_str(self) -> str:
        """Return the nodes, one a line, each with its inputs."""
        return "\n".join(
            f"{'Variable' if node.operator is None else node.operator.name}:{node.name}"
            + "".join(f"\n  {entry.node.output_name(entry.output)}" for entry in node.inputs)
            for node in self.nodes
        )

    def tojson(self, remove_amp_cast: bool = True, *, dialect: str = "0.11") -> str:
        """Return the symbol as MXNet writes it: `dialect` is "0.11", which all versions read, or "1.x"."""
        return super().tojson(dialect=dialect)

    def simple_bind(
        self, ctx: Any = None, grad_req: Any = "write", type_dict: Any = None, **shapes: Any
    ) -> Executor:
        """Return an executor with arrays of zeros; the shapes follow from those given by argument name.

        Several devices as `ctx` partition every operator and tensor over them. Numbers are float32, whatever
        `type_dict` says. Raises ShapeError if shapes do not follow.
        """
        from .executor import simple_bind

        shapes = {name: value for name, value in shapes.items() if name not in _EXECUTOR_OPTIONS}
        return simple_bind(self, ctx, grad_req, shapes)

    def bind(
        self,
        ctx: Any,
        args: Any,
        args_grad: Any = None,
        grad_req: Any = "write",
        aux_states: Any = None,
        group2ctx: Any = None,
        shared_exec: Any = None,
    ) -> Executor:
        """Return an executor with the user's arrays, by name or in the order of `list_arguments`, and shared.

        Devices and groups as `group2ctx` are left out of account: where things are computed is planned.
        """
        from .executor import bind

        return bind(self, ctx, args, args_grad, grad_req, aux_states)

    def eval(self, ctx: Context | None = None, **arrays: NDArray) -> list[NDArray]:
        """Return the outputs for these arguments."""
        from .executor import bind

        with bind(self, ctx, arrays, None, "null", None) as executor:
            return executor.forward()


_EXECUTOR_OPTIONS = {"group2ctx", "shared_exec", "shared_arg_names", "shared_buffer", "stype_dict"}


def of(symbol: dataflow.Symbol) -> Symbol:
    """Return a symbol as one of this kind."""
    return symbol if isinstance(symbol, Symbol) else Symbol(symbol.heads)


def Variable(name: str, attr: Mapping[str, str] | None = None, shape: Any = None, **settings: Any) -> Symbol:
    """Return an input of the network: data, a label or a parameter.

    Keywords are `shape`, `dtype`, `init`, `lr_mult`, `wd_mult`, and settings such as `__layout__`.
    """
    settings.pop("stype", None)
    return of(variable(name, shape, attr=attr, **settings))


var = Variable


def Group(symbols: Sequence[dataflow.Symbol]) -> Symbol:
    """Return one symbol with the outputs of several."""
    return of(group(symbols))


def load(fname: str | Path) -> Symbol:
    """Return the symbol in a file that MXNet or `save` wrote."""
    return of(sym.load(fname))


def load_json(json_str: str) -> Symbol:
    """Return the symbol that `tojson` wrote, here or in MXNet."""
    return of(sym.load_json(json_str))


fromjson = load_json


def zeros(shape: Extents, dtype: Any = None, **keywords: Any) -> Symbol:
    """Return a tensor of zeros; an extent of 0 is inferred."""
    return _function("_zeros")(shape=shape, dtype=dtype or "float32", **keywords)


def ones(shape: Extents, dtype: Any = None, **keywords: Any) -> Symbol:
    """Return a tensor of ones; an extent of 0 is inferred."""
    return _function("_ones")(shape=shape, dtype=dtype or "float32", **keywords)


def full(shape: Extents, val: float, dtype: Any = None, **keywords: Any) -> Symbol:
    """Return a tensor of one number."""
    return _function("_full")(shape=shape, value=float(val), dtype=dtype or "float32", **keywords)


def arange(
    start: float, stop: float | None = None, step: float = 1.0, repeat: int = 1, **keywords: Any
) -> Symbol:
    """`start`, `start + step`, ... below `stop`, each `repeat` times."""
    keywords.setdefault("dtype", "float32")
    return _function("_arange")(start=start, stop=stop, step=step, repeat=repeat, **keywords)


def _of_either(called: str, numeric: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a commutative function of two symbols, or of a symbol and a number."""

    def function(left: Any, right: Any) -> Any:
        if not isinstance(left, dataflow.Symbol):
            left, right = right, left
        if not isinstance(left, dataflow.Symbol):
            return numeric(left, right)
        if isinstance(right, dataflow.Symbol):
            return _function(called)(left, right)
        return _function(f"{called}_scalar")(left, scalar=right)

    function.__name__ = called[1:]
    function.__doc__ = f"`{called[1:]}` of symbols and numbers."
    return function


maximum = _of_either("_maximum", max)
minimum = _of_either("_minimum", min)
hypot = _of_either("_hypot", math.hypot)


def power(base: Any, exp: Any) -> Any:
    """`base ** exp`, of symbols and numbers."""
    return base**exp


pow = power


class _Family:
    """Operators that share the beginning of their names: `mx.sym.linalg.gemm2` is `mx.sym.linalg_gemm2`."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Callable[..., Symbol]:
        try:
            return _function(f"{self._prefix}{name}")
        except OperatorError as error:
            raise AttributeError(f"mx.sym: {error}") from None


linalg = _Family("linalg_")
random = _Family("random_")


def __getattr__(name: str) -> Callable[..., Symbol]:
    if name.startswith("__"):
        raise AttributeError(f"mx.sym has no {name!r}")
    try:
        return _function(name)
    except OperatorError as error:
        raise AttributeError(f"mx.sym: {error}") from None


def __dir__() -> list[str]:
    return sorted({*__all__, *registry.aliases()})


@cache
def _function(called: str) -> Callable[..., Symbol]:
    """Return the operator of this name as a function on symbols."""
    function = sym.function(called)

    def composed(*inputs: Any, **arguments: Any) -> Symbol:
        return of(function(*inputs, **arguments))

    composed.__name__ = composed.__qualname__ = called
    composed.__doc__ = function.__doc__
    return composed


def _with_bare(text: Mapping[str, str]) -> dict[str, str]:
    bare = {key[2:-2]: value for key, value in text.items() if key.startswith("__")}
    return {**{key: value for key, value in bare.items() if key in UNMARKED}, **text}
