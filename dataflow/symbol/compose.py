"""Compose symbols: variables, groups, and operators applied to symbols."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...errors import GraphError, ShapeError
from ...operators.operator import Operator
from ...support.checked_argument import require
from ...support.wording import alternatives
from ..naming import current_scope
from ..node import variable_node
from ..place import caller
from ..settings import current_settings, mark, marked
from .apply_operator import NOTHING, apply_operator, plain
from .symbol import Symbol

VARIABLE_SETTINGS = ("shape", "attr", "dtype", "init", "lr_mult", "wd_mult")


def variable(
    name: str,
    shape: Sequence[int | None] | None = None,
    *,
    attr: Mapping[str, str] | None = None,
    dtype: object = None,
    init: object = None,
    lr_mult: float | None = None,
    wd_mult: float | None = None,
    **settings: str,
) -> Symbol:
    """Make an input of the network: data, a label or a parameter. 0 or None in `shape` is unknown.

    `init` is an initializer's JSON text or an object with `dumps()`; the multipliers scale the learning
    rate and the weight decay of this parameter. Further keywords, `__layout__`, are settings as text.
    """
    if not isinstance(name, str) or not name:
        raise GraphError(f"a variable's name must be text, not {name!r}")
    if bare := [key for key in settings if key != mark(key)]:
        raise GraphError(
            f"variable {name!r} has no setting {bare[0]!r}{alternatives(bare[0], VARIABLE_SETTINGS)}"
        )
    fits = shape is None or isinstance(shape, Iterable)
    require(fits, shape, f"the shape of {name!r}", "a tuple of integers", ShapeError)
    text = marked(current_settings().get(attr)) | marked(settings)
    known = {
        "__shape__": None if shape is None else str(tuple(extent or 0 for extent in shape)),
        "__dtype__": None if dtype is None else plain(dtype, "dtype"),
        "__init__": init.dumps() if hasattr(init, "dumps") else init,
        "__lr_mult__": lr_mult,
        "__wd_mult__": wd_mult,
    }
    text |= {key: str(value) for key, value in known.items() if value is not None}
    node = variable_node(name, text, caller())
    current_scope().claim(name)
    return Symbol(node.entries)


def group(symbols: Sequence[Symbol]) -> Symbol:
    """Make one symbol with the outputs of several."""
    require(isinstance(symbols, Iterable), symbols, "symbols", "a list of symbols", GraphError)
    for symbol in symbols:
        if not isinstance(symbol, Symbol):
            raise GraphError(f"a group is made of symbols; {symbol!r} is not a symbol")
    grouped = Symbol([head for symbol in symbols for head in symbol.heads])
    grouped.list_arguments()
    return grouped


def apply(
    operator: Operator | str,
    /,
    *inputs: Symbol,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **arguments: Any,
) -> Symbol:
    """Apply an operator, the user's own or one of the library by name, to symbols.

    Inputs go by position or by name; those left out become variables, `fc1_weight`. Other keywords are
    attributes. `attr` holds settings that do not change results, as text. Raises OperatorError, GraphError.
    """
    symbols = {key: value for key, value in arguments.items() if isinstance(value, Symbol)}
    values = {key: value for key, value in arguments.items() if key not in symbols}
    node = apply_operator(operator, inputs, values, symbols, name=name, settings=attr or NOTHING)
    return Symbol(node.entries)
