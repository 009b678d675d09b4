"""Apply an operator to outputs of nodes: a new node, with variables for the inputs that are not given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import GraphError, OperatorError
from ...operators.library import registry
from ...operators.operator import Operator
from ...support.wording import alternatives
from ..naming import current_scope
from ..node import Entry, Node, duplicate_name, nearest, variable_node, visible_outputs
from ..place import Place, caller
from ..settings import UNMARKED, current_settings, for_slot, for_start, mark, marked
from .outputs import Outputs

NOTHING: Mapping[str, Any] = {}
NEAREST = 64
"""The nodes below a new one among which a repeated name is found at once."""


def apply_operator(
    operator: Operator | str,
    positional: Sequence[Outputs],
    values: Mapping[str, Any] = NOTHING,
    named: Mapping[str, Outputs] = NOTHING,
    *,
    name: str | None = None,
    hint: str | None = None,
    settings: Mapping[str, str] = NOTHING,
) -> Node:
    """Apply an operator, with separate arguments for everything; `hint` begins an automatic name."""
    place = caller()
    try:
        return _applied(operator, positional, values, named, name, hint, settings, place)
    except (OperatorError, GraphError) as error:
        raise error.saying(f"{error}\n  at {place}" if place else str(error)) from error


def _applied(
    operator: Operator | str,
    positional: Sequence[Outputs],
    values: Mapping[str, Any],
    named: Mapping[str, Outputs],
    name: str | None,
    hint: str | None,
    settings: Mapping[str, str],
    place: Place | None,
) -> Node:
    if not isinstance(operator, Operator | str):
        raise OperatorError(
            f"expected an operator, found {operator!r}; decorate a function with @tofu.op to make it one"
        )
    called = operator if isinstance(operator, str) else operator.name
    operator = registry.get(operator) if isinstance(operator, str) else operator
    values = {key: plain(value, key) for key, value in stated(operator, values).items()}
    direct = {key: str(value) for key, value in values.items() if key in UNMARKED or key == mark(key)}
    values = {key: value for key, value in values.items() if key not in direct}
    positional, ordered = split_positional(operator, positional, Outputs, values)
    if operator.count_attribute is not None:
        values.setdefault(operator.count_attribute, len(positional) + len(named))
    if repeated_value := next((key for key in ordered if key in values), None):
        raise OperatorError(f"{operator.name}: attribute {repeated_value} is given by position and by name")
    values |= {key: plain(value, key) for key, value in ordered.items()}
    attributes = operator.attributes(values)
    scope = current_scope()
    name = scope.name(name, hint or called.lower())
    text = {key: str(value) for key, value in values.items()}
    settings = marked(current_settings().get({**settings, **direct}))
    slots = (*operator.arguments(attributes), *operator.auxiliary)
    given = _assign(operator, name, slots, positional, named)
    created = {
        slot: variable_node(
            f"{name}_{slot}", text | for_start(operator.starts, slot) | for_slot(settings, slot), place
        )
        for slot in slots
        if slot not in given
    }
    given |= {slot: Entry(variable, 0) for slot, variable in created.items()}
    node = Node(
        name,
        operator,
        tuple(given[slot] for slot in slots),
        attributes,
        text | settings,
        visible_outputs(operator, attributes),
        place,
    )
    repeated = [new for new in (*created.values(), node) if not scope.claim(new.name)]
    if repeated:
        _refuse_duplicates(node, repeated)
    return node


def split_positional(
    operator: Operator,
    positional: Sequence[Any],
    tensor: type[Any] | tuple[type[Any], ...],
    values: Mapping[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Split positional arguments into inputs and, after them, attributes by name, in MXNet's order.

    `values` are the attributes given by name; they decide how many inputs there are.
    """
    inputs = 0
    while inputs < len(positional) and (positional[inputs] is None or isinstance(positional[inputs], tensor)):
        inputs += 1
    names = [spec.name for spec in operator.specs if spec.name != operator.count_attribute]
    rest = positional[inputs:]
    ordered = dict(zip(names, rest, strict=False))
    if not rest or len(rest) > len(names) or operator.count_attribute is not None:
        return tuple(positional), {}
    slots = operator.arguments(operator.attributes({**ordered, **values}))
    return (tuple(positional[:inputs]), ordered) if inputs >= len(slots) else (tuple(positional), {})


def stated(operator: Operator, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that were given. None stands for one left out, unless it differs from that."""
    differs = {spec.name for spec in operator.specs if spec.optional and spec.default is not None}
    return {key: value for key, value in values.items() if value is not None or key in differs}


def plain(value: Any, key: str) -> Any:
    """Return an attribute's value as Python writes it: NumPy's numbers become numbers, types their names."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list):
        return tuple(plain(part, key) for part in value)
    if isinstance(value, type | np.dtype):
        return np.dtype(value).name
    return value


def _assign(
    operator: Operator,
    name: str,
    slots: Sequence[str],
    positional: Sequence[Outputs],
    named: Mapping[str, Outputs],
) -> dict[str, Entry]:
    """Assign the given inputs to slots by name."""
    if len(positional) > len(slots):
        raise OperatorError(
            f"{operator.name} {name!r} takes {len(slots)} inputs ({', '.join(slots)}), "
            f"but {len(positional)} were given"
        )
    given = {}
    for slot, symbol in (*zip(slots, positional, strict=False), *named.items()):
        if slot not in slots:
            raise OperatorError(f"{operator.name} {name!r} has no input {slot!r}{alternatives(slot, slots)}")
        if symbol is None:
            continue
        if slot in given:
            raise OperatorError(f"{operator.name} {name!r}: input {slot!r} is given by position and by name")
        if not isinstance(symbol, Outputs):
            raise OperatorError(
                f"{operator.name} {name!r}: input {slot!r} is {symbol!r}, expected a symbol; "
                "attributes are given by keyword"
            )
        if len(symbol) != 1:
            raise GraphError(
                f"{operator.name} {name!r}: input {slot!r} is a symbol with {len(symbol)} outputs "
                f"({', '.join(symbol.list_outputs()[:4])}, ...); select one with [index]"
            )
        given[slot] = symbol.heads[0]
    return given


def _refuse_duplicates(node: Node, repeated: Sequence[Node]) -> None:
    """Raise GraphError if a new node has the name of another one shortly below it.

    Using the symbol finds the others. A second network with the same names is built in linear time.
    """
    below = nearest(node, NEAREST)
    for new in repeated:
        for other in below:
            if other.name == new.name and other is not new:
                raise duplicate_name(other, new)
