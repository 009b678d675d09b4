"""The model zoo by name: `wresnet-152-10`, `rnn-10-8k`, `mlp`, ..."""

from __future__ import annotations

import re
from typing import Any

from ..dataflow.naming import NameScope
from ..errors import GraphError
from ..tdl import source
from .families import FAMILIES, Family
from .model import Model


def names() -> tuple[str, ...]:
    """Names worth trying; other depths, widths and sizes work likewise."""
    return tuple(name for family in FAMILIES for name in family.examples)


def get(name: str, batch: int | None = None, **options: Any) -> Model:
    """The model of this name. `batch` defaults to the family's; options are those of the family.

    Raises GraphError for an unknown name, option or value.
    """
    found = family(name)
    for option in options:
        if option not in found.options:
            raise GraphError(f"model {name!r} has no option {option!r}; it has {', '.join(found.options)}")
    if batch is not None:
        if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
            raise GraphError(f"batch is {batch!r}, expected a positive integer")
        options["batch"] = batch
    matched = re.fullmatch(found.pattern, name)
    assert matched is not None
    with NameScope():
        return found.build(*matched.groups(), name=name, **options)


def family(name: str) -> Family:
    """The family that a name belongs to. Raises GraphError for an unknown one, with a suggestion."""
    for each in FAMILIES:
        if re.fullmatch(each.pattern, name):
            return each
    hint = source.suggestion(name, names(), most=3) or f"there are {', '.join(names())}"
    raise GraphError(f"there is no model {name!r}; {hint}")
