"""One element along a dimension, at a position that another tensor holds.

A position that leaves the dimension is moved to its edge or taken modulo the extent, as MXNet does.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ...errors import OperatorError
from ..operator import Example, Operator
from ..shapes.shape_solver import PartialShape
from ..stages.attributes import Attributes, AttributeSpec, AttributeType, choice, flag
from ..stages.definition import ByRank, Variant, text, variant
from .arguments import arguments
from .texts import axis_in, element, joined, names


def clipped(position: str, tensor: str, axis: int) -> str:
    """Return the index `position`, moved into the dimension."""
    return f"minimum(maximum({position}, 0), {tensor}.shape[{axis}] - 1)"


def wrapped(position: str, tensor: str, axis: int) -> str:
    """Return the index `position`, counted round and round the dimension."""
    return f"{position} % {tensor}.shape[{axis}]"


POSITIONS = MappingProxyType({"clip": clipped, "wrap": wrapped})
"""For each `mode` of MXNet: how a position that leaves the dimension is brought back."""


def _pick(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
    """Return picked elements. `index` lacks the dimension that is picked along, or has one element in it."""
    if attributes["axis"] is None:
        raise OperatorError(
            "pick: axis=None is not supported, as in MXNet; say which dimension to pick along"
        )
    moved = POSITIONS[attributes.text("mode")]
    rank = ranks["data"]
    axis = axis_in("pick", attributes.integer("axis"), rank)
    variables = list(names("i", rank))
    outer = [*variables[:axis], *variables[axis + 1 :]]
    kept = [*variables[:axis], "one", *variables[axis + 1 :]]
    binders = [v + "=1" if v == "one" else v for v in kept] if attributes.flag("keepdims") else outer
    index = element("index", kept if ranks["index"] == rank else outer)
    if not attributes.flag("keepdims"):
        index = index.replace("one", "0")
    variables[axis] = moved(index, "data", axis)
    picked = element("data", variables)
    return variant(f"def pick(data, index):\n    return lambda {joined(binders) or 'one=1'}: {picked}")


def _pick_hints(attributes: Attributes, shapes: Mapping[str, PartialShape]) -> Mapping[str, PartialShape]:
    data, index = shapes["data"], shapes["index"]
    if data is None or index is not None or attributes["axis"] is None:
        return {}
    axis = axis_in("pick", attributes.integer("axis"), len(data))
    return {"index": data[:axis] + data[axis + 1 :]}


def _rows(name: str, table: str, position: str) -> str:
    column = clipped(f"{position}[i]", table, 1)
    return f"def {name}({table}, {position}):\n    return lambda i: {table}[i, {column}]"


OPERATORS = (
    Operator(
        name="pick",
        definition=ByRank(_pick, of=("data", "index")),
        argument_names=arguments("data", "index"),
        specs=(
            AttributeSpec("axis", AttributeType.INT, -1, optional=True),
            flag("keepdims", False),
            choice("mode", *POSITIONS, default="clip"),
        ),
        hints=_pick_hints,
        example=Example({"data": (3, 4), "index": (3,)}, {"axis": 1}, {"index": (0, 4)}),
    ),
    Operator(
        name="batch_take",
        definition=text(_rows("batch_take", "a", "indices")),
        argument_names=arguments("a", "indices"),
        example=Example({"a": (3, 4), "indices": (3,)}, whole={"indices": (0, 4)}),
    ),
    Operator(
        name="choose_element_0index",
        definition=text(_rows("choose_element_0index", "lhs", "rhs")),
        argument_names=arguments("lhs", "rhs"),
        example=Example({"lhs": (3, 4), "rhs": (3,)}, whole={"rhs": (0, 4)}),
    ),
    Operator(
        name="fill_element_0index",
        definition=text(
            "def fill_element_0index(lhs, mhs, rhs):\n"
            "    return lambda i, j: where(rhs[i] == j, mhs[i], lhs[i, j])"
        ),
        argument_names=arguments("lhs", "mhs", "rhs"),
        example=Example({"lhs": (3, 4), "mhs": (3,), "rhs": (3,)}, whole={"rhs": (0, 4)}),
    ),
)
