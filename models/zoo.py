"""The model zoo by name: `wresnet-152-10`, `rnn-10-8k`, `mlp`, ..."""

from __future__ import annotations

import re
from typing import Any

from ..dataflow.naming import NameScope
from ..errors import GraphError
from ..support.checked_argument import require
from ..support.wording import suggestion
from .families import FAMILIES, Family
from .model import Model


def names() -> tuple[str, ...]:
    """Return names worth trying; other depths, widths and sizes work likewise."""
    return tuple(name for family in FAMILIES for name in family.examples)


def get(name: str, batch: int | None = None, **options: Any) -> Model:
    """Return the model of this name. `batch` defaults to the family's; options are those of the family.

    A name without sizes, such as `gpt`, stands for the first of its family that `names` lists.

    Raises GraphError for an unknown name, option or value.
    """
    found = family(name)
    name = found.full_name(name)
    if batch is not None:
        options["batch"] = batch
    known = found.options
    for option, value in options.items():
        if option not in known:
            raise GraphError(f"model {name!r} has no option {option!r}; it has {', '.join(known)}")
        if not _is_like(value, known[option]):
            raise GraphError(f"{option} of model {name!r} is {value!r}; expected {_kind(known[option])}")
    matched = re.fullmatch(found.pattern, name)
    assert matched is not None
    with NameScope():
        return found.build(*matched.groups(), name=name, **options)


def family(name: str) -> Family:
    """Return the family that a name belongs to. Raises GraphError for an unknown one, with a suggestion."""
    require(isinstance(name, str), name, "name", "the name of a model", GraphError)
    for each in FAMILIES:
        if re.fullmatch(each.pattern, each.full_name(name)):
            return each
    hint = suggestion(name, names(), most=3) or f"there are {', '.join(names())}"
    raise GraphError(f"there is no model {name!r}; {hint}")


def _is_like(value: object, default: object) -> bool:
    """Return whether an option may have a value, by its default: sizes are positive, other numbers may be
    zero.
    """
    match default:
        case tuple():
            return isinstance(value, tuple | list) and all(_is_like(size, 1) for size in value)
        case float():
            return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
        case None if value is None:
            return True
        case _:
            return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _kind(default: object) -> str:
    match default:
        case tuple():
            return f"positive integers such as {default}"
        case float():
            return f"a number such as {default}"
        case _:
            return "a positive integer"
